//! The line of the audit log on a HEAD with a pipeline.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::eventually;
use serde_json::Value;

use super::{Lab, PHOTO, RESIZE, ask};
use crate::it::resign::audit;

#[test]
fn the_audit_log_has_the_operation_of_the_caller() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    assert_eq!(ask(&lab.client, "HEAD", PHOTO, RESIZE, &[])?.status, 200);
    let path = audit::audit_log(&lab.keys_file);
    let line = eventually("the line is written", Duration::from_secs(10), || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        Ok(text.lines().next().map(str::to_owned))
    })?;
    let line: Value = serde_json::from_str(&line)?;
    for (name, value) in [
        ("operation", "HeadObject"),
        ("action", "read"),
        ("verdict", "allowed"),
    ] {
        ensure!(line[name] == value, "{name}: {line}");
    }
    ensure!(line["status"] == 200 && line["bytes_out"] == 0, "{line}");
    Ok(())
}
