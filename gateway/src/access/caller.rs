//! Who makes a request.

use std::sync::Arc;

use super::key::{Key, Secret};

/// A key, and the one of its secrets that signed.
#[derive(Debug, Clone)]
pub struct Caller {
    key: Arc<Key>,
    secret_index: usize,
}

impl Caller {
    /// The caller that signed with this one of the secrets of a key.
    pub const fn new(key: Arc<Key>, secret_index: usize) -> Self {
        Self { key, secret_index }
    }

    /// The key.
    pub const fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The secret that signed.
    pub fn secret(&self) -> Option<&Secret> {
        self.key.secrets().get(self.secret_index)
    }
}

impl From<&Caller> for Caller {
    fn from(caller: &Caller) -> Self {
        caller.clone()
    }
}

#[cfg(test)]
impl From<&Arc<Key>> for Caller {
    /// A caller that signed with the current secret of a key.
    fn from(key: &Arc<Key>) -> Self {
        Self::new(Arc::clone(key), 0)
    }
}
