//! Models in a program without the feature `models`: none can be configured, and the step `model` is refused by name.

use std::{fs, io, num::NonZeroUsize, sync::Arc, time::Duration};

use pushdown::{
    Step,
    pipeline::{NamedModel, NoModels, Resolver as _},
};
use serde::Serialize;

use crate::{access::ModelScope, config::Models, error::Result};

/// No models.
#[derive(Debug, Clone)]
pub struct ModelRegistry;

/// The state of a model. A program without the feature `models` never has one.
#[derive(Debug, Serialize)]
pub enum ModelStatus {}

#[expect(
    clippy::unused_async,
    reason = "the same signatures as of the registry that has models"
)]
impl ModelRegistry {
    /// A registry without models.
    pub const fn new(_models: Option<Models>, _budget_bytes: u64) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Inspects nothing.
    pub async fn load(self, _threads: NonZeroUsize) -> anyhow::Result<()> {
        Ok(())
    }

    /// Always.
    pub const fn is_ready(&self) -> bool {
        true
    }

    /// Does not wait.
    pub async fn wait_until_ready(&self, _wait: Duration) -> Result<()> {
        Ok(())
    }

    /// The empty list.
    pub const fn descriptions(&self, _scope: &ModelScope) -> [(); 0] {
        []
    }

    /// The empty list.
    pub const fn statuses(&self) -> Vec<ModelStatus> {
        Vec::new()
    }

    /// Always, as of a gateway without a folder of models: an unknown digest is not found.
    pub const fn serves_weights(&self) -> bool {
        true
    }

    /// No file has any digest.
    pub const fn open_file(&self, _digest: &str, _scope: &ModelScope) -> Option<io::Result<fs::File>> {
        None
    }

    /// No model has any file.
    pub const fn name_of_file(&self, _digest: &str) -> Option<String> {
        None
    }

    /// No model is known.
    pub fn resolve(&self, name: &str, _scope: &ModelScope) -> pushdown::Result<Arc<dyn NamedModel>> {
        NoModels.resolve(name)
    }

    /// Does nothing.
    pub const fn mark_used(&self, _steps: &[Step]) {}
}
