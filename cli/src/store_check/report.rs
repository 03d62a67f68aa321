//! The checks of a store, for people and for programs.

use std::fmt;

use pushdown_client::internal::{ConditionalAnswer, Escaped};
use serde::Serialize;

use super::{
    Subject,
    judge::{self, Expectation, Outcome},
};

/// One check.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    name: &'static str,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    note: String,
}

/// All checks of a store.
#[derive(Debug, Serialize)]
pub(super) struct StoreReport {
    endpoint: String,
    object: String,
    etag: String,
    checks: Vec<Check>,
    /// Whether the store answers 200 although the ETag matches.
    ignores_condition: bool,
    safe: bool,
}

impl Check {
    pub(super) fn new(
        name: &'static str,
        expected: Expectation<'_>,
        answer: ConditionalAnswer,
    ) -> anyhow::Result<Self> {
        judge::check_is_final(&answer)?;
        let (outcome, note) = expected.judge(&answer);
        Ok(Self {
            name,
            outcome,
            status: Some(answer.status),
            error_code: answer.error_code,
            note,
        })
    }

    pub(super) fn skipped(name: &'static str, why: &str) -> Self {
        Self {
            name,
            outcome: Outcome::Skipped,
            status: None,
            error_code: None,
            note: why.to_owned(),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:7}  {:29}  ", self.outcome.name(), self.name)?;
        if let Some(status) = self.status {
            write!(f, "{status}")?;
        }
        self.error_code
            .iter()
            .try_for_each(|code| write!(f, " {}", Escaped(code)))?;
        let separator = if self.status.is_some() && !self.note.is_empty() {
            ": "
        } else {
            ""
        };
        write!(f, "{separator}{}", Escaped(&self.note))
    }
}

/// The status and the error code of an answer.
pub(super) struct Answered<'a>(pub(super) &'a ConditionalAnswer);

impl fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.status)?;
        self.0.error_code.iter().try_for_each(|code| write!(f, " {code}"))
    }
}

impl StoreReport {
    pub(super) fn new(subject: &Subject, checks: Vec<Check>) -> Self {
        Self {
            endpoint: subject.store.endpoint(),
            object: subject.location.to_string(),
            etag: subject.etag.clone(),
            ignores_condition: checks.first().is_some_and(|check| check.status == Some(200)),
            safe: checks.iter().all(|check| check.outcome != Outcome::Unsafe),
            checks,
        }
    }

    pub(super) const fn is_safe(&self) -> bool {
        self.safe
    }

    fn verdict(&self) -> String {
        let skipped = self
            .checks
            .iter()
            .filter(|check| check.outcome == Outcome::Skipped)
            .count();
        if !self.safe {
            "UNSAFE: use no result cache with this store".to_owned()
        } else if self.ignores_condition {
            "safe, but the store ignores If-None-Match: each hit costs a whole GET".to_owned()
        } else if skipped > 0 {
            format!("safe, as far as checked: {skipped} skipped")
        } else {
            "safe: the store authorizes a request before it compares ETags".to_owned()
        }
    }
}

impl fmt::Display for StoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = format_args!("{} at {}, ETag {}", self.object, self.endpoint, self.etag);
        writeln!(f, "{}", Escaped(subject))?;
        self.checks.iter().try_for_each(|check| writeln!(f, "{check}"))?;
        writeln!(f, "{}", self.verdict())
    }
}
