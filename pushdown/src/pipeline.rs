//! A pipeline: checked steps, their kinds, and the one canonical way to write them down.

mod call;
mod digest;
mod json;
mod rows;
mod text;
mod value;

use std::{fmt, str::FromStr};

pub use call::{Args, FromValue, Side};
pub(crate) use call::{Call, choice};
pub use digest::Digest;
pub use value::Value;
pub(crate) use value::{excerpt, is_plain};

use crate::{
    BytesKind, Error, ErrorKind, Kind, Result, Sample, Step, limits,
    step::model::{ModelResolver, NoModels},
};

/// A parameter of a step, for binding arguments and for people.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in a pipeline.
    pub name: &'static str,
    /// Type and default, for people: `pixels`, `0..1 = 0.5`.
    pub form: &'static str,
    /// One line of explanation.
    pub summary: &'static str,
    /// Whether it can only be given by name.
    pub named_only: bool,
}

impl Param {
    /// A parameter that can be given by position.
    pub const fn positional(name: &'static str, form: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            form,
            summary,
            named_only: false,
        }
    }

    /// A parameter that is given by name.
    pub const fn named(name: &'static str, form: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            form,
            summary,
            named_only: true,
        }
    }
}

/// An ordered list of steps whose kinds fit. The empty pipeline does not exist.
///
/// Two pipelines are equal when their steps are, however they were written.
#[derive(Debug, Clone)]
pub struct Pipeline {
    steps: Vec<Step>,
    /// Byte offset of each step in the text it was parsed from.
    positions: Vec<usize>,
    /// `steps.len() + 1` kinds, as far as the text alone fixes them.
    kinds: Vec<Kind>,
}

