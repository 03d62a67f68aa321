//! Configuration of the audit log of re-sign mode.

use std::path::PathBuf;

use serde::Serialize;

use super::values::Text;
use super::{Faults, path};

/// The audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Audit {
    /// The file that lines are appended to.
    pub file: PathBuf,
    /// What happens to requests whose lines cannot be written.
    pub overflow: AuditOverflow,
}

/// What to do while the queue of the audit log is full, or its file cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOverflow {
    /// Requests wait, then fail.
    Block,
    /// Requests are answered, and their lines are dropped and counted.
    Drop,
}

impl Audit {
    /// The audit log, if a file is configured.
    pub(super) fn validate(
        file: Option<&Text>,
        overflow: Option<&Text>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let policy = faults.parsed(
            "audit-overflow",
            overflow,
            AuditOverflow::Block,
            |text| match text {
                "block" => Ok(AuditOverflow::Block),
                "drop" => Ok(AuditOverflow::Drop),
                other => Err(format!("expected block or drop, found `{other}`")),
            },
        );
        if file.is_none() && overflow.is_some() {
            faults.add("audit-overflow: requires audit-log");
        }
        Some(Self {
            file: path(file?),
            overflow: policy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(file: Option<&str>, overflow: Option<&str>) -> (Option<Audit>, Option<String>) {
        let mut faults = Faults::default();
        let (file, overflow) = (file.map(Text::from), overflow.map(Text::from));
        let audit = Audit::validate(file.as_ref(), overflow.as_ref(), &mut faults);
        let faults = faults.into_result(());
        (audit, faults.err().map(|faults| faults.to_string()))
    }

    #[test]
    fn requests_wait_for_the_log_by_default() {
        assert_eq!(validate(None, None), (None, None));
        for (text, overflow) in [
            (None, AuditOverflow::Block),
            (Some("block"), AuditOverflow::Block),
            (Some("drop"), AuditOverflow::Drop),
        ] {
            let file = PathBuf::from("audit.jsonl");
            let audit = Audit { file, overflow };
            assert_eq!(validate(Some("audit.jsonl"), text), (Some(audit), None));
        }
    }

    #[test]
    fn faults_name_their_setting() {
        let (_, fault) = validate(Some("audit.jsonl"), Some("wait"));
        let fault = fault.unwrap();
        assert!(
            fault.contains("audit-overflow: expected block or drop, found `wait`"),
            "{fault}"
        );
        let (audit, fault) = validate(None, Some("drop"));
        assert_eq!(audit, None);
        let fault = fault.unwrap();
        assert!(fault.contains("audit-overflow: requires audit-log"), "{fault}");
    }
}
