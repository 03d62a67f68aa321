//! The models that steps name, and their weights.

use std::sync::Arc;

use pushdown::{Step, pipeline::NamedModel};

/// The models of `steps`, each once.
pub(crate) fn models_of(steps: &[Step]) -> Vec<Arc<dyn NamedModel>> {
    let mut models: Vec<Arc<dyn NamedModel>> = Vec::new();
    for model in steps.iter().flat_map(Step::models) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
}

/// Downloads and loads the weights of `steps` in the background, before the first sample needs them.
pub(crate) fn preload(steps: &[Step]) {
    for model in models_of(steps) {
        if model.is_loaded() {
            continue;
        }
        let load = move || {
            if let Err(error) = model.prepare() {
                tracing::warn!(%error, "this host cannot run the model");
            }
        };
        // If no thread can be started, the first sample loads them.
        drop(
            std::thread::Builder::new()
                .name("pushdown-weights".to_owned())
                .spawn(load),
        );
    }
}
