//! The stages that are left on a host that cannot run models. They need no plan.

use pushdown::{Pipeline, Step};

use crate::weights::models_of;

/// The first stage from which this host can run the rest of the pipeline, and the stage to request samples at. `None` if
/// this host can run everything.
///
/// No stage before a model is possible, plain reading included. After it there is little to gain, so one stage serves all
/// samples: the one with the fewest bytes, and the last of equal ones.
pub(crate) fn stages_after_models(pipeline: &Pipeline) -> Option<(usize, usize)> {
    let error = models_of(pipeline.steps())
        .iter()
        .find_map(|model| model.runtime_identity().err())?;
    tracing::warn!(%error, "this host cannot run models: they run at the gateway only");
    Some(fewest_bytes(pipeline))
}

fn fewest_bytes(pipeline: &Pipeline) -> (usize, usize) {
    let model = |step: &Step| !step.models().is_empty();
    let first = pipeline
        .steps()
        .iter()
        .rposition(model)
        .map_or(0, |last| last + 1);
    let bytes = |stage: &usize| pipeline.kinds()[*stage].bytes().unwrap_or(u64::MAX);
    let stage = (first..=pipeline.len()).rev().min_by_key(bytes);
    (first, stage.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushdown::{
        Error, ErrorKind, Result,
        pipeline::{NamedModel, Resolver},
        step::model::{Model, ModelDescription, ModelFiles, Runtime, WeightSource},
    };

    use super::*;

    /// A model with an output of 1,000 numbers, and no library to run it.
    #[derive(Debug)]
    struct NoRuntime;

    impl WeightSource for NoRuntime {
        fn fetch(&self) -> Result<ModelFiles> {
            Ok(ModelFiles::default())
        }

        fn runtime(&self) -> Result<Runtime> {
            Err(Error::new(ErrorKind::ModelRuntime, "no library"))
        }
    }

    impl Resolver for NoRuntime {
        fn resolve(&self, name: &str) -> Result<Arc<dyn NamedModel>> {
            let description = serde_json::json!({
                "name": name, "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true,
                "working_bytes": 0, "inputs": [{"tensor": "x", "shape": [3, 8, 8]}], "outputs": [],
                "cut_points": [
                    {"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0},
                    {"tensor": "z", "shape": [1000], "bytes": 4000, "parameters": 0, "macs": 0},
                ],
            });
            let invalid = |error: serde_json::Error| Error::new(ErrorKind::InvalidModel, error.to_string());
            let description: ModelDescription = serde_json::from_value(description).map_err(invalid)?;
            Ok(Arc::new(Model::from_description(description, Self)?))
        }
    }

    #[test]
    fn only_stages_after_the_last_model_are_left() {
        let stages = |text: &str| {
            let text = format!("decode | resize(8, 8) | to_float{text}");
            stages_after_models(&Pipeline::parse_with(&text, &NoRuntime).unwrap())
        };
        assert_eq!(stages(""), None);
        assert_eq!(stages(" | model(n)"), Some((4, 4)));
        assert_eq!(stages(" | model(n) | cast(f16)"), Some((4, 5)));
        assert_eq!(stages(" | model(n) | cast(f16) | cast(f32)"), Some((4, 5)));
        // A stage within the model has fewer bytes, but this host could not continue from it.
        assert_eq!(
            stages(" | model(n, until=y) | model(n, from=y)"),
            Some((5, 5)),
            "the last of the two parts"
        );
    }
}
