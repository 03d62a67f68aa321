//! The interfaces of a cache for the values that a pipeline inside a step computes from single cells of a column.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::InnerPipeline;
use crate::{Result, Sample};

/// Cached values of the cells of one object.
pub trait CellCache: fmt::Debug + Send + Sync {
    /// The values that the first `until` steps of `pipeline` compute. `None` if none of them is the same in every epoch.
    fn values_of(&self, pipeline: &dyn InnerPipeline, until: usize) -> Option<Box<dyn CellValues>>;
}

/// Cached values of one pipeline over the cells of one object.
pub trait CellValues: Send {
    /// The last stage whose value is the same in every epoch.
    fn stage(&self) -> usize;

    /// The values of a cell with these bytes.
    fn cell(&self, bytes: &Bytes) -> Box<dyn CachedCell>;
}

/// Cached values of one cell.
pub trait CachedCell: Send {
    /// The cached value with the most steps, or the one that somebody else computes at this moment.
    fn get(&self) -> BoxFuture<'static, Option<CellValue>>;

    /// Whether the value at the last deterministic stage is worth cutting the steps there.
    fn is_wanted(&self) -> bool;

    /// Computes the value at the last deterministic stage, and caches it if that is worth it.
    ///
    /// # Errors
    /// Those of `compute`.
    fn compute(self: Box<Self>, compute: Box<dyn FnOnce() -> Result<Sample> + '_>) -> Result<Sample>;
}

/// A cached value of a cell.
#[derive(Debug, Clone)]
pub struct CellValue {
    /// The number of steps applied.
    pub stage: usize,
    /// The value.
    pub sample: Sample,
}
