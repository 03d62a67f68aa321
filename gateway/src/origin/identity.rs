//! The gateway's identity at the store: credentials of the AWS chain, refreshed in the background.
//!
//! A request never waits for a refresh. Credentials are fetched again when half of their life is over. If that fails, they stay
//! in use until they expire, and the source is asked again after a pause. A failure is never stored.

mod chain;
mod credentials;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::identity::Identity;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::config::CredentialSource;
use crate::error::{Error, ErrorKind, Result};
use credentials::{CurrentCredentials, FetchFailure};

/// Longest time for one fetch. The chain asks several sources in turn.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that the start of the gateway is delayed.
const FIRST_FETCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after the first failed fetch. Each is twice the one before.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest pause after a failed fetch.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Shortest time between two fetches after refusals without a reason.
const MIN_GUESS_INTERVAL: Duration = Duration::from_secs(30);
/// Longest sleep before the time of the next refresh is computed again.
const MAX_SLEEP: Duration = Duration::from_mins(1);
/// Shortest time between two fetches, however short the credentials live or however often the store refuses them.
const MIN_FETCH_INTERVAL: Duration = Duration::from_millis(500);

/// The credentials in use. Clones share them.
#[derive(Debug, Clone)]
pub struct StoreIdentity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: SharedCredentialsProvider,
    current: ArcSwapOption<CurrentCredentials>,
    /// When the source was asked last. Held during a fetch, so that there is one at a time.
    last_fetch: Mutex<Option<Instant>>,
    /// When a refusal without a reason was taken for one of the credentials last.
    last_guess: parking_lot::Mutex<Option<Instant>>,
    /// A request needs credentials.
    needed: Notify,
}

/// Refreshes an identity until it is dropped.
#[derive(Debug)]
pub struct IdentityRefresher {
    _task: AbortOnDropHandle<()>,
}

// === impl StoreIdentity ===

impl StoreIdentity {
    /// An identity from a source. Fetches nothing yet.
    pub async fn new(source: CredentialSource, region: &str) -> Self {
        match source {
            CredentialSource::Environment => Self::from_environment(),
            CredentialSource::Chain => {
                Self::with_provider(SharedCredentialsProvider::new(chain::chain(region).await))
            }
        }
    }

    /// An identity from the environment alone. Fetches nothing yet.
    pub fn from_environment() -> Self {
        Self::with_provider(SharedCredentialsProvider::new(
            EnvironmentVariableCredentialsProvider::new(),
        ))
    }

    fn with_provider(provider: SharedCredentialsProvider) -> Self {
        Self(Arc::new(Inner {
            provider,
            current: ArcSwapOption::empty(),
            last_fetch: Mutex::default(),
            last_guess: parking_lot::Mutex::default(),
            needed: Notify::new(),
        }))
    }

    /// Starts a task that fetches credentials when they are first needed, and refreshes them. If they are needed now, waits
    /// for the first ones, but not long: the gateway also starts without them.
    pub async fn start(&self, is_needed_now: bool) -> IdentityRefresher {
        if is_needed_now {
            let first = tokio::time::timeout(FIRST_FETCH_TIMEOUT, self.refresh()).await;
            if !matches!(first, Ok(Ok(()))) {
                self.0.needed.notify_one();
            }
        }
        IdentityRefresher {
            _task: AbortOnDropHandle::new(tokio::spawn(refresh_forever(self.clone()))),
        }
    }

    /// What signs now.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] before the first fetch, and once the credentials have expired without new ones.
    pub(super) fn current(&self) -> Result<Identity> {
        let current = self.0.current.load();
        match current.as_deref() {
            Some(fetched) if !fetched.has_expired(SystemTime::now()) => Ok(fetched.identity.clone()),
            _ => {
                self.0.needed.notify_one();
                let message = "the gateway has no valid credentials for the store: try again later";
                Err(Error::new(ErrorKind::SlowDown, message))
            }
        }
    }

