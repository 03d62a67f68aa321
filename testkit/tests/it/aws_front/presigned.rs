//! Presigned requests: their parameters, their end, and the end of their session.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use pushdown_testkit::{Keys, Request, Response};

use super::{HOST, Lab, request};

const MINUTE: Duration = Duration::from_mins(1);

fn send(lab: &Lab, keys: &Keys, target: &str, expires: Duration) -> Result<Response> {
    keys.presign(request("GET", target), expires)?
        .send(lab.front.address())
}

fn check(answer: &Response, status: u16, code: &str) -> Result<()> {
    let found = (answer.status, answer.element("Code").unwrap_or_default());
    ensure!(found == (status, code.to_owned()), "{answer:?}");
    Ok(())
}

#[test]
fn a_presigned_request_is_read() -> Result<()> {
    let lab = Lab::start()?;
    ensure!(lab.put("/a%20key", b"body")?.status == 200);
    for target in ["/a%20key", "/a%20key?x-id=GetObject"] {
        let answer = send(&lab, &lab.session, target, MINUTE)?;
        ensure!(answer.status == 200 && answer.body == b"body", "{answer:?}");
    }
    let signed = lab.session.presign(request("GET", "/a%20key"), MINUTE)?;
    let answer = signed.header("Range", "bytes=1-2").send(lab.front.address())?;
    ensure!(answer.status == 206 && answer.body == b"od", "{answer:?}");
    let list = send(&lab, &lab.session, "/?list-type=2", MINUTE)?;
    ensure!(list.text().contains("<Key>a key</Key>"), "{}", list.text());
    Ok(())
}

#[test]
fn a_presigned_request_ends_with_its_time_and_its_session() -> Result<()> {
    let lab = Lab::start()?;
    let session = &lab.session;
    let past = session.with_time(SystemTime::now() - 2 * MINUTE);
    let future = session.with_time(SystemTime::now() + 30 * MINUTE);
    let other_region = Keys {
        region: "eu-central-1".to_owned(),
        ..session.clone()
    };
    let other_secret = Keys {
        secret: "another".to_owned(),
        ..session.clone()
    };
    let without_token = Keys {
        token: None,
        ..session.clone()
    };
    for (keys, expires, status, code) in [
        (&past, MINUTE, 403, "AccessDenied"),
        (&past, 3 * MINUTE, 404, "NoSuchKey"),
        (&future, 60 * MINUTE, 403, "AccessDenied"),
        (
            session,
            8 * 24 * 60 * MINUTE,
            400,
            "AuthorizationQueryParametersError",
        ),
        (&other_region, MINUTE, 400, "AuthorizationQueryParametersError"),
        (&other_secret, MINUTE, 403, "SignatureDoesNotMatch"),
        (&without_token, MINUTE, 400, "InvalidToken"),
    ] {
        check(&send(&lab, keys, "/k", expires)?, status, code)?;
    }
    let answer = send(&lab, &other_region, "/k", MINUTE)?;
    assert_eq!(answer.element("Region").as_deref(), Some("us-east-1"));
    let answer = send(&lab, &past, "/k", MINUTE)?;
    assert_eq!(answer.element("Message").as_deref(), Some("Request has expired"));
    let unsigned = session.presign(request("GET", "/k"), MINUTE)?;
    let unsigned = unsigned.header("x-amz-meta-a", "b");
    check(&unsigned.send(lab.front.address())?, 403, "AccessDenied")?;
    lab.front.revoke_sessions();
    check(&send(&lab, session, "/k", MINUTE)?, 400, "ExpiredToken")
}

#[test]
fn a_presigned_signature_is_for_one_host() -> Result<()> {
    let lab = Lab::start()?;
    let signed = lab.session.presign(request("GET", "/k"), MINUTE)?;
    let other = Request {
        headers: vec![("Host".to_owned(), format!("{HOST}:1"))],
        ..signed
    };
    check(&other.send(lab.front.address())?, 403, "SignatureDoesNotMatch")
}
