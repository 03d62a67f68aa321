//! What a planner knows, for the next reader of the same data.

use pushdown::Pipeline;

#[cfg(feature = "tables")]
use super::rows::KnownRows;
use super::{adapt::KnownObjects, planner::Planner};

/// What the planner of a reader has observed, and the plan made from it: the costs of steps, and the speed of machines and link.
///
/// A reader that [continues](crate::reader::PushdownReaderBuilder::observations) with it begins with this plan, instead of trying both routes
/// again.
#[derive(Debug, Clone)]
pub struct Observations {
    pipeline: String,
    planner: Planner,
    samples: KnownSamples,
}

/// What is known besides costs. It is of use for samples of the same kind only.
#[derive(Debug, Clone)]
pub(super) enum KnownSamples {
    /// Objects, and members of shards.
    Objects(KnownObjects),
    /// Rows of Parquet objects.
    #[cfg(feature = "tables")]
    Rows(KnownRows),
}

impl Observations {
    /// What a planner has observed of a pipeline; `None` before the first plan.
    pub(super) fn new(pipeline: &Pipeline, planner: &Planner, samples: KnownSamples) -> Option<Self> {
        planner.decision()?;
        Some(Self {
            pipeline: pipeline.to_string(),
            planner: planner.without_in_flight(),
            samples,
        })
    }

    /// What a reader goes on with that runs this pipeline on this number of threads. `None` if it is another pipeline, or another number.
    pub(super) fn for_reader(self, pipeline: &Pipeline, threads: usize) -> Option<(Planner, KnownSamples)> {
        let is_same = self.pipeline == pipeline.to_string() && self.planner.threads() == threads;
        is_same.then_some((self.planner, self.samples))
    }
}
