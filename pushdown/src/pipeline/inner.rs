//! Pipelines inside a step.

use std::{any::Any, ops::Range, sync::Arc, time::Duration};

use pushdown_core::{
    language::Resolver,
    step::{GroupTimes, InnerPipeline},
};

use crate::{Context, Kind, Pipeline, Result, Sample, Step};

impl Step {
    /// The steps of an inner pipeline that the step runs; empty for a step without one.
    pub(crate) fn inner(&self) -> &[Self] {
        let steps = self.inner_steps().and_then(|inner| {
            let pipeline: &Pipeline = (inner.pipeline as &dyn Any).downcast_ref()?;
            pipeline.steps().get(inner.steps)
        });
        steps.unwrap_or_default()
    }
}

impl Pipeline {
    /// Parses the pipeline inside a step.
    pub(crate) fn parse_inner(text: &str, models: &dyn Resolver) -> Result<Arc<dyn InnerPipeline>> {
        Ok(Arc::new(Self::parse_text(text, models)?))
    }
}

impl InnerPipeline for Pipeline {
    fn kind(&self, stage: usize) -> Option<&Kind> {
        self.kinds.get(stage)
    }

    fn step_count(&self) -> usize {
        self.len()
    }

    fn is_random(&self, stretch: Range<usize>) -> bool {
        let steps = self.steps.get(stretch).unwrap_or_default();
        steps.iter().any(Step::is_random)
    }

    fn check_randomness(&self, stretch: Range<usize>, seed: Option<u64>, epoch: Option<u32>) -> Result<()> {
        let mut steps = stretch.start..stretch.end.min(self.len());
        steps.try_for_each(|index| self.randomness(index, seed, epoch).map(drop))
    }

    fn run(&self, stretch: Range<usize>, value: Sample, context: &Context<'_>) -> Result<Sample> {
        self.run(stretch, value, context)
    }

    fn run_timed(
        &self,
        stretch: Range<usize>,
        value: Sample,
        context: &Context<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(Sample, GroupTimes)> {
        let (value, groups) = self.run_timed(stretch, value, context, clock)?;
        let groups = groups.into_iter().map(|group| (group.steps, group.time));
        Ok((value, groups.collect()))
    }

    fn peak_bytes(&self, stretch: Range<usize>, input: &Kind) -> Option<u64> {
        self.peak_memory(stretch, input).map(|peak| peak.working_bytes)
    }

    fn canonical(&self) -> String {
        self.to_string()
    }
}
