//! Where the names of networks are looked up.

use std::{fmt, sync::Arc};

use super::Network;
use crate::{Error, Result};

/// Networks by name. A gateway has a folder of them, a reader those of its gateway.
pub trait Networks: fmt::Debug + Send + Sync {
    /// The network `name`, if it is known here.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a name that is not known, with those that are;
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a network that cannot be used, with the reason;
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) where no network can be run.
    fn find(&self, name: &str) -> Result<Arc<Network>>;
}

/// No networks at all: where a pipeline is only to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNetworks;

impl Networks for NoNetworks {
    fn find(&self, name: &str) -> Result<Arc<Network>> {
        Err(Error::runtime(format!(
            "the network `{name}` is not known here: no networks are served"
        )))
    }
}
