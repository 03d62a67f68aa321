//! Pipelines: checked steps, their kinds, and their canonical text.

mod inner;
mod json;
mod models;
mod rows;

use std::{fmt, str::FromStr};

use pushdown_core::language::parse_calls;
pub use pushdown_core::language::{
    Args, Digest, FromValue, NamedModel, NoModels, Normalization, Param, Resolver, Side, Value,
};
pub use rows::RowStage;

use crate::{BytesKind, Error, ErrorKind, Kind, Result, Sample, Step, limits};

/// An ordered, non-empty list of steps whose kinds match.
///
/// Pipelines are equal if their steps are equal. Their texts may differ.
#[derive(Debug, Clone)]
pub struct Pipeline {
    steps: Vec<Step>,
    /// Byte offset of each step in the source text.
    positions: Vec<usize>,
    /// `steps.len() + 1` kinds, as far as the text determines them.
    kinds: Vec<Kind>,
}

impl Pipeline {
    /// Parses and checks a pipeline without models, from text or from the equivalent JSON array.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) with the position, what was found and what was expected;
    /// [`ErrorKind::ModelRuntime`](crate::ErrorKind) for a model.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &NoModels)
    }

    /// Parses and checks a pipeline, with models from `models`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) with the position, what was found and what was expected; and
    /// as [`Resolver::resolve`].
    pub fn parse_with(text: &str, models: &dyn Resolver) -> Result<Self> {
        if text.trim_start().starts_with('[') {
            json::parse(text, models)
        } else {
            Self::parse_text(text, models)
        }
    }

    fn parse_text(text: &str, models: &dyn Resolver) -> Result<Self> {
        let calls = parse_calls(text)?;
        if let Some(call) = calls.get(limits::MAX_STEPS) {
            return Err(Error::pipeline(
                call.position,
                format!(
                    "found {} steps, expected at most {}",
                    calls.len(),
                    limits::MAX_STEPS
                ),
            ));
        }
        let steps = calls.iter().map(|call| Step::parse(call, models));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let positions = calls.iter().map(|call| call.position).collect();
        let mut pipeline = Self {
            steps,
            positions,
            kinds: Vec::new(),
        };
        pipeline.kinds = pipeline.kinds_for(&Kind::object())?;
        Ok(pipeline)
    }

    /// The same pipeline with each model cut into up to `max_cuts + 1` steps, at points where a split may pay. The results do
    /// not change.
    #[must_use]
    pub fn refined(&self, max_cuts: usize) -> Self {
        let mut refined = Self {
            steps: Vec::new(),
            positions: Vec::new(),
            kinds: Vec::new(),
        };
        for (step, position) in self.steps.iter().zip(&self.positions) {
            let parts = step.refined(max_cuts);
            refined.positions.extend(vec![*position; parts.len()]);
            refined.steps.extend(parts);
        }
        // The kinds still match, since the parts of a model follow each other.
        match refined.kinds_for(&Kind::object()) {
            Ok(kinds) if refined.steps.len() <= limits::MAX_STEPS => Self { kinds, ..refined },
            _ => self.clone(),
        }
    }

    /// Converts a stage of the original pipeline to a stage of this [`refined`](Self::refined) one.
    pub fn refined_stage(&self, original_stage: usize) -> usize {
        let is_last_part = |index: &usize| self.positions.get(*index) != self.positions.get(index + 1);
        let original_stages = (0..self.len()).filter(is_last_part).map(|index| index + 1);
        std::iter::once(0)
            .chain(original_stages)
            .nth(original_stage)
            .unwrap_or(self.len())
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of steps, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a pipeline is never empty")]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The kinds of the stages 0 to `len()`, as far as the text determines them.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kinds of the stages 0 to `len()` for an object of a known kind.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`](crate::ErrorKind) at the step that cannot process this object;
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) at the step that cannot process any object, if `object` is
    /// [`Kind::object`].
    pub fn kinds_for(&self, object: &Kind) -> Result<Vec<Kind>> {
        let is_unknown = *object == Kind::object();
        let mut kinds = vec![object.clone()];
        for (index, step) in self.steps.iter().enumerate() {
            let next = step.output(&kinds[index]).map_err(|expected| {
                let (position, text) = (self.positions[index], format!("`{}` {expected}", step.name()));
                if is_unknown {
                    Error::pipeline(position, text)
                } else {
                    Error::unsuitable(text).with_position(position)
                }
            })?;
            kinds.push(next);
        }
        Ok(kinds)
    }

    /// The stage with the fewest bytes, among the object and the stages of known size.
    ///
    /// Stages of unknown size, such as encoded images, are never chosen. Among equals, the latest stage wins, since the
    /// fewest steps remain after it.
    pub fn smallest_stage(&self, object: &BytesKind) -> usize {
        let kinds = self.kinds_for(&Kind::Bytes(*object)).unwrap_or_default();
        let sized = kinds
            .iter()
            .enumerate()
            .filter_map(|(stage, kind)| Some((stage, kind.bytes()?)));
        let smallest = sized.min_by_key(|(stage, bytes)| (*bytes, std::cmp::Reverse(*stage)));
        match (smallest, object.length) {
            (Some((stage, _)), Some(_)) => stage,
            _ => 0,
        }
    }

    /// Whether any of the first `stage` steps is random.
    pub fn is_random(&self, stage: usize) -> bool {
        self.steps[..stage].iter().any(Step::is_random)
    }

    /// Checks that every random step among the first `stage` steps has a seed and an epoch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) at the first step that lacks one.
    pub fn check_randomness(&self, stage: usize, seed: Option<u64>, epoch: Option<u32>) -> Result<()> {
        (0..stage).try_for_each(|index| self.randomness(index, seed, epoch).map(drop))
    }

    /// The seed and the epoch of step `index`; `None` if it is not random.
    pub(crate) fn randomness(
        &self,
        index: usize,
        seed: Option<u64>,
        epoch: Option<u32>,
    ) -> Result<Option<(u64, u32)>> {
        let step = &self.steps[index];
        if let Some(inner) = step.inner_steps() {
            // The inner steps draw per row.
            let checked = inner.pipeline.check_randomness(inner.steps, seed, epoch);
            return checked.map(|()| None).map_err(|error| {
                let (_, message) = error.split_position();
                Error::pipeline(self.positions[index], message)
            });
        }
        let missing = match (step.seed().or(seed), epoch) {
            _ if !step.is_random() => return Ok(None),
            (Some(seed), Some(epoch)) => return Ok(Some((seed, epoch))),
            (None, _) => "a seed: set `seed=` of the step or the seed of the request",
            (_, None) => "an epoch: set the epoch of the request",
        };
        let message = format!("`{}` is random and needs {missing}", step.name());
        Err(Error::pipeline(self.positions[index], message))
    }

    /// Adds the position of step `index` to an error of the pipeline that has no position.
    pub(crate) fn with_step_position(&self, index: usize, error: Error) -> Error {
        match (error.kind(), error.position()) {
            (ErrorKind::InvalidPipeline, None) => error.with_position(self.positions[index]),
            _ => error,
        }
    }

    /// The canonical text of the first `stage` steps, used in digests and ETags.
    pub fn canonical(&self, stage: usize) -> String {
        self.steps[..stage]
            .iter()
            .map(Step::to_string)
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        Digest::new(self.canonical(self.len()).as_bytes())
    }

    /// Whether `sample` has the right type for `stage`.
    pub fn accepts(&self, stage: usize, sample: &Sample) -> bool {
        if let Sample::CroppedJpeg(_) = sample {
            return stage == 0 && self.crop_steps().is_some();
        }
        self.kinds
            .get(stage)
            .is_some_and(|kind| std::mem::discriminant(kind) == std::mem::discriminant(&Kind::from(sample)))
    }
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
}

/// The canonical text.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical(self.len()))
    }
}

impl FromStr for Pipeline {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
