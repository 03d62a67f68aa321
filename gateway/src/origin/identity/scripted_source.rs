//! A source of credentials for tests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider, future};
use parking_lot::Mutex;

use super::StoreIdentity;

/// A source that returns scripted results in order, and then fails. Clones share the script.
#[derive(Debug, Clone)]
pub(in crate::origin) struct ScriptedSource(Arc<Script>);

#[derive(Debug)]
struct Script {
    results: Mutex<VecDeque<Option<Credentials>>>,
    fetches: AtomicUsize,
}

/// Temporary credentials, which end after `life` or never.
pub(in crate::origin) fn temporary(access_key: &str, life: Option<Duration>) -> Credentials {
    let expiry = life.map(|life| SystemTime::now() + life);
    Credentials::new(access_key, "secret", Some("token".to_owned()), expiry, "test")
}

impl ScriptedSource {
    /// `None` is a failure.
    pub(in crate::origin) fn new(results: impl IntoIterator<Item = Option<Credentials>>) -> Self {
        Self(Arc::new(Script {
            results: Mutex::new(results.into_iter().collect()),
            fetches: AtomicUsize::new(0),
        }))
    }

    /// An identity with this source. Fetches nothing yet.
    pub(in crate::origin) fn identity(&self) -> StoreIdentity {
        StoreIdentity::with_provider(SharedCredentialsProvider::new(self.clone()), false)
    }

    /// An identity with this source, which is the only one that it will ever have.
    pub(in crate::origin) fn fixed_identity(&self) -> StoreIdentity {
        StoreIdentity::with_provider(SharedCredentialsProvider::new(self.clone()), true)
    }

    /// Adds a result at the end of the script.
    pub(in crate::origin) fn push(&self, credentials: Credentials) {
        self.0.results.lock().push_back(Some(credentials));
    }

    /// How often the source was asked.
    pub(in crate::origin) fn fetches(&self) -> usize {
        self.0.fetches.load(Ordering::Relaxed)
    }
}

impl ProvideCredentials for ScriptedSource {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        self.0.fetches.fetch_add(1, Ordering::Relaxed);
        let next: provider::Result = match self.0.results.lock().pop_front().flatten() {
            Some(credentials) => Ok(credentials),
            None => Err(CredentialsError::not_loaded("the source has none")),
        };
        future::ProvideCredentials::ready(next)
    }
}
