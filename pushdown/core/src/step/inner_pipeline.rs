//! The interface of a pipeline that a step runs over each of many values.

use std::{any::Any, fmt, ops::Range, time::Duration};

use crate::{Context, Kind, Result, Sample};

/// The duration of each group of steps that ran as one.
pub type GroupTimes = Vec<(Range<usize>, Duration)>;

/// A pipeline inside a step. Equal to another one if their canonical texts are.
pub trait InnerPipeline: Any + fmt::Debug + Send + Sync {
    /// The kind of the values at a stage, as far as the text determines it; `None` beyond the last stage.
    fn kind(&self, stage: usize) -> Option<&Kind>;

    /// The number of its steps.
    fn step_count(&self) -> usize;

    /// Whether any of the steps `stretch` is random.
    fn is_random(&self, stretch: Range<usize>) -> bool;

    /// Checks that every random step among the steps `stretch` has a seed and an epoch.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) at the first step that lacks one.
    fn check_randomness(&self, stretch: Range<usize>, seed: Option<u64>, epoch: Option<u32>) -> Result<()>;

    /// Runs the steps `stretch` on a value of stage `stretch.start`.
    ///
    /// # Errors
    /// Those of the steps.
    fn run(&self, stretch: Range<usize>, value: Sample, context: &Context<'_>) -> Result<Sample>;

    /// As [`run`](Self::run); also returns the duration of each group of steps that ran as one, by `clock`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_timed(
        &self,
        stretch: Range<usize>,
        value: Sample,
        context: &Context<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(Sample, GroupTimes)>;

    /// Peak memory of a run of the steps `stretch` on a value of this kind, in bytes without the value; `None` if the kind does not
    /// determine it.
    fn peak_bytes(&self, stretch: Range<usize>, input: &Kind) -> Option<u64>;

    /// The canonical text.
    fn canonical(&self) -> String;
}

/// The steps of an inner pipeline that a step runs: all of them, unless the step is a part of one that was cut.
#[derive(Debug, Clone)]
pub struct InnerSteps<'a> {
    /// The column whose cells they run on.
    pub column: &'a str,
    /// The whole pipeline.
    pub pipeline: &'a dyn InnerPipeline,
    /// The steps.
    pub steps: Range<usize>,
}

impl PartialEq for dyn InnerPipeline {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}
