//! Looks up the models that a pipeline names. The language knows a model by its name only; the steps that use it know more.

use std::{any::Any, fmt, sync::Arc};

use crate::{Error, Result};

/// A model that a pipeline can name.
pub trait NamedModel: Any + fmt::Debug + Send + Sync {
    /// The mean and the standard deviation that inputs of the model are normalized with, if they are known: one value for all
    /// channels, or one per channel.
    fn normalization(&self) -> Option<(Vec<f32>, Vec<f32>)>;
}

/// Models by name. A gateway resolves the models of its folder, a reader those of its gateway.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The model called `name`.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for an unknown name, with the known ones;
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a model that cannot be used, with the reason;
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) where no model can run.
    fn resolve(&self, name: &str) -> Result<Arc<dyn NamedModel>>;
}

/// Resolves no model. For callers that only read pipelines.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl Resolver for NoModels {
    fn resolve(&self, name: &str) -> Result<Arc<dyn NamedModel>> {
        Err(Error::runtime(format!(
            "the model `{name}` is unknown: no models are served"
        )))
    }
}
