//! The sources of sessions: the metadata of instances, and the token service.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pushdown_testkit::{Keys, Payload, Request, Response};

use super::{Lab, keys_of, request};

const ROLE: &str = "arn:aws:iam::111122223333:role/pushdown";
const TTL_SECONDS: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// The address of the sources.
fn address(lab: &Lab) -> Result<SocketAddr> {
    let url = lab.front.sources_url();
    let address = url.strip_prefix("http://").context("another scheme")?;
    Ok(address.parse()?)
}

/// Checks that the front accepts these credentials.
fn check_accepted(lab: &Lab, keys: &Keys) -> Result<()> {
    let signed = keys.sign(request("GET", "/k"), Payload::Unsigned)?;
    let answer = signed.send(lab.front.address())?;
    ensure!(answer.status == 404, "{}", answer.text());
    assert_eq!(lab.front.record().signers.get(&keys.access), Some(&1));
    Ok(())
}

#[test]
fn the_metadata_of_instances_needs_a_token() -> Result<()> {
    let lab = Lab::start()?;
    let address = address(&lab)?;
    let roles = "/latest/meta-data/iam/security-credentials/";
    let get = |target: &str, token: Option<&str>| {
        let mut request = Request::new("GET", target).header("Host", "metadata");
        if let Some(token) = token {
            request = request.header("x-aws-ec2-metadata-token", token);
        }
        request.send(address)
    };
    for token in [None, Some("another")] {
        assert_eq!(get(roles, token)?.status, 401, "{token:?}");
    }
    let put = |seconds: &str| {
        Request::new("PUT", "/latest/api/token")
            .header("Host", "metadata")
            .header(TTL_SECONDS, seconds)
            .send(address)
    };
    for seconds in ["", "0", "21601"] {
        assert_eq!(put(seconds)?.status, 400, "{seconds}");
    }
    let answer = put("21600")?;
    assert_eq!(answer.header(TTL_SECONDS), Some("21600"), "{answer:?}");
    let token = answer.text();
    let role = get(roles, Some(&token))?.text();
    assert_eq!(get(&format!("{roles}{role}"), None)?.status, 401);
    assert_eq!(get(&format!("{roles}another"), Some(&token))?.status, 404);
    let answer = get(&format!("{roles}{role}"), Some(&token))?;
    check_accepted(&lab, &keys_of(&answer)?)
}

/// Asks for a session with a web identity.
fn assume_role(address: SocketAddr, role: &str, token: &str) -> Result<Response> {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let body = format!(
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName=test&WebIdentityToken={}",
        encode(role),
        encode(token)
    );
    Request::new("POST", "/")
        .header("Host", "sts")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body)
        .send(address)
}

#[test]
fn the_token_service_knows_one_web_identity() -> Result<()> {
    let lab = Lab::start()?;
    let address = address(&lab)?;
    let (first, second) = ("first/token+of==", "second/token+of==");
    let check_refused = |role: &str, token: &str, status: u16, code: &str| -> Result<()> {
        let answer = assume_role(address, role, token)?;
        let found = (answer.status, answer.element("Code"));
        ensure!(found == (status, Some(code.to_owned())), "{}", answer.text());
        Ok(())
    };
    check_refused(ROLE, first, 400, "InvalidIdentityToken")?;
    lab.front.accept_web_identity(ROLE, first);
    check_refused(ROLE, second, 400, "InvalidIdentityToken")?;
    check_refused("another", first, 403, "AccessDenied")?;
    assert_eq!(lab.front.issued().len(), 1);

    let answer = assume_role(address, ROLE, first)?;
    let element = |name: &str| answer.element(name).with_context(|| answer.text());
    let keys = Keys {
        token: Some(element("SessionToken")?),
        ..Keys::new(&element("AccessKeyId")?, &element("SecretAccessKey")?)
    };
    check_accepted(&lab, &keys)?;
    lab.front.accept_web_identity(ROLE, second);
    check_refused(ROLE, first, 400, "InvalidIdentityToken")?;
    assert_eq!(assume_role(address, ROLE, second)?.status, 200);
    Ok(())
}