impl Pipeline {
    /// Parses and checks a pipeline without models: text, or the JSON array that says the same.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) with the position, what was found and what was expected;
    /// [`ErrorKind::ModelRuntime`](crate::ErrorKind) for a model.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &NoModels)
    }

    /// Parses and checks a pipeline whose models are those of `models`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) with the position, what was found and what was expected; and
    /// as [`Models::find`].
    pub fn parse_with(text: &str, models: &dyn ModelResolver) -> Result<Self> {
        if text.trim_start().starts_with('[') {
            json::parse(text, models)
        } else {
            Self::parse_text(text, models)
        }
    }

    fn parse_text(text: &str, models: &dyn ModelResolver) -> Result<Self> {
        let calls = text::parse(text)?;
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
        pipeline.kinds = pipeline.stages(&Kind::object())?;
        Ok(pipeline)
    }

    /// The same pipeline with its models cut, in at most `most` places each, where a split inside of them may be worth
    /// while. It computes the same.
    #[must_use]
    pub fn refined(&self, most: usize) -> Self {
        let mut refined = Self {
            steps: Vec::new(),
            positions: Vec::new(),
            kinds: Vec::new(),
        };
        for (step, position) in self.steps.iter().zip(&self.positions) {
            let parts = match step {
                Step::Model(model) => model.refined(most).into_iter().map(Step::Model).collect(),
                step => vec![step.clone()],
            };
            refined.positions.extend(vec![*position; parts.len()]);
            refined.steps.extend(parts);
        }
        // The steps fit as they did: a model's cut is followed by what takes it.
        match refined.stages(&Kind::object()) {
            Ok(kinds) if refined.steps.len() <= limits::MAX_STEPS => Self { kinds, ..refined },
            _ => self.clone(),
        }
    }

    /// Where stage `written` of the pipeline that this one was [`refined`](Self::refined) from stands here.
    pub fn stage_as_written(&self, written: usize) -> usize {
        let ends = |index: usize| self.positions.get(index) != self.positions.get(index + 1);
        let ends = (0..self.len())
            .filter(|index| ends(*index))
            .map(|index| index + 1);
        std::iter::once(0).chain(ends).nth(written).unwrap_or(self.len())
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of steps; there is at least one.
    #[expect(clippy::len_without_is_empty, reason = "the empty pipeline does not exist")]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The kinds of the stages 0 to `len()`, as far as the text alone fixes them.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kinds of the stages 0 to `len()` for an object of which something is known.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`](crate::ErrorKind) at the step whose input does not fit, where others would;
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) where nothing is known of the object.
    pub fn stages(&self, object: &Kind) -> Result<Vec<Kind>> {
        let any = *object == Kind::object();
        let mut kinds = vec![object.clone()];
        for (index, step) in self.steps.iter().enumerate() {
            let next = step.output(&kinds[index]).map_err(|expected| {
                let (position, text) = (self.positions[index], format!("`{}` {expected}", step.name()));
                if any {
                    Error::pipeline(position, text)
                } else {
                    Error::unsuitable(text).located(position)
                }
            })?;
            kinds.push(next);
        }
        Ok(kinds)
    }

    /// The stage with the fewest bytes among those that can be predicted, and no more than the object has.
    ///
    /// Stages after the object whose size is not known beforehand (an encoded image) are never chosen. Ties go
    /// to the later stage: it leaves less to do.
    pub fn smallest_stage(&self, object: &BytesKind) -> usize {
        let stages = self.stages(&Kind::Bytes(*object)).unwrap_or_default();
        let sized = stages
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

    /// Checks that every random step among the first `stage` has its seed and epoch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPipeline`](crate::ErrorKind) at the first one that lacks either.
    pub fn check_randomness(&self, stage: usize, seed: Option<u64>, epoch: Option<u32>) -> Result<()> {
        (0..stage).try_for_each(|index| self.randomness(index, seed, epoch).map(drop))
    }

    /// The seed and the epoch that step `index` draws from; `None` where it is not random.
    pub(crate) fn randomness(
        &self,
        index: usize,
        seed: Option<u64>,
        epoch: Option<u32>,
    ) -> Result<Option<(u64, u32)>> {
        let step = &self.steps[index];
        if let Step::Each(each) = step {
            // Its steps draw for each row.
            let inner = each.pipeline();
            let checked = inner.check_randomness(inner.len(), seed, epoch);
            return checked.map(|()| None).map_err(|error| {
                let (_, message) = error.unlocated();
                Error::pipeline(self.positions[index], message)
            });
        }
        let missing = match (step.seed().or(seed), epoch) {
            _ if !step.is_random() => return Ok(None),
            (Some(seed), Some(epoch)) => return Ok(Some((seed, epoch))),
            (None, _) => "a seed: give `seed=` to the step or a seed with the request",
            (_, None) => "an epoch with the request",
        };
        let message = format!("`{}` is random and needs {missing}", step.name());
        Err(Error::pipeline(self.positions[index], message))
    }

    /// The error with the place of step `index`, where it is about the pipeline and has none.
    pub(crate) fn located(&self, index: usize, error: Error) -> Error {
        match (error.kind(), error.position()) {
            (ErrorKind::InvalidPipeline, None) => error.located(self.positions[index]),
            _ => error,
        }
    }

    /// What a user should know of the pipeline though it is none of an error: inputs of a model that are not prepared as
    /// its card has it, a model that takes no batches. ASCII, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(index, step): (usize, &Step)| {
            let Step::Model(model) = step else { return None };
            let (mean, std) = model.normalization()?;
            let before = self.steps[..index].iter().rev();
            let normalize = before.into_iter().find_map(|step| match step {
                Step::Normalize(normalize) => Some(normalize),
                _ => None,
            });
            let name = &model.model().description().name;
            match normalize {
                Some(normalize) if normalize.is(&mean, &std) => None,
                Some(_) => Some(format!(
                    "the model {name} was trained with mean={mean:?} and std={std:?}, and the pipeline normalizes otherwise; \
                     normalize(model={name}) takes these"
                )),
                None => Some(format!(
                    "the model {name} was trained with mean={mean:?} and std={std:?}, and nothing normalizes before it; \
                     put normalize(model={name}) there"
                )),
            }
        };
        let mut warnings: Vec<String> = self.steps.iter().enumerate().filter_map(warning).collect();
        let mut models: Vec<_> = self.steps.iter().flat_map(Step::models).collect();
        models.dedup();
        let alone = models.iter().map(|model| model.description());
        warnings.extend(alone.filter(|model| !model.batched).map(|model| {
            format!(
                "the model {} runs on one sample at a time: a batch does not give what its samples give alone",
                model.name
            )
        }));
        warnings
    }

    /// The canonical text of the first `stage` steps; what digests and ETags are made of.
    pub fn canonical(&self, stage: usize) -> String {
        self.steps[..stage]
            .iter()
            .map(Step::to_string)
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical(self.len()).as_bytes())
    }

    /// Whether `sample` may stand at `stage`.
    pub fn accepts(&self, stage: usize, sample: &Sample) -> bool {
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
