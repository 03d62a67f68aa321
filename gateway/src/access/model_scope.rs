//! The models that a caller can use.

use std::sync::Arc;

use super::grants::Denied;
use super::key::Key;

/// The models that a caller can list, run and download. Others do not exist for it.
#[derive(Debug, Clone)]
pub enum ModelScope {
    /// All models: in forward mode.
    All,
    /// The models of a key.
    Key(Arc<Key>),
}

impl ModelScope {
    /// Whether the model with this name is one of them, if it exists.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Key(key) => key.models().contains(name),
        }
    }

    /// Decides whether the caller may use the model with this name.
    ///
    /// # Errors
    /// [`Denied::NoModel`], whether the model exists or not.
    pub fn check(&self, name: &str) -> Result<(), Denied> {
        if self.contains(name) {
            Ok(())
        } else {
            Err(Denied::NoModel(name.to_owned()))
        }
    }
}
