//! The gateway's identity at the store: credentials of the AWS chain, refreshed in the background.
//!
//! A request never waits for a refresh. Credentials are fetched again when half of their life is over. If that fails, they stay
//! in use until they expire, and the source is asked again after a pause. A failure is never stored.

mod chain;
mod credentials;
mod refresher;
#[cfg(test)]
pub(super) mod scripted_source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::identity::Identity;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::config::CredentialSource;
use crate::error::{Error, ErrorKind, Result};
use credentials::{CurrentCredentials, FetchFailure};

pub use refresher::IdentityRefresher;

/// Longest time for one fetch. The chain asks several sources in turn.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that the start of the gateway is delayed.
const FIRST_FETCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Shortest time between two fetches, however short the credentials live or however often the store refuses them.
const MIN_FETCH_INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two replacements after refusals without a reason.
const MIN_UNCONFIRMED_INTERVAL: Duration = Duration::from_secs(30);

/// The credentials in use. Clones share them.
#[derive(Debug, Clone)]
pub struct StoreIdentity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: SharedCredentialsProvider,
    /// Whether the source never changes.
    is_fixed: bool,
    /// Whether the source had no credentials when it was asked last.
    has_none: AtomicBool,
    current: ArcSwapOption<CurrentCredentials>,
    /// When the source was asked last. Held during a fetch, so that there is one at a time.
    last_fetch: Mutex<Option<Instant>>,
    /// When the credentials were replaced last after a refusal without a reason.
    last_unconfirmed: parking_lot::Mutex<Option<Instant>>,
    /// A request needs credentials.
    needed: Notify,
}

impl StoreIdentity {
    /// An identity from a source. Fetches nothing yet.
    pub async fn new(source: CredentialSource, region: &str) -> Self {
        match source {
            CredentialSource::Environment => Self::from_environment(),
            CredentialSource::Chain => {
                Self::with_provider(SharedCredentialsProvider::new(chain::chain(region).await), false)
            }
        }
    }

    /// An identity from the environment alone. Fetches nothing yet.
    pub fn from_environment() -> Self {
        let environment = EnvironmentVariableCredentialsProvider::new();
        Self::with_provider(SharedCredentialsProvider::new(environment), true)
    }

    fn with_provider(provider: SharedCredentialsProvider, is_fixed: bool) -> Self {
        Self(Arc::new(Inner {
            provider,
            is_fixed,
            has_none: AtomicBool::new(false),
            current: ArcSwapOption::empty(),
            last_fetch: Mutex::default(),
            last_unconfirmed: parking_lot::Mutex::default(),
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
        IdentityRefresher::spawn(self.clone())
    }

    /// What signs now.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] before the first fetch, and once the credentials have expired without new ones;
    /// [`ErrorKind::InvalidIdentity`] if there will never be any.
    pub(super) fn current(&self) -> Result<Identity> {
        let current = self.0.current.load();
        match current.as_deref() {
            Some(fetched) if !fetched.has_expired(SystemTime::now()) => Ok(fetched.identity.clone()),
            _ if self.0.is_fixed && self.0.has_none.load(Ordering::Relaxed) => Err(Error::new(
                ErrorKind::InvalidIdentity,
                "the gateway has no credentials for the store: the gateway's operator has to set them",
            )),
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

    /// Whether other credentials are in use than the refused ones.
    fn has_replaced(&self, refused: &str) -> bool {
        self.access_key().is_none_or(|access_key| access_key != refused)
    }

    /// Replaces credentials that the store refused as expired. Returns whether there are others now.
    pub(super) async fn replace(&self, refused: &str) -> bool {
        if self.has_replaced(refused) {
            return true;
        }
        let refused_at = Instant::now();
        let fetch = self.fetch_unless(|last_fetch| {
            // Another request may have fetched others meanwhile, or the same ones again.
            self.has_replaced(refused) || last_fetch.is_some_and(|at| at > refused_at)
        });
        if let Err(reason) = fetch.await {
            tracing::warn!(%reason, "the store refuses the gateway's credentials as expired, and there are no others");
        }
        self.has_replaced(refused)
    }

    /// Replaces credentials after a refusal whose reason is unknown. Callers can provoke such refusals, so there is one attempt
    /// per [`MIN_UNCONFIRMED_INTERVAL`]. Returns whether there are other credentials now.
    pub(super) async fn replace_unconfirmed(&self, refused: &str) -> bool {
        if self.has_replaced(refused) {
            return true;
        }
        {
            let mut last = self.0.last_unconfirmed.lock();
            if last.is_some_and(|at| at.elapsed() < MIN_UNCONFIRMED_INTERVAL) {
                return false;
            }
            *last = Some(Instant::now());
        }
        self.replace(refused).await
    }

    /// Fetches credentials, unless those in use are fresh.
    async fn refresh(&self) -> Result<(), FetchFailure> {
        self.fetch_unless(|_last_fetch| self.is_fresh()).await
    }

    /// Fetches credentials: one fetch at a time, and at most one per [`MIN_FETCH_INTERVAL`]. Fetches nothing if another task has
    /// done it meanwhile: `is_done` gets the start of the last fetch.
    async fn fetch_unless(&self, is_done: impl Fn(Option<Instant>) -> bool) -> Result<(), FetchFailure> {
        let mut last_fetch = self.0.last_fetch.lock().await;
        if is_done(*last_fetch) {
            return Ok(());
        }
        if let Some(at) = *last_fetch {
            tokio::time::sleep_until(at + MIN_FETCH_INTERVAL).await;
        }
        *last_fetch = Some(Instant::now());
        self.fetch().await
    }

    /// Fetches credentials, and uses them from now on.
    async fn fetch(&self) -> Result<(), FetchFailure> {
        let fetching = self.0.provider.provide_credentials();
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, fetching).await;
        let has_none = matches!(fetched, Ok(Err(CredentialsError::CredentialsNotLoaded(_))));
        self.0.has_none.store(has_none, Ordering::Relaxed);
        let credentials = match fetched {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) => return Err(FetchFailure::NoSource),
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
        current.as_deref()?.time_to_refresh(SystemTime::now())
    }

    /// Whether there are credentials, and half of their life is not over.
    fn is_fresh(&self) -> bool {
        let has_credentials = self.0.current.load().is_some();
        has_credentials && self.time_to_refresh().is_none_or(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests;
