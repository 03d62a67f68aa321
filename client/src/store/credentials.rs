//! The credentials for a store, renewed before they end.

use std::time::{Duration, SystemTime};

use aws_credential_types::{
    Credentials,
    provider::{
        ProvideCredentials, SharedCredentialsProvider, error::CredentialsError,
        future::ProvideCredentials as Provided,
    },
};
use pushdown_exec::sync::Mutex;

/// Credentials are renewed in the last part of their life, one of this many,
const LAST_PART: u32 = 5;
/// and at most this long before they end.
const RENEW_BEFORE: Duration = Duration::from_mins(5);

/// The last credentials of a provider: not every one caches its own. Those that end are renewed in the last fifth of their life, at most five
/// minutes before their end, by one request at a time; others use the old ones meanwhile. A renewal that fails is an error only once the old
/// ones have ended.
#[derive(Debug)]
pub(super) struct RenewedCredentials {
    provider: SharedCredentialsProvider,
    known: Mutex<Option<KnownCredentials>>,
    renewal: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct KnownCredentials {
    credentials: Credentials,
    /// When they are renewed; `None` for those without an end.
    renew_at: Option<SystemTime>,
}

impl KnownCredentials {
    fn new(credentials: Credentials, now: SystemTime) -> Self {
        let renew_at = credentials.expiry().map(|end| {
            let life = end.duration_since(now).unwrap_or_default();
            end - RENEW_BEFORE.min(life / LAST_PART)
        });
        Self {
            credentials,
            renew_at,
        }
    }

    fn is_fresh(&self, now: SystemTime) -> bool {
        self.renew_at.is_none_or(|renew_at| now < renew_at)
    }

    fn has_ended(&self, now: SystemTime) -> bool {
        self.credentials.expiry().is_some_and(|end| end <= now)
    }
}

impl RenewedCredentials {
    pub(super) fn new(provider: SharedCredentialsProvider) -> Self {
        Self {
            provider,
            known: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        }
    }

    /// Credentials that have not ended.
    ///
    /// # Errors
    /// The provider's, if the last credentials have ended.
    pub(super) async fn current(&self) -> Result<Credentials, CredentialsError> {
        let now = SystemTime::now();
        let known = self.known.lock().clone();
        let usable = match known {
            Some(known) if known.is_fresh(now) => return Ok(known.credentials),
            Some(known) if !known.has_ended(now) => Some(known.credentials),
            Some(_) | None => None,
        };
        let Some(usable) = usable else {
            let _renewal = self.renewal.lock().await;
            // Another request may have renewed them meanwhile.
            let known = self.known.lock().clone();
            return match known.filter(|known| known.is_fresh(SystemTime::now())) {
                Some(known) => Ok(known.credentials),
                None => self.renew().await,
            };
        };
        let Ok(_renewal) = self.renewal.try_lock() else {
            return Ok(usable);
        };
        match self.renew().await {
            Ok(renewed) => Ok(renewed),
            Err(error) => {
                tracing::info!(%error, "cannot renew the credentials before they end");
                Ok(usable)
            }
        }
    }

    /// Forgets the credentials with this access key, which the store says have ended. Returns whether others may follow: they have an end, or
    /// others have followed already.
    pub(super) fn forget(&self, access_key: &str) -> bool {
        let mut known = self.known.lock();
        let Some(last) = &*known else { return true };
        if last.credentials.access_key_id() != access_key {
            return true;
        }
        let is_renewable = last.renew_at.is_some();
        if is_renewable {
            *known = None;
        }
        is_renewable
    }

    async fn renew(&self) -> Result<Credentials, CredentialsError> {
        let found = self.provider.provide_credentials().await?;
        let known = KnownCredentials::new(found.clone(), SystemTime::now());
        *self.known.lock() = Some(known);
        Ok(found)
    }
}

/// For the requests that the SDK signs.
impl ProvideCredentials for RenewedCredentials {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::new(self.current())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    };

    use super::*;

    /// Issues sessions of a lifetime.
    #[derive(Debug, Clone)]
    struct Sessions {
        lifetime: Option<Duration>,
        issued: Arc<AtomicU32>,
        is_failing: Arc<AtomicBool>,
    }

    impl Sessions {
        fn of(lifetime: Option<Duration>) -> (Self, RenewedCredentials) {
            let sessions = Self {
                lifetime,
                issued: Arc::default(),
                is_failing: Arc::default(),
            };
            let provider = SharedCredentialsProvider::new(sessions.clone());
            (sessions, RenewedCredentials::new(provider))
        }
    }

    impl ProvideCredentials for Sessions {
        fn provide_credentials<'a>(&'a self) -> Provided<'a>
        where
            Self: 'a,
        {
            if self.is_failing.load(Relaxed) {
                return Provided::ready(Err(CredentialsError::not_loaded("no source")));
            }
            let number = self.issued.fetch_add(1, Relaxed);
            let end = self.lifetime.map(|lifetime| SystemTime::now() + lifetime);
            let session = Credentials::new(format!("KEY{number}"), "secret", None, end, "test");
            Provided::ready(Ok(session))
        }
    }

    async fn key(credentials: &RenewedCredentials) -> String {
        credentials.current().await.unwrap().access_key_id().to_owned()
    }

    #[test]
    fn sessions_are_renewed_in_the_last_fifth_of_their_life() {
        let now = SystemTime::now();
        for (life, before) in [(20, 4), (1200, 240), (3600, 300), (43_200, 300)] {
            let end = now + Duration::from_secs(life);
            let session = Credentials::new("KEY", "secret", None, Some(end), "test");
            let known = KnownCredentials::new(session, now);
            let renew_at = end - Duration::from_secs(before);
            assert!(known.is_fresh(renew_at - Duration::from_millis(1)), "{life}");
            assert!(!known.is_fresh(renew_at) && !known.has_ended(renew_at), "{life}");
            assert!(known.has_ended(end), "{life}");
        }
    }

    #[tokio::test]
    async fn credentials_are_provided_once_while_they_are_fresh() {
        for lifetime in [None, Some(Duration::from_mins(10))] {
            let (sessions, credentials) = Sessions::of(lifetime);
            let keys = futures::future::join_all((0..8).map(|_| key(&credentials))).await;
            assert!(keys.iter().all(|key| key == "KEY0"), "{keys:?}");
            assert_eq!(sessions.issued.load(Relaxed), 1);
            assert!(credentials.forget("KEY1"), "an earlier one");
            assert_eq!(key(&credentials).await, "KEY0");
            assert_eq!(credentials.forget("KEY0"), lifetime.is_some());
            let expected = if lifetime.is_some() { "KEY1" } else { "KEY0" };
            assert_eq!(key(&credentials).await, expected);
        }
    }

    #[tokio::test]
    async fn a_failed_renewal_is_an_error_once_the_session_has_ended() {
        let (sessions, credentials) = Sessions::of(Some(Duration::from_millis(500)));
        assert_eq!(key(&credentials).await, "KEY0");
        sessions.is_failing.store(true, Relaxed);
        let began = std::time::Instant::now();
        tokio::time::sleep(Duration::from_millis(420)).await;
        if let Ok(found) = credentials.current().await {
            assert_eq!(found.access_key_id(), "KEY0");
        } else {
            assert!(began.elapsed() >= Duration::from_millis(500), "a slow machine");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(credentials.current().await.is_err());
        sessions.is_failing.store(false, Relaxed);
        assert_eq!(key(&credentials).await, "KEY1");
    }
}
