//! Why an attempt to read an object fails.

use std::{fmt, time::Duration};

use pushdown::wire;

use crate::{
    error::{Error, ErrorKind},
    transport::Refusal,
};

/// Why an attempt to read an object failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The endpoint answered with an error.
    Refused(Refusal),
    /// No complete answer arrived.
    Lost(Error),
    /// The answer exceeds this limit in bytes.
    TooLarge(u64),
    /// The shard is not the one of the list.
    Unusable(wire::RowError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Lost(error) => error.fmt(f),
            Self::TooLarge(limit) => write!(f, "too large: expected at most {limit} bytes"),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl Failure {
    /// Whether another attempt may succeed, and the pause before it that the endpoint asks for.
    pub(crate) fn retry(&self) -> (bool, Option<Duration>) {
        match self {
            Self::Refused(refusal) => (refusal.is_transient(), refusal.retry_after),
            Self::Lost(error) => (error.is_retryable(), None),
            Self::TooLarge(_) | Self::Unusable(_) => (false, None),
        }
    }

    /// Converts to an error about `subject`, and the pause that the endpoint asks for.
    pub(super) fn into_error(self, subject: &str) -> (Error, Option<Duration>) {
        match self {
            Self::Refused(refusal) => {
                let retry_after = refusal.retry_after;
                (refusal.into_error(subject), retry_after)
            }
            Self::Lost(error) => (error, None),
            Self::TooLarge(limit) => (
                Error::new(
                    ErrorKind::Sample,
                    format!("{subject} is too large: expected at most {limit} bytes"),
                ),
                None,
            ),
            Self::Unusable(error) => (Error::new(ErrorKind::Sample, format!("{subject}: {error}")), None),
        }
    }
}
