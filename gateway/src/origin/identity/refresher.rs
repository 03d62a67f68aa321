//! The background task that keeps the gateway's credentials fresh.

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::StoreIdentity;

/// Pause after the first failed fetch. Each is twice the one before.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest pause after a failed fetch.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Longest sleep before the time of the next refresh is computed again.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// Refreshes an identity until it is dropped.
#[derive(Debug)]
pub struct IdentityRefresher {
    _task: AbortOnDropHandle<()>,
}

impl IdentityRefresher {
    pub(super) fn spawn(identity: StoreIdentity) -> Self {
        Self {
            _task: AbortOnDropHandle::new(tokio::spawn(refresh_forever(identity))),
        }
    }
}

async fn refresh_forever(identity: StoreIdentity) {
    loop {
        wait_until_due(&identity).await;
        let mut pause = FIRST_RETRY_DELAY;
        while let Err(reason) = identity.refresh().await {
            tracing::error!(%reason, "cannot fetch the gateway's credentials for the store");
            wait_to_retry(&identity, pause).await;
            pause = (pause * 2).min(MAX_RETRY_DELAY);
        }
    }
}

/// Waits until half of the life of the credentials is over, or until a request finds none.
async fn wait_until_due(identity: &StoreIdentity) {
    loop {
        let left = identity.time_to_refresh();
        if left.is_some_and(|left| left.is_zero()) {
            return;
        }
        // The clock of the system can jump, and other credentials can come meanwhile: a long sleep could end too late.
        let sleep = left.unwrap_or(MAX_SLEEP).min(MAX_SLEEP);
        tokio::select! {
            () = tokio::time::sleep(sleep) => {}
            () = identity.0.needed.notified() => return,
        }
    }
}

/// Pauses after a failed fetch. A request that finds no credentials ends the pause, but not within [`FIRST_RETRY_DELAY`]: many
/// requests would ask the source all the time.
async fn wait_to_retry(identity: &StoreIdentity, pause: Duration) {
    tokio::time::sleep(FIRST_RETRY_DELAY).await;
    tokio::select! {
        () = tokio::time::sleep(pause.saturating_sub(FIRST_RETRY_DELAY)) => {}
        () = identity.0.needed.notified() => {}
    }
}
