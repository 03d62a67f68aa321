//! Looks up the models that a pipeline names. The language knows a model by its name only; the steps that use it know more.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::{Error, Result, RuntimeIdentity};

/// What inputs of a model are normalized with: one value for all channels, or one per channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalization {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations.
    pub std: Vec<f32>,
}

/// A model that a pipeline can name. Equal to another one if their digests are.
pub trait NamedModel: Any + fmt::Debug + Send + Sync {
    /// The name in pipelines.
    fn name(&self) -> &str;

    /// Whether it runs many samples at a time with the results of single ones.
    fn is_batched(&self) -> bool;

    /// SHA-256 of the model, in hex digits.
    fn digest(&self) -> &str;

    /// Bytes of its files.
    fn bytes(&self) -> u64;

    /// Whether its files are on this host.
    fn is_local(&self) -> bool;

    /// Gets its files to this host in parts, without loading them. `pause` is called after each part with the time that the part took, and
    /// returns whether to go on.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) with the reason why the files cannot be had.
    fn download(&self, pause: &dyn Fn(Duration) -> bool) -> Result<()>;

    /// Whether its weights are in memory.
    fn is_loaded(&self) -> bool;

    /// Fetches and loads the weights.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why the model cannot run here, or its files cannot be
    /// fetched.
    fn prepare(&self) -> Result<()>;

    /// What runs the model.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why no model can run here.
    fn runtime_identity(&self) -> Result<RuntimeIdentity>;

    /// What inputs of the model are normalized with, if that is known.
    fn normalization(&self) -> Option<Normalization>;
}

impl PartialEq for dyn NamedModel {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
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
