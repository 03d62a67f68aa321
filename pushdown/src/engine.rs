//! The engine of a pipeline's steps.

use crate::{Engine, Family, Result, Step};

impl Step {
    /// The families of the step, whose versions its output depends on: its own, and those of the steps of an inner pipeline that it
    /// runs. Without models, which have a runtime instead.
    pub fn families(&self) -> Vec<Family> {
        let own = self.own_families().iter().copied();
        own.chain(self.inner().iter().flat_map(Self::families)).collect()
    }
}

/// The engine of this process for these steps.
///
/// # Errors
/// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why their models cannot run.
pub fn engine_of(steps: &[Step]) -> Result<Engine> {
    // All models have the same runtime.
    let model = steps.iter().flat_map(Step::models).next();
    let runtime = model.map(|model| model.runtime_identity()).transpose()?;
    Ok(Engine::new(steps.iter().flat_map(Step::families), runtime))
}

/// As [`engine_of`], without the model runtime if no model can run: then no value after a model exists.
pub fn available_engine(steps: &[Step]) -> Engine {
    engine_of(steps).unwrap_or_else(|_no_runtime| Engine::new(steps.iter().flat_map(Step::families), None))
}

#[cfg(test)]
mod tests {
    use crate::Pipeline;

    use super::*;

    fn engine(pipeline: &str) -> String {
        engine_of(Pipeline::parse(pipeline).unwrap().steps())
            .unwrap()
            .to_string()
    }

    #[test]
    fn an_engine_has_the_families_of_its_steps() {
        assert_eq!(engine_of(&[]).unwrap().to_string(), "none");
        for (pipeline, expected) in [
            ("decode", "decode=4"),
            ("decode | resize(8, 8) | encode(png)", "decode=4 resample=4"),
            ("decode | to_float | cast(f16)", "decode=4 tensor=4"),
            (
                "decode | random_resized_crop(8, 8)",
                "decode=4 resample=4 random=4",
            ),
            ("decode | flip_h", "decode=4 random=4"),
        ] {
            assert_eq!(engine(pipeline), expected, "{pipeline}");
        }
    }

    #[cfg(feature = "tables")]
    #[test]
    fn each_has_the_families_of_its_inner_pipeline() {
        assert_eq!(engine("select(columns=[a])"), "table=4");
        assert_eq!(
            engine("select(columns=[a]) | sample(0.5, seed=1)"),
            "random=4 table=4"
        );
        assert_eq!(
            engine("select(columns=[a]) | each(a: decode | resize(8, 8))"),
            "decode=4 resample=4 table=4"
        );
        assert_eq!(
            engine("select(columns=[a]) | each(a: decode | resize(8, 8), until=1)"),
            "decode=4 table=4"
        );
    }
}
