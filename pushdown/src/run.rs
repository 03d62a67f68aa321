//! Runs a stretch of a pipeline over one sample.

use std::{ops::Range, time::Duration};

use crate::{
    Cancellation, Error, Kind, Limits, Pipeline, Result, Sample, fuse,
    step::{Scope, Step, augment::Draws, model::ModelStep},
};

/// What a sample's run depends on beside its value.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The sample's id: the percent-decoded key, then `\0` and the member of a shard.
    pub sample_id: &'a [u8],
    /// Seed of the random steps that have none of their own.
    pub seed: Option<u64>,
    /// Epoch, from 0.
    pub epoch: Option<u32>,
    /// Limits on pixels and bytes.
    pub limits: Limits,
    /// Ends the run early if nobody waits for its result.
    pub cancellation: Cancellation<'a>,
}

/// What steps that ran as one took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// The steps.
    pub steps: Range<usize>,
    /// By the clock that was given.
    pub time: Duration,
}

/// What running a stretch on a sample may take in memory at once, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// Values, output included, and scratch space: everything but the source.
    pub working: u64,
    /// The value of the last stage.
    pub output: u64,
}

impl<'a> Context<'a> {
    /// A context with the default limits and neither seed nor epoch.
    pub fn new(sample_id: &'a [u8]) -> Self {
        Self {
            sample_id,
            seed: None,
            epoch: None,
            limits: Limits::default(),
            cancellation: Cancellation::NEVER,
        }
    }

    /// The same with a seed and an epoch.
    #[must_use]
    pub fn with_randomness(mut self, seed: u64, epoch: u32) -> Self {
        self.seed = Some(seed);
        self.epoch = Some(epoch);
        self
    }
}

