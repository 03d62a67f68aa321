//! Why an attempt to read an object fails.

use std::{fmt, time::Duration};

use pushdown::wire;
use pushdown_s3::{AttemptError, ReadError};

use super::gateway::ReplicaError;
use crate::{
    error::{Error, ErrorKind, Result},
    transport::{Answer, Refusal},
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

/// A failure, and what was read: the failure of an attempt that is logged by this name.
#[derive(Debug)]
pub(crate) struct NamedFailure {
    pub(crate) name: String,
    pub(crate) failure: Failure,
    /// Whether something arrived before.
    pub(crate) has_progressed: bool,
}

/// The error of an attempt, and the pause that the endpoint asks for.
#[derive(Debug)]
pub(crate) struct FailedAttempt {
    pub(crate) error: Error,
    pub(super) retry_after: Option<Duration>,
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

impl From<Error> for FailedAttempt {
    fn from(error: Error) -> Self {
        Self {
            error,
            retry_after: None,
        }
    }
}

impl ReplicaError for Failure {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(error) if error.is_retryable())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl Failure {
    /// The failure of a read of one version. `replaced` is what it means that the object is another version.
    pub(super) async fn of_read(
        error: ReadError<Answer, Self>,
        replaced: impl FnOnce() -> Self + Send,
    ) -> Self {
        match error {
            ReadError::Transport(failure) => failure,
            ReadError::Replaced => replaced(),
            ReadError::MissingEtag => malformed("expected an ETag").into(),
            ReadError::Mismatch(reason) => malformed(reason).into(),
            ReadError::UnexpectedStatus(answer) => Self::Refused(answer.refusal().await),
            ReadError::Header(error) => Error::internal("a range is not a header value")
                .with_source(error)
                .into(),
        }
    }

    /// The failure of an attempt to read an object of this name, without progress.
    pub(crate) const fn named(self, name: String) -> NamedFailure {
        NamedFailure {
            name,
            failure: self,
            has_progressed: false,
        }
    }

    /// Converts to the error of the rows of an object that cannot be read.
    ///
    /// # Errors
    /// The failure, if it concerns other objects as well.
    pub(crate) fn into_row_error(self) -> Result<wire::RowError> {
        match self {
            Self::Refused(refusal) => {
                let message = format!(
                    "the store answered {}: {}",
                    refusal.status.as_u16(),
                    refusal.message
                );
                Ok(wire::RowError::new(refusal.code, message))
            }
            Self::TooLarge(limit) => Ok(object_too_large(limit)),
            Self::Unusable(error) => Ok(error),
            // The store answers other requests, but this object's answer does not end.
            Self::Lost(error) if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Interrupted) => {
                Ok(wire::RowError::new("RequestTimeout", error.to_string()))
            }
            Self::Lost(error) => Err(error),
        }
    }

    /// Converts to the error of an attempt, which is about `subject`.
    pub(crate) fn about(self, subject: &str) -> FailedAttempt {
        let mut retry_after = None;
        let error = match self {
            Self::Refused(refusal) => {
                retry_after = refusal.retry_after;
                refusal.into_error(subject)
            }
            Self::Lost(error) => error,
            Self::TooLarge(limit) => Error::new(
                ErrorKind::Sample,
                format!("{subject} is too large: expected at most {limit} bytes"),
            ),
            Self::Unusable(error) => Error::new(ErrorKind::Sample, format!("{subject}: {error}")),
        };
        FailedAttempt { error, retry_after }
    }
}

impl fmt::Display for NamedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.failure)
    }
}

impl AttemptError for NamedFailure {
    fn is_retryable(&self) -> bool {
        match &self.failure {
            Failure::Refused(refusal) => refusal.is_transient(),
            Failure::Lost(error) => error.is_retryable(),
            Failure::TooLarge(_) | Failure::Unusable(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match &self.failure {
            Failure::Refused(refusal) => refusal.retry_after,
            Failure::Lost(_) | Failure::TooLarge(_) | Failure::Unusable(_) => None,
        }
    }

    fn has_progressed(&self) -> bool {
        self.has_progressed
    }
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl AttemptError for FailedAttempt {
    fn is_retryable(&self) -> bool {
        self.error.is_retryable()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// The error for an answer that does not belong to its request.
pub(super) fn malformed(reason: &str) -> Error {
    Error::protocol(format!("invalid answer from the endpoint: {reason}"))
}

/// The error of the rows of an object of more bytes than the limit.
pub(crate) fn object_too_large(limit: u64) -> wire::RowError {
    wire::RowError::new(
        pushdown::ErrorKind::TooLarge.code(),
        format!("the object is too large: expected at most {limit} bytes"),
    )
}
