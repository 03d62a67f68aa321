//! Steps that run here, timed where a plan follows from it.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use pushdown::{Context, Sample};

use super::Session;
use crate::adapt::Ran;

impl Session {
    /// Runs steps of a sample, and tells the planner what they took.
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
            _ => self.objects[index].bytes,
        };
        let mut ran: Vec<(Ran, Instant)> = Vec::new();
        let end = |ran: &mut Vec<(Ran, Instant)>| {
            if let Some((last, since)) = ran.last_mut() {
                last.time = since.elapsed();
            }
        };
        let value = self
            .pipeline
            .run_observed(steps, sample, context, |first, steps| {
                end(&mut ran);
                let time = Duration::ZERO;
                ran.push((Ran { first, steps, time }, Instant::now()));
            })?;
        end(&mut ran);
        let ran: Vec<_> = ran.into_iter().map(|(ran, _)| ran).collect();
        adapter.host(stored, &ran);
        Ok(value)
    }
}
