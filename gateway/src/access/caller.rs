//! Who makes a request.

use std::sync::Arc;

use super::key::{Key, Secret};

/// A key, and the one of its secrets that signed.
#[derive(Debug, Clone)]
pub struct Caller {
    key: Arc<Key>,
    /// `None` if any of them may have signed.
    secret_index: Option<usize>,
}

impl Caller {
    /// The caller that signed with this one of the secrets of a key.
    pub const fn new(key: Arc<Key>, secret_index: usize) -> Self {
        Self {
            key,
            secret_index: Some(secret_index),
        }
    }

    /// The key.
    pub const fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The secret that signed; if that is not known, the current one of the key.
    pub fn secret(&self) -> Option<&Secret> {
        self.secrets().first()
    }

    /// The secrets that may have signed.
    pub(super) fn secrets(&self) -> &[Secret] {
        let secrets = self.key.secrets();
        match self.secret_index {
            Some(index) => secrets.get(index..=index).unwrap_or_default(),
            None => secrets,
        }
    }
}

impl From<&Caller> for Caller {
    fn from(caller: &Caller) -> Self {
        caller.clone()
    }
}

impl From<&Arc<Key>> for Caller {
    /// The caller with a key, whichever secret signed.
    fn from(key: &Arc<Key>) -> Self {
        Self {
            key: Arc::clone(key),
            secret_index: None,
        }
    }
}
