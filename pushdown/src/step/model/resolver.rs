//! Where the names of models are looked up.

use std::{fmt, sync::Arc};

use super::Model;
use crate::{Error, Result};

/// Models by name. A gateway has a folder of them, a reader those of its gateway.
pub trait ModelResolver: fmt::Debug + Send + Sync {
    /// The model `name`, if it is known here.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a name that is not known, with those that are;
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a model that cannot be used, with the reason;
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) where no model can be run.
    fn find(&self, name: &str) -> Result<Arc<Model>>;
}

/// No models at all: where a pipeline is only to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl ModelResolver for NoModels {
    fn find(&self, name: &str) -> Result<Arc<Model>> {
        Err(Error::runtime(format!(
            "the model `{name}` is not known here: no models are served"
        )))
    }
}
