//! The gateway's identity at the store: credentials of the AWS chain, refreshed in the background.
//!
//! A request never waits for a refresh. Credentials are fetched again when half of their life is over. If that fails, they stay
//! in use until they expire, and the source is asked again after a pause. A failure is never stored.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use aws_config::Region;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::identity::Identity;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::config::CredentialSource;
use crate::error::{Error, ErrorKind, Result};

/// Longest time for one fetch. The chain asks several sources in turn.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that the start of the gateway is delayed.
const FIRST_FETCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses after failed fetches: the first one, and the longest. Each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Shortest time between two fetches, however short the credentials live or however often the store refuses them.
const MIN_FETCH_INTERVAL: Duration = Duration::from_millis(500);

/// The credentials in use. Clones share them.
#[derive(Debug, Clone)]
pub struct StoreIdentity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: SharedCredentialsProvider,
    current: ArcSwapOption<Fetched>,
    /// When the source was asked last. Held during a fetch, so that there is one at a time.
    last_fetch: Mutex<Option<Instant>>,
    /// A request needs credentials.
    needed: Notify,
}

/// Credentials, and when they were fetched.
struct Fetched {
    identity: Identity,
    credentials: Credentials,
    at: SystemTime,
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
                Self::with_provider(SharedCredentialsProvider::new(chain(region).await))
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
            needed: Notify::new(),
        }))
    }

    /// Starts a task that fetches credentials when they are first needed, and refreshes them. If they are needed now, waits
    /// for the first ones, but not long: the gateway also starts without them.
    pub async fn start(&self, is_needed_now: bool) -> IdentityRefresher {
        if is_needed_now {
            let first = tokio::time::timeout(FIRST_FETCH_TIMEOUT, self.refresh()).await;
            if !matches!(first, Ok(Ok(_))) {
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
            Ok(_) => is_other(),
            Err(reason) => {
                tracing::warn!(%reason, "the store refuses the gateway's credentials as expired, and there are no others");
                false
            }
        }
    }

    /// Fetches credentials as the background task does.
    async fn refresh(&self) -> Result<Option<Duration>, FetchFailure> {
        let mut last_fetch = self.0.last_fetch.lock().await;
        *last_fetch = Some(Instant::now());
        self.fetch().await
    }

    /// Fetches credentials, and returns how long they live; `None` is forever.
    async fn fetch(&self) -> Result<Option<Duration>, FetchFailure> {
        let fetching = self.0.provider.provide_credentials();
        let credentials = match tokio::time::timeout(FETCH_TIMEOUT, fetching).await {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(error)) => return Err(FetchFailure::Source(error.to_string())),
            Err(_elapsed) => return Err(FetchFailure::Timeout),
        };
        let at = SystemTime::now();
        let life = match credentials.expiry() {
            None => None,
            Some(expiry) => match expiry.duration_since(at) {
                Ok(life) => Some(life),
                Err(_expired) => return Err(FetchFailure::Expired),
            },
        };
        let fetched = Fetched {
            identity: credentials.clone().into(),
            credentials,
            at,
        };
        self.0.current.store(Some(Arc::new(fetched)));
        Ok(life)
    }

    /// Time until half of the life of the credentials is over. `None` without credentials that end.
    fn time_to_refresh(&self) -> Option<Duration> {
        let current = self.0.current.load();
        let fetched = current.as_deref()?;
        let life = fetched.credentials.expiry()?.duration_since(fetched.at).ok()?;
        let half_life = fetched.at + life / 2;
        Some(half_life.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

impl Fetched {
    fn has_expired(&self, now: SystemTime) -> bool {
        self.credentials.expiry().is_some_and(|expiry| expiry <= now)
    }
}

impl fmt::Debug for Fetched {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

async fn refresh_forever(identity: StoreIdentity) {
    loop {
        match identity.time_to_refresh() {
            Some(pause) => tokio::time::sleep(pause.max(MIN_FETCH_INTERVAL)).await,
            None => identity.0.needed.notified().await,
        }
        let mut pause = PAUSES.0;
        while let Err(reason) = identity.refresh().await {
            tracing::error!(%reason, "cannot fetch the gateway's credentials for the store");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// The default chain of AWS: environment, profile, web identity, container, instance.
async fn chain(region: &str) -> DefaultCredentialsChain {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let region = Region::new(region.to_owned());
    let config = ProviderConfig::without_region()
        .with_http_client(http)
        .with_region(Some(region.clone()));
    DefaultCredentialsChain::builder()
        .region(region)
        .configure(config)
        .build()
        .await
}

/// Why there are no new credentials. It is for the log.
#[derive(Debug, thiserror::Error)]
enum FetchFailure {
    #[error("{0}")]
    Source(String),
    #[error("no answer within {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("the source's credentials have expired")]
    Expired,
}

#[cfg(test)]
mod tests;
