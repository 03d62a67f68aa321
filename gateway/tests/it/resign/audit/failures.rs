//! An audit log that cannot be written.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::eventually;

use super::{GRANTS, LIMIT, Lab};
use crate::it::resign::{BUCKET, KeysFile, error_of, key_block, trainer};

#[test]
fn a_full_disk_refuses_requests_or_drops_lines() -> Result<()> {
    let keys_file = || KeysFile::new(&[key_block(&trainer(), "gateway", &GRANTS)]);
    let target = format!("{BUCKET}/2024/a");
    let lab = Lab::start_with(keys_file()?, &["--audit-log=/dev/full"])?;
    let client = lab.client();
    assert_eq!(client.call("GET", &target)?.status, 200);
    let refused = (503, "SlowDown".to_owned());
    eventually("requests are refused", LIMIT, || {
        Ok((error_of(&client.call("GET", &target)?) == refused).then_some(()))
    })?;
    ensure!(lab.gateway.log()?.contains("cannot write the audit log"));

    let lab = Lab::start_with(keys_file()?, &["--audit-log=/dev/full", "--audit-overflow=drop"])?;
    let client = lab.client();
    eventually("lines are dropped", LIMIT, || {
        let answer = client.call("GET", &target)?;
        ensure!(answer.status == 200, "{answer:?}");
        let dropped = lab.gateway.metric("pushdown_audit_dropped_total")?;
        Ok((dropped > 2.0).then_some(()))
    })?;
    let log = lab.gateway.log()?;
    assert_eq!(log.matches("cannot write the audit log").count(), 1, "{log}");
    Ok(())
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_start() -> Result<()> {
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &GRANTS)])?;
    let missing = keys_file.path().with_file_name("missing").join("audit.jsonl");
    let flag = format!("--audit-log={}", missing.display());
    let error = Lab::start_with(keys_file, &[&flag]).err().context("it started")?;
    ensure!(error.to_string().contains("audit-log"), "{error:#}");
    Ok(())
}
