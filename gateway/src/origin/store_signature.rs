//! The signature of a request for the store.

use std::sync::Arc;

use super::Signing;
use crate::access::ModelScope;

/// The signature with which a request goes to the store.
#[derive(Debug, Clone)]
pub enum StoreSignature {
    /// The caller's own, unchanged: in forward mode, where the store verifies it and decides.
    Unchanged,
    /// A new one for each attempt: in re-sign mode, where the gateway has verified the caller and decided.
    Renewed(Signing),
}

impl StoreSignature {
    /// What signs again, in re-sign mode.
    pub const fn signing(&self) -> Option<&Signing> {
        match self {
            Self::Unchanged => None,
            Self::Renewed(signing) => Some(signing),
        }
    }

    /// The models that the caller can use.
    pub fn model_scope(&self) -> ModelScope {
        match self {
            Self::Unchanged => ModelScope::All,
            Self::Renewed(signing) => ModelScope::Key(Arc::clone(signing.allowed().key())),
        }
    }
}
