//! The signature of a request for the store.

use std::sync::Arc;

use super::{Signing, StatedStore};
use crate::access::ModelScope;

/// The signature with which a request goes to the store.
#[derive(Debug, Clone)]
pub enum StoreSignature {
    /// The caller's own, unchanged: in forward mode, where the store verifies it and decides.
    Unchanged,
    /// The caller's own, unchanged, for the store that the request states.
    Stated(StatedStore),
    /// A new one for each attempt: in re-sign mode, where the gateway has verified the caller and decided.
    Renewed(Signing),
}

impl StoreSignature {
    /// What signs again, in re-sign mode.
    pub const fn signing(&self) -> Option<&Signing> {
        match self {
            Self::Unchanged | Self::Stated(_) => None,
            Self::Renewed(signing) => Some(signing),
        }
    }

    /// The store that the request states, if it is not for the gateway's own.
    pub const fn stated(&self) -> Option<&StatedStore> {
        match self {
            Self::Stated(store) => Some(store),
            Self::Unchanged | Self::Renewed(_) => None,
        }
    }

    /// The models that the caller can use.
    pub fn model_scope(&self) -> ModelScope {
        match self {
            Self::Unchanged | Self::Stated(_) => ModelScope::All,
            Self::Renewed(signing) => ModelScope::Key(Arc::clone(signing.allowed().key())),
        }
    }
}
