//! Runs steps on this host, timed for the planner.

use std::{ops::Range, time::Instant};

use pushdown::{Context, Sample, plan::Stage};

use super::Session;
use crate::planning::{Event, arrived_stage};

impl Session {
    /// Runs steps of a sample, and reports their time to the planner.
    pub(super) fn run_steps(
        &self,
        index: usize,
        steps: Range<usize>,
        sample: Sample,
        context: &Context<'_>,
    ) -> pushdown::Result<Sample> {
        let Some(adapter) = &self.adapter else {
            return self.pipeline.run(steps, sample, context);
        };
        let stored = match &sample {
            Sample::Bytes(object) if steps.start == 0 => Some(object.len() as u64),
            _ => self.objects.bytes(index),
        };
        let is_cropped = arrived_stage(steps.start, &sample) == Stage::CroppedJpeg;
        let since = Instant::now();
        let (value, ran) = self
            .pipeline
            .run_timed(steps, sample, context, || since.elapsed())?;
        adapter.observe(Event::HostStepsRan {
            stored,
            is_cropped,
            ran,
        });
        Ok(value)
    }
}
