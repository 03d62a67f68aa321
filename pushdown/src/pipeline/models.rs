//! The models of a pipeline.

use std::{ops::Range, sync::Arc, time::Duration};

#[cfg(feature = "models")]
use pushdown_model::ModelStep;

use super::{NamedModel, Normalization};
use crate::{Pipeline, Step, fuse::joined};

impl Step {
    /// The models that the step runs, including those in steps of an inner pipeline.
    pub fn models(&self) -> Vec<Arc<dyn NamedModel>> {
        let own = self.own_model().into_iter();
        own.chain(self.inner().iter().flat_map(Self::models)).collect()
    }
}

impl Pipeline {
    /// Warnings for the author of the pipeline: inputs of a model that are not normalised as its card says, and models without
    /// batch axis. One ASCII sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(index, step): (usize, &Step)| {
            let required = step.input_normalization()?;
            let model = step.own_model()?;
            let before = self.steps[..index].iter().rev();
            let normalize = before.into_iter().find_map(|step| match step {
                Step::Normalize(normalize) => Some(normalize),
                _ => None,
            });
            let name = model.name();
            let Normalization { mean, std } = &required;
            match normalize {
                Some(normalize) if normalize.is_close_to(&required) => None,
                Some(_) => Some(format!(
                    "the model {name} was trained with mean={mean:?} and std={std:?}, but the pipeline normalizes with other \
                     values; use normalize(model={name})"
                )),
                None => Some(format!(
                    "the model {name} was trained with mean={mean:?} and std={std:?}, but the pipeline does not normalize; put \
                     normalize(model={name}) before it"
                )),
            }
        };
        let mut warnings: Vec<String> = self.steps.iter().enumerate().filter_map(warning).collect();
        let mut models: Vec<_> = self.steps.iter().flat_map(Step::models).collect();
        models.dedup();
        let unbatched = models.iter().filter(|model| !model.is_batched());
        warnings.extend(unbatched.map(|model| {
            format!(
                "the model {} runs on one sample at a time: its results in a batch differ from those of single samples",
                model.name()
            )
        }));
        warnings
    }

    /// The first model in `stretch`: the range of its consecutive steps, and all of them as one step. For callers that run a
    /// model on many samples at once.
    #[cfg(feature = "models")]
    pub fn first_model(&self, stretch: Range<usize>) -> Option<(Range<usize>, ModelStep)> {
        let (start, count, model) = first_model(&self.steps[stretch.clone()])?;
        let start = stretch.start + start;
        Some((start..start + count, model))
    }

    /// CPU time to load the layers that `stretch` runs, with consecutive layers of a model loaded as one part. Based on the last
    /// part of each model that was loaded in this process; zero for models without one.
    pub fn loading_time(&self, stretch: Range<usize>) -> Duration {
        let mut total = Duration::ZERO;
        let mut rest = &self.steps[stretch];
        while let Some((first, following)) = rest.split_first() {
            let (count, time) = match joined(first, following) {
                Some((count, step)) => (count, step.expected_prepare_time()),
                None => (1, first.expected_prepare_time()),
            };
            total += time.unwrap_or_default();
            rest = &rest[count..];
        }
        total
    }
}

/// The first model in `steps`: the index of its first step, the number of its consecutive steps, and all of them as one.
#[cfg(feature = "models")]
fn first_model(steps: &[Step]) -> Option<(usize, usize, ModelStep)> {
    steps.iter().enumerate().find_map(|(start, step)| {
        let Step::Model(first) = step else { return None };
        match joined(step, &steps[start + 1..]) {
            Some((count, Step::Model(all))) => Some((start, count, all)),
            _ => Some((start, 1, first.clone())),
        }
    })
}
