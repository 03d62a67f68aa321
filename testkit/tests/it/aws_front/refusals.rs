//! Refusals, as AWS has them.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Keys, MovedAnswer, Payload, Raw, Request, Response};

use super::{HOST, Lab, request};

/// Status and code of a refusal.
fn refusal_of(answer: &Response) -> (u16, String) {
    (answer.status, answer.element("Code").unwrap_or_default())
}

fn check(answer: &Response, status: u16, code: &str) -> Result<()> {
    ensure!(refusal_of(answer) == (status, code.to_owned()), "{answer:?}");
    Ok(())
}

#[test]
fn signatures_need_a_session_the_region_of_the_host_and_the_time() -> Result<()> {
    let lab = Lab::start()?;
    let session = &lab.session;
    let without_token = Keys {
        token: None,
        ..session.clone()
    };
    let other_secret = Keys {
        secret: "another".to_owned(),
        ..session.clone()
    };
    let other_region = Keys {
        region: "eu-central-1".to_owned(),
        ..session.clone()
    };
    let late = session.with_time(SystemTime::now() - Duration::from_hours(1));
    for (keys, status, code) in [
        (super::store_keys(), 403, "InvalidAccessKeyId"),
        (without_token, 400, "InvalidToken"),
        (other_secret, 403, "SignatureDoesNotMatch"),
        (other_region, 400, "AuthorizationHeaderMalformed"),
        (late, 403, "RequestTimeTooSkewed"),
    ] {
        let signed = keys.sign(request("GET", "/k"), Payload::Unsigned)?;
        check(&signed.send(lab.front.address())?, status, code)?;
    }
    let signed = session.sign(request("GET", "/k"), Payload::Unsigned)?;
    let unsigned_header = signed.clone().header("x-amz-meta-a", "b");
    check(&unsigned_header.send(lab.front.address())?, 403, "AccessDenied")?;
    let other_target = Request {
        target: "/l".to_owned(),
        ..signed
    };
    check(
        &other_target.send(lab.front.address())?,
        403,
        "SignatureDoesNotMatch",
    )?;
    check(
        &request("GET", "/k").send(lab.front.address())?,
        403,
        "AccessDenied",
    )?;
    assert_eq!(lab.front.record().refused("SignatureDoesNotMatch"), 2);

    lab.front.accept_store_keys();
    let signed = super::store_keys().sign(request("GET", "/k"), Payload::Unsigned)?;
    check(&signed.send(lab.front.address())?, 404, "NoSuchKey")
}

#[test]
fn sessions_end() -> Result<()> {
    let lab = Lab::start()?;
    lab.front.revoke_sessions();
    let answer = lab.call("GET", "/k")?;
    check(&answer, 400, "ExpiredToken")?;
    assert_eq!(answer.element("Token-0"), lab.session.token);
    let answer = lab.call("HEAD", "/k")?;
    assert_eq!((answer.status, answer.body.len()), (400, 0));
    lab.front.forget_sessions();
    check(&lab.call("GET", "/k")?, 403, "InvalidAccessKeyId")?;
    assert_eq!(lab.front.record().refused("ExpiredToken"), 2);
    Ok(())
}

#[test]
fn buckets_that_can_be_labels_need_virtual_hosts() -> Result<()> {
    let lab = Lab::start()?;
    let path_style = |target: &str| Request::new("GET", target).header("Host", "s3.us-east-1.localhost:8");
    let answer = lab.send(path_style("/photos/k"), Payload::Unsigned)?;
    check(&answer, 301, "PermanentRedirect")?;
    let endpoint = answer.element("Endpoint");
    assert_eq!(
        endpoint.as_deref(),
        Some("photos.s3.us-east-1.localhost:8"),
        "{answer:?}"
    );
    assert_eq!(answer.header("x-amz-bucket-region"), Some("us-east-1"));
    // The store has no such bucket.
    let answer = lab.send(path_style("/my.bucket/k"), Payload::Unsigned)?;
    assert_eq!(answer.status, 404, "{answer:?}");
    let dotted = Request::new("GET", "/k").header("Host", "my.bucket.s3.us-east-1.localhost");
    check(&lab.send(dotted, Payload::Unsigned)?, 400, "InvalidURI")
}

#[test]
fn other_regions_and_newly_created_buckets_are_redirected() -> Result<()> {
    let lab = Lab::start()?;
    assert_eq!(lab.put("/k", b"body")?.status, 200);
    let target = lab.front.redirect_target().to_string();

    lab.front.set_newly_created("photos", true);
    let answer = lab.call("GET", "/k")?;
    check(&answer, 307, "TemporaryRedirect")?;
    ensure!(
        answer
            .header("location")
            .is_some_and(|location| location.contains(&target)),
        "{answer:?}"
    );
    lab.front.set_newly_created("photos", false);

    lab.front.move_bucket("photos", "eu-central-1");
    let answer = lab.call("GET", "/k")?;
    check(&answer, 301, "PermanentRedirect")?;
    assert_eq!(
        answer.element("Endpoint").as_deref(),
        Some("photos.s3.eu-central-1.localhost")
    );
    let location = answer.header("location").context("no Location")?;
    ensure!(location == format!("http://{target}/photos/k"), "{location}");
    let answer = lab.call("HEAD", "/k")?;
    assert_eq!(
        (answer.status, answer.header("x-amz-bucket-region")),
        (301, Some("eu-central-1"))
    );

    lab.front.set_moved_answer(MovedAnswer::Malformed);
    let answer = lab.call("GET", "/k")?;
    check(&answer, 400, "AuthorizationHeaderMalformed")?;
    assert_eq!(answer.element("Region").as_deref(), Some("eu-central-1"));
    assert_eq!(answer.header("x-amz-bucket-region"), None);
    let answer = lab.call("HEAD", "/k")?;
    assert_eq!(
        (answer.status, answer.header("x-amz-bucket-region")),
        (400, Some("eu-central-1"))
    );

    let keys = Keys {
        region: "eu-central-1".to_owned(),
        ..lab.session.clone()
    };
    let moved_request = Request::new("GET", "/k").header("Host", "photos.s3.eu-central-1.localhost");
    let answer = keys
        .sign(moved_request, Payload::Unsigned)?
        .send(lab.front.address())?;
    assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

/// Nothing of the body is read before the refusal, and the client can read the answer in any case.
#[test]
fn a_refused_upload_gets_its_answer_and_the_connection_closes() -> Result<()> {
    let lab = Lab::start()?;
    lab.front.move_bucket("photos", "eu-central-1");
    for expects in [true, false] {
        let upload = Request::new("PUT", "/k")
            .header("Host", HOST)
            .body(vec![7; 1 << 20]);
        let mut signed = lab.session.sign(upload, Payload::Unsigned)?;
        if expects {
            signed = signed.header("Expect", "100-continue");
        }
        let mut raw = Raw::connect(lab.front.address())?;
        raw.write(&signed.head())?;
        if !expects {
            raw.write(&signed.body)?;
        }
        let answer = raw.read("PUT")?;
        check(&answer, 301, "PermanentRedirect")?;
        assert_eq!(answer.informational, [0; 0], "{expects}");
        assert_eq!(answer.header("connection"), Some("close"));
        ensure!(raw.is_closed()?, "{expects}: the connection stays open");
    }
    Ok(())
}
