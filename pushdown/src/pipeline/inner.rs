//! Pipelines inside a step.

use std::{ops::Range, sync::Arc};

use pushdown_core::{language::Resolver, step::InnerPipeline};

use crate::{Context, Kind, Pipeline, Result, Sample};

impl Pipeline {
    /// Parses the pipeline inside a step.
    pub(crate) fn parse_inner(text: &str, models: &dyn Resolver) -> Result<Arc<dyn InnerPipeline>> {
        Ok(Arc::new(Self::parse_text(text, models)?))
    }
}

impl InnerPipeline for Pipeline {
    fn output(&self) -> &Kind {
        &self.kinds[self.len()]
    }

    fn step_count(&self) -> usize {
        self.len()
    }

    fn is_random(&self) -> bool {
        self.is_random(self.len())
    }

    fn check_randomness(&self, seed: Option<u64>, epoch: Option<u32>) -> Result<()> {
        self.check_randomness(self.len(), seed, epoch)
    }

    fn run(&self, stretch: Range<usize>, value: Sample, context: &Context<'_>) -> Result<Sample> {
        self.run(stretch, value, context)
    }

    fn canonical(&self) -> String {
        self.to_string()
    }
}
