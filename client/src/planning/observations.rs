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

    /// What a reader of this pipeline goes on with in place of its own planner. `None` if it is another pipeline, or if the planners
    /// [differ](Planner::is_like).
    pub(super) fn for_reader(self, pipeline: &Pipeline, own: &Planner) -> Option<(Planner, KnownSamples)> {
        let is_same = self.pipeline == pipeline.to_string() && self.planner.is_like(own);
        is_same.then_some((self.planner, self.samples))
    }
}
