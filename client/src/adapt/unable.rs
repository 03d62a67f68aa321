//! What is left to plan on a host that cannot run models: nothing.

use pushdown::{Pipeline, Step};

use crate::models::of_steps;

/// The first stage from which on this host can run what is left, and the one to have samples at. `None` where it can run
/// everything.
///
/// Before a model no way is left, plain reading included. Behind it little is to be gained, so that one stage serves all
/// samples: the one with the fewest bytes, of equal ones the last.
pub(crate) fn behind_models(pipeline: &Pipeline) -> Option<(usize, usize)> {
    let error = of_steps(pipeline.steps())
        .iter()
        .find_map(|model| model.runtime().err())?;
    tracing::warn!(%error, "models run at the gateway alone");
    Some(fewest_bytes(pipeline))
}

fn fewest_bytes(pipeline: &Pipeline) -> (usize, usize) {
    let model = |step: &Step| step.models().next().is_some();
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
        step::model::{Model, ModelDescription, ModelFiles, ModelResolver, Runtime, WeightSource},
    };

    use super::*;

    /// A model of 1,000 numbers, and no library to run it.
    #[derive(Debug)]
    struct Without;

    impl WeightSource for Without {
        fn fetch(&self) -> Result<ModelFiles> {
            Ok(ModelFiles::default())
        }

        fn runtime(&self) -> Result<Runtime> {
            Err(Error::new(ErrorKind::ModelRuntime, "no library"))
        }
    }

    impl ModelResolver for Without {
        fn find(&self, name: &str) -> Result<Arc<Model>> {
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
            Model::from_description(description, Self).map(Arc::new)
        }
    }

    #[test]
    fn only_ways_behind_the_last_model_are_left() {
        let ways = |text: &str| {
            let text = format!("decode | resize(8, 8) | to_float{text}");
            behind_models(&Pipeline::parse_with(&text, &Without).unwrap())
        };
        assert_eq!(ways(""), None);
        assert_eq!(ways(" | model(n)"), Some((4, 4)));
        assert_eq!(ways(" | model(n) | cast(f16)"), Some((4, 5)));
        assert_eq!(ways(" | model(n) | cast(f16) | cast(f32)"), Some((4, 5)));
        // Less would come from within the model, and nothing could go on with it.
        assert_eq!(
            ways(" | model(n, until=y) | model(n, from=y)"),
            Some((5, 5)),
            "of the two parts the last"
        );
    }
}