    /// The access key in use, to tell credentials apart.
    fn access_key(&self) -> Option<String> {
        let current = self.0.current.load();
        current
            .as_deref()
            .map(|fetched| fetched.credentials.access_key_id().to_owned())
    }

    /// Whether a refusal without a reason may be taken for one of the credentials. Callers can provoke such refusals, so few are.
    pub(super) fn may_guess(&self) -> bool {
        let mut last_guess = self.0.last_guess.lock();
        let may = last_guess.is_none_or(|at| at.elapsed() >= MIN_GUESS_INTERVAL);
        if may {
            *last_guess = Some(Instant::now());
        }
        may
    }

    /// Replaces credentials that the store refused as expired. Returns whether there are others now.
    pub(super) async fn replace(&self, refused: &str) -> bool {
        let is_other = || self.access_key().is_none_or(|access_key| access_key != refused);
        if is_other() {
            return true;
        }
        let refused_at = Instant::now();
        let mut last_fetch = self.0.last_fetch.lock().await;
        // Another request may have fetched others meanwhile, or the same ones again.
        if is_other() || last_fetch.is_some_and(|at| at > refused_at) {
            return is_other();
        }
        if let Some(at) = *last_fetch {
            tokio::time::sleep_until(at + MIN_FETCH_INTERVAL).await;
        }
        *last_fetch = Some(Instant::now());
        match self.fetch().await {
            Ok(()) => is_other(),
            Err(reason) => {
                tracing::warn!(%reason, "the store refuses the gateway's credentials as expired, and there are no others");
                false
            }
        }
    }

    /// Fetches credentials as the background task does.
    async fn refresh(&self) -> Result<(), FetchFailure> {
        let mut last_fetch = self.0.last_fetch.lock().await;
        *last_fetch = Some(Instant::now());
        self.fetch().await
    }

    /// Fetches credentials, and uses them from now on.
    async fn fetch(&self) -> Result<(), FetchFailure> {
        let fetching = self.0.provider.provide_credentials();
        let credentials = match tokio::time::timeout(FETCH_TIMEOUT, fetching).await {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(error)) => return Err(FetchFailure::Source(error.to_string())),
            Err(_elapsed) => return Err(FetchFailure::Timeout),
        };
        let fetched_at = SystemTime::now();
        if credentials.expiry().is_some_and(|expiry| expiry < fetched_at) {
            return Err(FetchFailure::Expired);
        }
        let fetched = CurrentCredentials {
            identity: credentials.clone().into(),
            credentials,
            fetched_at,
        };
        self.0.current.store(Some(Arc::new(fetched)));
        Ok(())
    }

    /// Time until half of the life of the credentials is over. `None` without credentials that end.
    fn time_to_refresh(&self) -> Option<Duration> {
        let current = self.0.current.load();
        let fetched = current.as_deref()?;
        let life = fetched
            .credentials
            .expiry()?
            .duration_since(fetched.fetched_at)
            .ok()?;
        let half_life = fetched.fetched_at + life / 2;
        Some(half_life.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

async fn refresh_forever(identity: StoreIdentity) {
    loop {
        // The clock of the system can jump, and other credentials can come meanwhile: a long sleep could end too late.
        match identity.time_to_refresh() {
            Some(pause) if pause > MAX_SLEEP => {
                tokio::select! {
                    () = tokio::time::sleep(MAX_SLEEP) => continue,
                    () = identity.0.needed.notified() => {}
                }
            }
            Some(pause) => tokio::time::sleep(pause.max(MIN_FETCH_INTERVAL)).await,
            None => identity.0.needed.notified().await,
        }
        let mut pause = FIRST_RETRY_DELAY;
        while let Err(reason) = identity.refresh().await {
            tracing::error!(%reason, "cannot fetch the gateway's credentials for the store");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_RETRY_DELAY);
        }
    }
}

#[cfg(test)]
mod tests;
