//! Profiles of the files that AWS's tools share.

use std::time::Duration;

use anyhow::Result;
use pushdown_testkit::{IssuedSession, Keys};
use serde_json::json;

use super::{LIFETIME, Lab, Variables};

/// Of a session that is issued before the gateway starts, and replaced within the test.
const PROCESS_LIFETIME: Duration = Duration::from_secs(8);

/// Variables for a profile with these keys. The default profile has others.
pub(super) fn with_keys(lab: &Lab, keys: &Keys) -> Result<Variables> {
    let lines = |name: &str, keys: &Keys| {
        let Keys { access, secret, .. } = keys;
        let token = keys
            .token
            .as_ref()
            .map(|token| format!("aws_session_token = {token}\n"))
            .unwrap_or_default();
        format!("[{name}]\naws_access_key_id = {access}\naws_secret_access_key = {secret}\n{token}")
    };
    let others = Keys::new("TESTOTHERPROFILE", "secret-of-another-profile");
    let text = lines("default", &others) + &lines("store", keys);
    Ok(vec![
        ("AWS_SHARED_CREDENTIALS_FILE", lab.write("credentials", &text)?),
        ("AWS_PROFILE", "store".to_owned()),
    ])
}

#[test]
fn static_keys_of_the_named_profile_sign() -> Result<()> {
    let Some(lab) = Lab::start(LIFETIME)? else {
        return Ok(());
    };
    lab.front.accept_store_keys();
    let keys = &lab.store.keys;
    let gateway = lab.launch(&with_keys(&lab, keys)?)?;
    assert_eq!(lab.first_signer(&gateway)?, keys.access);
    lab.check_log(&gateway, &[&keys.access, &keys.secret])
}

/// What the process of a profile prints.
fn document(session: &IssuedSession) -> String {
    let document = json!({
        "Version": 1,
        "AccessKeyId": session.keys.access,
        "SecretAccessKey": session.keys.secret,
        "SessionToken": session.keys.token,
        "Expiration": session.expires,
    });
    document.to_string()
}

#[test]
fn the_process_of_a_profile_runs_again_for_the_next_session() -> Result<()> {
    let Some(lab) = Lab::start(PROCESS_LIFETIME)? else {
        return Ok(());
    };
    let first = lab.front.issue_session();
    let session = lab.write("session.json", &document(&first))?;
    let config = format!("[profile process]\ncredential_process = cat '{session}'\n");
    let variables = [
        ("AWS_CONFIG_FILE", lab.write("config", &config)?),
        ("AWS_PROFILE", "process".to_owned()),
    ];
    let gateway = lab.launch(&variables)?;
    assert_eq!(lab.first_signer(&gateway)?, first.keys.access);
    let second = lab.front.issue_session();
    lab.write("session.json", &document(&second))?;
    let signer = lab.next_signer(&gateway, &[first.keys])?;
    assert_eq!(signer, second.keys.access);
    lab.check_log(&gateway, &[])
}
