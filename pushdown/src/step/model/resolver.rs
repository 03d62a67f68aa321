//! Looks up models by name.

use std::{fmt, sync::Arc};

use super::Model;
use crate::{Error, Result};

/// Models by name. A gateway resolves the models of its folder, a reader those of its gateway.
pub trait ModelResolver: fmt::Debug + Send + Sync {
    /// The model called `name`.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for an unknown name, with the known ones;
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a model that cannot be used, with the reason;
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) where no model can run.
    fn find(&self, name: &str) -> Result<Arc<Model>>;
}

/// Resolves no model. For callers that only read pipelines.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl ModelResolver for NoModels {
    fn find(&self, name: &str) -> Result<Arc<Model>> {
        Err(Error::runtime(format!(
            "the model `{name}` is unknown: no models are served"
        )))
    }
}