impl Pipeline {
    /// Runs the steps `stretch` on `sample`, a value of stage `stretch.start`.
    ///
    /// `run(i..j)` then `run(j..k)` is the same, bit for bit, as `run(i..k)` (law 1).
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable), [`Unsuitable`](crate::ErrorKind::Unsuitable) or
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for the sample;
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a random step without seed or epoch;
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a value that cannot stand at that stage; those of
    /// [`Cancellation::check`].
    pub fn run(&self, stretch: Range<usize>, sample: Sample, context: &Context<'_>) -> Result<Sample> {
        let (sample, _) = self.run_timed(stretch, sample, context, || Duration::ZERO)?;
        Ok(sample)
    }

    /// As [`run`](Self::run), with the duration of each step, or group of fused steps. `clock` gives the time since any
    /// instant; it is called before and after each group. Loading weights is not measured.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_timed(
        &self,
        stretch: Range<usize>,
        mut sample: Sample,
        context: &Context<'_>,
        mut clock: impl FnMut() -> Duration,
    ) -> Result<(Sample, Vec<Timed>)> {
        if stretch.start > stretch.end || stretch.end > self.len() {
            return Err(Error::wire(format!(
                "steps {stretch:?} of a pipeline of {} steps",
                self.len()
            )));
        }
        let (mut index, mut groups) = (stretch.start, Vec::new());
        while index < stretch.end {
            let kind = self.check_output(index, &Kind::from(&sample), &context.limits)?;
            // A group that is to fail runs step by step, to fail as its steps do.
            let group = fuse::group(&self.steps()[index..stretch.end], &sample).and_then(|group| {
                let behind = index + 1..index + group.steps;
                let scope = self.scope(index + group.steps - 1, context).ok()?;
                self.check(behind, &kind, &context.limits).ok()?;
                Some((group, scope))
            });
            let layers = match (&group, &self.steps()[index]) {
                (Some((group, _)), _) => group.layers(),
                (None, Step::Model(layers)) => Some(layers),
                (None, _) => None,
            };
            if let Some(layers) = layers {
                layers.make_ready().map_err(|error| self.located(index, error))?;
            }
            let count = group.as_ref().map_or(1, |(group, _)| group.steps);
            context.cancellation.check()?;
            let began = clock();
            sample = match group {
                Some((group, scope)) => group.apply(sample, &scope)?,
                None => self.steps()[index]
                    .apply(sample, &self.scope(index, context)?)
                    .map_err(|error| self.located(index, error))?,
            };
            groups.push(Timed {
                steps: index..index + count,
                time: clock().saturating_sub(began),
            });
            index += count;
        }
        Ok((sample, groups))
    }

    /// Holds every value that running `stretch` would make against the limits, as far as sizes can be told from
    /// `input` alone. Running checks the same again: this is for refusing early, before anything is fetched.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn check(&self, stretch: Range<usize>, input: &Kind, limits: &Limits) -> Result<()> {
        stretch
            .into_iter()
            .try_fold(input.clone(), |kind, index| {
                self.check_output(index, &kind, limits)
            })
            .map(drop)
    }

    /// The first layers of a model in `stretch`: the steps that they are, and all of them as one. For callers that
    /// run the layers of many samples at once.
    pub fn first_layers(&self, stretch: Range<usize>) -> Option<(Range<usize>, ModelStep)> {
        let (start, count, layers) = fuse::first_layers(&self.steps()[stretch.clone()])?;
        let start = stretch.start + start;
        Some((start..start + count, layers))
    }

    /// CPU time that it takes here to have the layers in memory that `stretch` runs, each model's as one part: by those of
    /// each model that were made last, and none for one of which none were.
    pub fn loading_time(&self, stretch: Range<usize>) -> Duration {
        let mut all = Duration::ZERO;
        let mut rest = stretch;
        while let Some((layers, part)) = self.first_layers(rest.clone()) {
            all += part.making_time().unwrap_or_default();
            rest.start = layers.end;
        }
        all
    }

    /// What running `stretch` on a value of kind `input` takes; `None` where it depends on more than is known.
    pub fn peak(&self, stretch: Range<usize>, input: &Kind) -> Option<Peak> {
        let mut kind = input.clone();
        let mut peak = Peak {
            working: 0,
            output: 0,
        };
        for index in stretch {
            let step = &self.steps()[index];
            let next = step.output(&kind).ok()?;
            // An encoder's output is not known beforehand; it is bounded by what it encodes, closely enough.
            let output = next.bytes().or_else(|| kind.bytes())?;
            let held = if index == 0 { 0 } else { kind.bytes()? };
            peak.working = peak.working.max(
                held.saturating_add(output)
                    .saturating_add(step.scratch_bytes(&kind)?),
            );
            peak.output = output;
            kind = next;
        }
        Some(peak)
    }

    pub(crate) fn scope<'c>(&self, index: usize, context: &'c Context<'_>) -> Result<Scope<'c>> {
        let draws = match self.randomness(index, context.seed, context.epoch)? {
            Some((seed, epoch)) => {
                let ordinal = self.steps()[..index]
                    .iter()
                    .filter(|step| step.is_random())
                    .count();
                Draws::new(seed, epoch, context.sample_id, ordinal)
            }
            None => Draws::none(),
        };
        Ok(Scope {
            limits: &context.limits,
            sample_id: context.sample_id,
            draws,
            seed: context.seed,
            epoch: context.epoch,
            cancellation: context.cancellation,
        })
    }

    /// Holds the output of step `index` against the limits, before anything is allocated for it.
    fn check_output(&self, index: usize, input: &Kind, limits: &Limits) -> Result<Kind> {
        let step = &self.steps()[index];
        let output = step
            .output(input)
            .map_err(|expected| Error::unsuitable(format!("`{}` {expected}", step.name())))?;
        if let Kind::Image(image) = &output
            && image.pixels().is_some_and(|pixels| pixels > limits.max_pixels)
        {
            let message = format!(
                "`{}` would make an image of {} x {} pixels, more than the limit of {} pixels",
                step.name(),
                image.width.unwrap_or_default(),
                image.height.unwrap_or_default(),
                limits.max_pixels
            );
            // What an object decodes to is the object's fault; what a later step makes of it is the request's.
            let decoded = matches!(input, Kind::Bytes(_));
            return Err(if decoded {
                Error::undecodable(message)
            } else {
                Error::too_large(message)
            });
        }
        match output.bytes() {
            Some(bytes) if bytes > limits.max_value_bytes => Err(Error::too_large(format!(
                "`{}` would make a value of {bytes} bytes, more than the limit of {}",
                step.name(),
                limits.max_value_bytes
            ))),
            _ => Ok(output),
        }
    }
}

#[cfg(test)]
mod tests;
