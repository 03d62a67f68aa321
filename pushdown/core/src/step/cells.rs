//! The interfaces of a process to steps that run a pipeline over single cells: cached values, memory, micro-batches, and times.

use std::{fmt, ops::Range, time::Duration};

use bytes::Bytes;
use futures::{
    FutureExt as _,
    future::{BoxFuture, ready},
};

use super::InnerPipeline;
use crate::{Error, Result, Sample};

/// How the error of a value begins that takes more memory than the process has for one. Another process may have it.
pub const TOO_MUCH_MEMORY: &str = "the value takes too much memory";

/// What a process offers to steps that compute values from the cells of one object.
pub trait CellHost: fmt::Debug + Send + Sync {
    /// Cached values that the first `until` steps of `pipeline` compute. `None` without a cache, and if none of them is the same in
    /// every epoch.
    fn values_of(&self, _pipeline: &dyn InnerPipeline, _until: usize) -> Option<Box<dyn CellValues>> {
        None
    }

    /// Waits for the memory that a value takes while it is computed.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for more than one value may take; another error ends the scan.
    fn reserve(&self, _bytes: u64) -> BoxFuture<'static, Result<CellMemory>> {
        let nothing: CellMemory = Box::new(());
        ready(Ok(nothing)).boxed()
    }

    /// The first steps in `stretch` that run on several values at a time. `None` if there are none.
    fn batched_steps(&self, _pipeline: &dyn InnerPipeline, _stretch: Range<usize>) -> Option<Range<usize>> {
        None
    }

    /// Runs [such steps](Self::batched_steps) on a value, together with others.
    ///
    /// # Errors
    /// Those of the steps.
    fn run_batched(
        &self,
        _pipeline: &dyn InnerPipeline,
        _steps: Range<usize>,
        _value: Sample,
    ) -> BoxFuture<'static, Result<Sample>> {
        ready(Err(Error::internal("no step runs on several values at a time"))).boxed()
    }

    /// The time since any fixed instant. `None` if times of steps are not recorded.
    fn now(&self) -> Option<Duration> {
        None
    }

    /// Records how long steps of the pipeline over `column`, which ran as one, took for a value.
    fn record(&self, _column: &str, _steps: Range<usize>, _time: Duration) {}
}

/// Memory that is reserved until this is dropped.
pub type CellMemory = Box<dyn Send>;

/// Cached values of one pipeline over the cells of one object.
pub trait CellValues: Send {
    /// The last stage whose value is the same in every epoch.
    fn stage(&self) -> usize;

    /// The values of a cell with these bytes.
    fn cell(&self, bytes: &Bytes) -> Box<dyn CachedCell>;
}

/// Cached values of one cell.
pub trait CachedCell: Send {
    /// The cached value with the most steps, or the one that another scan is computing.
    fn get(&self) -> BoxFuture<'static, Option<CellValue>>;

    /// Whether the value at the last deterministic stage is worth cutting the steps there.
    fn is_wanted(&self) -> bool;

    /// Begins to compute the value at the last deterministic stage. Others wait for it until the result is dropped.
    fn begin(self: Box<Self>) -> Box<dyn CellComputation>;
}

/// The value of a cell that is being computed.
pub trait CellComputation: Send {
    /// Ends with the value, and caches it if that is worth it.
    fn finish(self: Box<Self>, value: &Sample);
}

/// A cached value of a cell.
#[derive(Debug, Clone)]
pub struct CellValue {
    /// The number of steps applied.
    pub stage: usize,
    /// The value.
    pub sample: Sample,
}
