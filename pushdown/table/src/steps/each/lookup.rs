//! Where the computation of a cell starts: from its bytes, or from a cached value.

use bytes::Bytes;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};

use pushdown_core::{
    Context, Result, Sample,
    step::{CachedCell, CellValue, CellValues, InnerPipeline},
};

/// The lookup of the cached values of a cell.
pub(super) struct Lookup {
    bytes: Bytes,
    /// The last stage whose value is cached.
    stage: usize,
    cell: Box<dyn CachedCell>,
    value: Shared<BoxFuture<'static, Option<CellValue>>>,
}

/// The state of a lookup.
pub(super) enum LookupState {
    Done(CellStart),
    /// The lookup can go on when this is done.
    Waiting(BoxFuture<'static, ()>),
}

/// What the value of a cell is computed from.
pub(super) struct CellStart {
    value: Sample,
    /// The number of steps applied to it.
    stage: usize,
    /// Caches the value at this stage.
    cached: Option<(usize, Box<dyn CachedCell>)>,
}

impl Lookup {
    pub(super) fn new(cells: &dyn CellValues, bytes: Bytes) -> Self {
        let cell = cells.cell(&bytes);
        Self {
            bytes,
            stage: cells.stage(),
            value: cell.get().shared(),
            cell,
        }
    }

    /// Returns what there is to start from, or the lookup if it has to be waited for.
    pub(super) fn poll(self) -> (LookupState, Option<Self>) {
        let Some(found) = self.value.clone().now_or_never() else {
            let event = self.value.clone().map(drop).boxed();
            return (LookupState::Waiting(event), Some(self));
        };
        let start = match found {
            Some(CellValue { stage, sample }) => CellStart {
                value: sample,
                stage,
                cached: (stage < self.stage).then_some((self.stage, self.cell)),
            },
            None => CellStart {
                value: Sample::Bytes(self.bytes),
                stage: 0,
                cached: Some((self.stage, self.cell)),
            },
        };
        (LookupState::Done(start), None)
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

    /// Runs the steps that are left until `until`, and caches the last value that is the same in every epoch.
    pub(super) fn run(
        self,
        pipeline: &dyn InnerPipeline,
        until: usize,
        context: &Context<'_>,
    ) -> Result<Sample> {
        let Self {
            mut value,
            stage: mut done,
            cached,
        } = self;
        if let Some((stage, cell)) = cached
            // A cut between steps costs what running them together saves.
            && (stage == until || cell.is_wanted())
        {
            let steps = done..stage;
            value = cell.compute(Box::new(move || pipeline.run(steps, value, context)))?;
            done = stage;
        }
        pipeline.run(done..until, value, context)
    }
}
