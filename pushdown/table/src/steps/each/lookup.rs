//! Where the computation of a cell starts: from its bytes, or from a cached value.

use std::task::{Context as Task, Poll, ready};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};

use pushdown_core::{
    Sample,
    step::{CachedCell, CellValue, CellValues},
};

/// The lookup of the cached values of a cell.
pub(super) struct Lookup {
    bytes: Bytes,
    /// The last stage whose value is cached.
    stage: usize,
    /// `None` after the end of the lookup.
    cell: Option<Box<dyn CachedCell>>,
    value: BoxFuture<'static, Option<CellValue>>,
}

/// What the value of a cell is computed from.
pub(super) struct CellStart {
    pub(super) value: Sample,
    /// The number of steps applied to it.
    pub(super) stage: usize,
    /// Caches the value at this stage.
    pub(super) cached: Option<(usize, Box<dyn CachedCell>)>,
}

impl Lookup {
    pub(super) fn new(cells: &dyn CellValues, bytes: Bytes) -> Self {
        let cell = cells.cell(&bytes);
        Self {
            bytes,
            stage: cells.stage(),
            value: cell.get(),
            cell: Some(cell),
        }
    }

    /// The value to start from: a cached one, or the bytes of the cell.
    pub(super) fn poll(&mut self, task: &mut Task<'_>) -> Poll<CellStart> {
        let found = ready!(self.value.poll_unpin(task));
        let cached = self.cell.take().map(|cell| (self.stage, cell));
        Poll::Ready(match found {
            Some(CellValue { stage, sample }) => CellStart {
                value: sample,
                stage,
                cached: cached.filter(|(last, _)| stage < *last),
            },
            None => CellStart {
                value: Sample::Bytes(self.bytes.clone()),
                stage: 0,
                cached,
            },
        })
    }
}

impl CellStart {
    /// A value to which the first `stage` steps were applied.
    pub(super) const fn new(value: Sample, stage: usize) -> Self {
        Self {
            value,
            stage,
            cached: None,
        }
    }
}
