//! The state of a model, for the status page.

use pushdown::step::model::{Model, Provider};
use serde::Serialize;

/// A model that pipelines can use.
#[derive(Debug, Serialize)]
pub struct ModelStatus {
    name: String,
    digest: String,
    bytes: u64,
    /// Its weights are in memory.
    loaded: bool,
    /// The provider in use. It may differ from the configured one.
    execution_provider: Provider,
}

impl ModelStatus {
    pub(super) fn new(model: &Model) -> Self {
        let description = model.description();
        Self {
            name: description.name.clone(),
            digest: description.digest.clone(),
            bytes: description.bytes,
            loaded: model.is_loaded(),
            execution_provider: model.provider(),
        }
    }
}
