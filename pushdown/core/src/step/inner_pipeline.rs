//! The interface of a pipeline that a step runs over each of many values.

use std::{any::Any, fmt, ops::Range};

use crate::{Context, Kind, Result, Sample};

/// A pipeline inside a step. Equal to another one if their canonical texts are.
pub trait InnerPipeline: Any + fmt::Debug + Send + Sync {
    /// The kind of its output, as far as its text determines it.
    fn output(&self) -> &Kind;

    /// The number of its steps.
    fn step_count(&self) -> usize;

    /// Whether any of its steps is random.
    fn is_random(&self) -> bool;

    /// Checks that every random step has a seed and an epoch.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) at the first step that lacks one.
    fn check_randomness(&self, seed: Option<u64>, epoch: Option<u32>) -> Result<()>;

    /// Runs the steps `stretch` on a value of stage `stretch.start`.
    ///
    /// # Errors
    /// Those of the steps.
    fn run(&self, stretch: Range<usize>, value: Sample, context: &Context<'_>) -> Result<Sample>;

    /// The canonical text.
    fn canonical(&self) -> String;
}

impl PartialEq for dyn InnerPipeline {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}
