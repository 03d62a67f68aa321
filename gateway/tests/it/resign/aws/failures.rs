//! Credentials that cannot be got.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pushdown_testkit::{Backend, CredentialsAnswer, Response, eventually};

use super::{CREDENTIALS_URL, Lab, check_slow_down, launch};
use crate::it::resign::{BUCKET, Client, EVERYTHING, KeysFile, error_of, key_block, trainer};

const SHORT_LIFETIME: Duration = Duration::from_secs(4);
/// Longest wait for the end of a session, or for a new one.
const LIMIT: Duration = Duration::from_secs(30);

/// Checks an answer that says nothing of the gateway's identity.
fn check_shows_no_identity(answer: &Response) -> Result<()> {
    let shown = format!("{:?} {}", answer.headers, answer.text());
    for text in ["ASIAFRONT", "secret/of", "token+of", "AWS_", "Log in"] {
        ensure!(!shown.contains(text), "{text}: {shown}");
    }
    Ok(())
}

#[test]
fn the_old_credentials_are_used_until_they_end() -> Result<()> {
    for failure in [CredentialsAnswer::Html, CredentialsAnswer::Failure] {
        let Some(lab) = Lab::start_with(Backend::Embedded, SHORT_LIFETIME, &[])? else {
            return Ok(());
        };
        lab.direct.store(&format!("{BUCKET}/k"), "body")?;
        let read = || lab.through.call("GET", &format!("{BUCKET}/k"));
        assert_eq!(read()?.status, 200, "{failure:?}");
        lab.front.set_credentials_answer(failure);
        let (start, mut reads) = (Instant::now(), 0);
        eventually("the credentials end", LIMIT, || {
            let answer = read()?;
            if answer.status == 200 {
                reads += 1;
                return Ok(None);
            }
            ensure!(answer.status == 503, "{failure:?}: {answer:?}");
            ensure!(!error_of(&answer).1.is_empty(), "{failure:?}: {answer:?}");
            check_shows_no_identity(&answer)?;
            Ok(Some(()))
        })?;
        // The session was renewed at half of its life at the latest.
        let (elapsed, issued) = (start.elapsed(), lab.front.issued().len());
        ensure!(
            reads > 0 && elapsed > SHORT_LIFETIME / 8,
            "{failure:?}: {reads} reads in {elapsed:?}"
        );
        lab.front.set_credentials_answer(CredentialsAnswer::Session);
        eventually("new credentials", LIMIT, || {
            let answer = read()?;
            ensure!([200, 503].contains(&answer.status), "{failure:?}: {answer:?}");
            Ok((answer.status == 200).then_some(()))
        })?;
        ensure!(lab.front.issued().len() > issued, "{failure:?}");
    }
    Ok(())
}

/// Reads the object through another gateway in front of the same store.
fn read_with(lab: &Lab, variables: &[(&str, String)], flags: &[&str]) -> Result<Response> {
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(&lab.front.url(), &keys_file, variables, flags)?;
    Client::new(&trainer(), gateway.listen()).call("GET", &format!("{BUCKET}/k"))
}

/// A store with the object. Its own gateway has credentials and needs no further ones.
fn start() -> Result<Option<Lab>> {
    let Some(lab) = Lab::start()? else {
        return Ok(None);
    };
    lab.through.store(&format!("{BUCKET}/k"), "body")?;
    Ok(Some(lab))
}

/// Checks the answer of a gateway that has no credentials.
pub(super) fn check_no_credentials(answer: &Response) -> Result<()> {
    check_slow_down(answer)?;
    check_shows_no_identity(answer)
}

#[test]
fn without_credentials_the_store_is_not_asked() -> Result<()> {
    let Some(lab) = start()? else {
        return Ok(());
    };
    let before = lab.front.record();
    check_no_credentials(&read_with(&lab, &[], &[])?)?;
    assert_eq!(lab.front.record(), before);
    Ok(())
}

#[test]
fn credentials_of_the_environment_come_first_or_alone() -> Result<()> {
    let Some(lab) = start()? else {
        return Ok(());
    };
    lab.front.accept_store_keys();
    let issued = lab.front.issued().len();
    let url = (CREDENTIALS_URL, lab.front.credentials_url());
    let keys = &lab.direct.keys;
    let variables = [
        url.clone(),
        ("AWS_ACCESS_KEY_ID", keys.access.clone()),
        ("AWS_SECRET_ACCESS_KEY", keys.secret.clone()),
    ];
    let from_environment = "--resign-upstream-credentials=env";
    for flags in [&[][..], &[from_environment]] {
        let answer = read_with(&lab, &variables, flags)?;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "body"),
            "{flags:?}"
        );
    }
    // The environment is read once, so that a retry is useless.
    let answer = read_with(&lab, std::slice::from_ref(&url), &[from_environment])?;
    let is_final = error_of(&answer) == (403, "InvalidGatewayIdentity".to_owned());
    ensure!(is_final && answer.header("retry-after").is_none(), "{answer:?}");
    check_shows_no_identity(&answer)?;
    assert_eq!(lab.front.issued().len(), issued);
    let answer = read_with(&lab, &[url], &["--resign-upstream-credentials=chain"])?;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(lab.front.issued().len(), issued + 1);
    Ok(())
}
