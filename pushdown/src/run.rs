//! Runs a range of the steps of a pipeline on one sample.

use std::{ops::Range, time::Duration};

use pushdown_core::step::Draws;

use crate::{Context, Error, Kind, Limits, Pipeline, Result, Sample, fuse, step::Scope};

/// The duration of a step, or of steps that ran as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTiming {
    /// The steps.
    pub steps: Range<usize>,
    /// Duration by the clock of the caller.
    pub time: Duration,
}

/// Upper bounds of the memory for a run on one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakMemory {
    /// Values, including the output, and scratch space, without the object.
    pub working_bytes: u64,
    /// The value of the last stage.
    pub output_bytes: u64,
}

impl Pipeline {
    /// Runs the steps `stretch` on `sample`, a value of stage `stretch.start`. In place of an object it may be the
    /// [`CroppedJpeg`](crate::CroppedJpeg) that [`crop_jpeg`](Self::crop_jpeg) makes of it, if the stretch has the steps that fix the
    /// region.
    ///
    /// `run(i..j)` followed by `run(j..k)` is bit-identical to `run(i..k)` (law 1).
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable), [`Unsuitable`](crate::ErrorKind::Unsuitable) or
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for the sample;
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a random step without seed or epoch;
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a value that cannot stand at that stage; those of
    /// [`Cancellation::check`](crate::Cancellation::check).
    pub fn run(&self, stretch: Range<usize>, sample: Sample, context: &Context<'_>) -> Result<Sample> {
        let (sample, _) = self.run_timed(stretch, sample, context, || Duration::ZERO)?;
        Ok(sample)
    }

    /// Same as [`run`](Self::run); also returns the duration of each step, or group of fused steps. `clock` returns the time
    /// since any fixed instant; it is called before and after each group. The time to load weights is not included.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_timed(
        &self,
        stretch: Range<usize>,
        mut sample: Sample,
        context: &Context<'_>,
        mut clock: impl FnMut() -> Duration,
    ) -> Result<(Sample, Vec<StepTiming>)> {
        if stretch.start > stretch.end || stretch.end > self.len() {
            return Err(Error::wire(format!(
                "invalid range of steps: expected a range within 0..{}, found {stretch:?}",
                self.len()
            )));
        }
        if let Sample::CroppedJpeg(_) = sample
            && (stretch.start > 0 || !self.decodes_a_region(stretch.end))
        {
            return Err(Error::wire(
                "found a cropped JPEG, expected an object: the steps to run do not decode a region of it",
            ));
        }
        let (mut index, mut groups) = (stretch.start, Vec::new());
        while index < stretch.end {
            let kind = self.check_output(index, &Kind::from(&sample), &context.limits)?;
            // Steps that would fail run one by one, so that the error is that of the step.
            let fused = fuse::fuse(&self.steps()[index..stretch.end], &sample).map(|fused| {
                let following = index + 1..index + fused.step_count;
                let scope = self.scope(index + fused.step_count - 1, context)?;
                self.check(following, &kind, &context.limits)?;
                Ok((fused, scope))
            });
            let fused = match (fused.transpose(), &sample) {
                // It is that of a step already: there is nothing that the first step could decode alone.
                (Err(error), Sample::CroppedJpeg(_)) => return Err(error),
                (fused, _) => fused.unwrap_or_default(),
            };
            let step = match &fused {
                Some((fused, _)) => fused.joined(),
                None => Some(&self.steps()[index]),
            };
            if let Some(step) = step {
                step.prepare()
                    .map_err(|error| self.with_step_position(index, error))?;
            }
            let count = fused.as_ref().map_or(1, |(fused, _)| fused.step_count);
            context.cancellation.check()?;
            let start = clock();
            sample = match fused {
                Some((fused, scope)) => fused.apply(sample, &scope)?,
                None => self.steps()[index]
                    .apply(sample, &self.scope(index, context)?)
                    .map_err(|error| self.with_step_position(index, error))?,
            };
            groups.push(StepTiming {
                steps: index..index + count,
                time: clock().saturating_sub(start),
            });
            index += count;
        }
        Ok((sample, groups))
    }

    /// Checks the limits for every value that a run of `stretch` would compute, as far as `input` determines sizes. A run
    /// repeats these checks; this method allows an early error, before the object is read.
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

    /// Peak memory of a run of `stretch` on a value of kind `input`; `None` if `input` does not determine it.
    pub fn peak_memory(&self, stretch: Range<usize>, input: &Kind) -> Option<PeakMemory> {
        let mut kind = input.clone();
        let mut peak = PeakMemory {
            working_bytes: 0,
            output_bytes: 0,
        };
        for index in stretch {
            let step = &self.steps()[index];
            let next = step.output(&kind).ok()?;
            // The size of an encoded image is unknown before it is encoded, and bounded closely enough by its input.
            let output_bytes = next.bytes().or_else(|| kind.bytes())?;
            let input_bytes = if index == 0 { 0 } else { kind.bytes()? };
            let step_bytes = input_bytes
                .saturating_add(output_bytes)
                .saturating_add(step.scratch_bytes(&kind)?);
            peak.working_bytes = peak.working_bytes.max(step_bytes);
            peak.output_bytes = output_bytes;
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
            cells: context.cells.as_ref(),
        })
    }

    /// Checks the limits for the output of step `index`, before memory is allocated for it.
    fn check_output(&self, index: usize, input: &Kind, limits: &Limits) -> Result<Kind> {
        let step = &self.steps()[index];
        let output = step
            .output(input)
            .map_err(|expected| Error::unsuitable(format!("`{}` {expected}", step.name())))?;
        if let Kind::Image(image) = &output
            && image.pixels().is_some_and(|pixels| pixels > limits.max_pixels)
        {
            let message = format!(
                "the image from `{}` is too large: expected at most {} pixels, found {} x {}",
                step.name(),
                limits.max_pixels,
                image.width.unwrap_or_default(),
                image.height.unwrap_or_default()
            );
            // The size of a decoded image is an error of the object; that of a later image is an error of the request.
            let decoded = matches!(input, Kind::Bytes(_));
            return Err(if decoded {
                Error::undecodable(message)
            } else {
                Error::too_large(message)
            });
        }
        match output.bytes() {
            Some(bytes) if bytes > limits.max_value_bytes => Err(Error::too_large(format!(
                "the value from `{}` is too large: expected at most {} bytes, found {bytes}",
                step.name(),
                limits.max_value_bytes
            ))),
            _ => Ok(output),
        }
    }
}

#[cfg(test)]
mod tests;
