//! Credentials in use, and why there are none.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::identity::Identity;

use super::FETCH_TIMEOUT;

/// Credentials, and when they were fetched.
pub(super) struct CurrentCredentials {
    pub(super) identity: Identity,
    pub(super) credentials: Credentials,
    pub(super) fetched_at: SystemTime,
}

/// Why there are no new credentials. It is for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchFailure {
    #[error("{0}")]
    Source(String),
    #[error(
        "no source has any: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of the AWS chain"
    )]
    NoSource,
    #[error("no answer within {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("the source's credentials have expired")]
    Expired,
}

impl CurrentCredentials {
    /// Whether they can no longer sign.
    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.credentials.expiry().is_some_and(|expiry| expiry <= now)
    }

    /// Time until half of their life is over. `None` if they do not end.
    pub(super) fn time_to_refresh(&self, now: SystemTime) -> Option<Duration> {
        let expiry = self.credentials.expiry()?;
        let life = expiry.duration_since(self.fetched_at).unwrap_or_default();
        let half_life = self.fetched_at + life / 2;
        Some(half_life.duration_since(now).unwrap_or_default())
    }
}

impl fmt::Debug for CurrentCredentials {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentCredentials")
            .field("fetched_at", &self.fetched_at)
            .finish_non_exhaustive()
    }
}
