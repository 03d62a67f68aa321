//! Web identities, as a cluster gives them to its pods.

use anyhow::{Result, ensure};
use pushdown_testkit::eventually;

use super::{LIFETIME, LIMIT, Lab, SHORT_LIFETIME, Variables};
use crate::it::resign::aws::failures::check_no_credentials;

const ROLE: &str = "arn:aws:iam::111122223333:role/pushdown";
const FIRST: &str = "eyJhbGciOiJSUzI1NiJ9.of-the-first/web+identity==";
const SECOND: &str = "eyJhbGciOiJSUzI1NiJ9.of-the-second/web+identity==";

/// Variables for the first token, without an endpoint of the token service.
fn variables(lab: &Lab) -> Result<Variables> {
    Ok(vec![
        ("AWS_WEB_IDENTITY_TOKEN_FILE", lab.write("token", FIRST)?),
        ("AWS_ROLE_ARN", ROLE.to_owned()),
    ])
}

/// Variables for the first token, which the token service of the front accepts from now on.
pub(super) fn with_endpoint(lab: &Lab) -> Result<Variables> {
    lab.front.accept_web_identity(ROLE, FIRST);
    let mut variables = variables(lab)?;
    variables.push(("AWS_ENDPOINT_URL_STS", lab.front.sources_url()));
    Ok(variables)
}

#[test]
fn a_rotated_token_is_read_for_the_next_session() -> Result<()> {
    let Some(lab) = Lab::start(SHORT_LIFETIME)? else {
        return Ok(());
    };
    let gateway = lab.launch(&with_endpoint(&lab)?)?;
    let first = lab.first_signer(&gateway)?;
    lab.write("token", SECOND)?;
    lab.front.accept_web_identity(ROLE, SECOND);
    let old = lab.front.issued();
    ensure!(old.iter().any(|keys| keys.access == first), "{first}");
    let second = lab.next_signer(&gateway, &old)?;
    let issued = lab.front.issued();
    ensure!(issued.iter().any(|keys| keys.access == second), "{second}");
    lab.check_log(&gateway, &[FIRST, SECOND])
}

/// The profile has no credentials of its own, so the web identity is next.
#[test]
fn the_profile_can_name_the_endpoint_of_the_token_service() -> Result<()> {
    let Some(lab) = Lab::start(LIFETIME)? else {
        return Ok(());
    };
    lab.front.accept_web_identity(ROLE, FIRST);
    let config = format!(
        "[profile pod]\nservices = private\n\n[services private]\nsts =\n  endpoint_url = {}\n",
        lab.front.sources_url()
    );
    let mut variables = variables(&lab)?;
    variables.extend([
        ("AWS_CONFIG_FILE", lab.write("config", &config)?),
        ("AWS_PROFILE", "pod".to_owned()),
    ]);
    let gateway = lab.launch(&variables)?;
    let signer = lab.first_signer(&gateway)?;
    let issued: Vec<String> = lab.front.issued().into_iter().map(|keys| keys.access).collect();
    assert_eq!(issued, [signer]);
    lab.check_log(&gateway, &[FIRST])
}

#[test]
fn a_refused_token_gets_no_credentials_and_is_tried_again() -> Result<()> {
    let Some(lab) = Lab::start(LIFETIME)? else {
        return Ok(());
    };
    let variables = with_endpoint(&lab)?;
    lab.front.accept_web_identity(ROLE, SECOND);
    let gateway = lab.launch(&variables)?;
    let before = lab.front.record();
    check_no_credentials(&Lab::read(&gateway)?)?;
    assert_eq!(lab.front.record(), before);
    ensure!(lab.front.issued().is_empty());
    eventually("the refusal is logged", LIMIT, || {
        Ok(gateway.log()?.contains("InvalidIdentityToken").then_some(()))
    })?;
    lab.front.accept_web_identity(ROLE, FIRST);
    lab.first_signer(&gateway)?;
    lab.check_log(&gateway, &[FIRST])
}
