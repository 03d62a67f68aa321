//! Runs the steps that are left on rows that have arrived, a few rows at a time on all threads.

use std::{ops::Range, sync::Arc};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use pushdown::{Context, Kind, Sample, Table, step::CellHost};

use super::{
    RowId,
    arrived_rows::{ArrivedRows, COMPUTED_ROWS},
    read::RowReader,
};
use crate::{
    epoch::Charge,
    error::{Error, Result},
    planning::HostTimes,
};

/// Rows that have arrived. They count against the budget until the last of them is computed.
#[derive(Debug)]
pub(super) struct HeldRows {
    pub(super) rows: ArrivedRows,
    /// Position of the row group among those that are read.
    pub(super) number: usize,
    _charge: Arc<Charge>,
}

/// Some rows that have arrived.
#[derive(Debug)]
pub(super) struct RowChunk {
    held: Arc<HeldRows>,
    range: Range<usize>,
}

/// Rows after all steps, in the order of the epoch.
#[derive(Debug)]
pub(super) struct RowBlock {
    rows: RecordBatch,
    pub(super) ids: Vec<RowId>,
}

impl HeldRows {
    pub(super) fn new(rows: ArrivedRows, number: usize, charge: Arc<Charge>) -> Self {
        charge.adjust(rows.held_bytes(), 0);
        Self {
            rows,
            number,
            _charge: charge,
        }
    }
}

impl RowBlock {
    /// Removes and returns the first `count` rows, or all.
    pub(super) fn split_off_front(&mut self, count: usize) -> (RecordBatch, Vec<RowId>) {
        let count = count.min(self.ids.len());
        let rest = self.ids.split_off(count);
        let ids = std::mem::replace(&mut self.ids, rest);
        let rows = self.rows.slice(0, count);
        self.rows = self.rows.slice(count, self.rows.num_rows() - count);
        (rows, ids)
    }
}

impl RowReader {
    /// The chunks of rows that have arrived.
    pub(super) fn chunks(&self, held: HeldRows) -> impl Iterator<Item = RowChunk> + use<> {
        let split = &self.splits[held.rows.split];
        let has_steps = split.arrival_steps() < split.pipeline.len();
        let held = Arc::new(held);
        held.rows.chunks(has_steps).map(move |range| RowChunk {
            held: Arc::clone(&held),
            range,
        })
    }

    /// The most chunks that are computed at a time: one more than there are threads, but not more than the budget holds.
    pub(super) fn chunks_in_flight(&self, prefetch_bytes: u64) -> usize {
        let row_bytes = self.bytes.row_bytes.last().copied().flatten().unwrap_or(1);
        let chunk_bytes = row_bytes.saturating_mul(COMPUTED_ROWS as u64).max(1);
        let fitting = usize::try_from(prefetch_bytes / chunk_bytes).unwrap_or(usize::MAX);
        fitting.clamp(1, self.source.cpu.threads() + 1)
    }

    /// Runs the steps that are left on a chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`](crate::ErrorKind) for an object replaced since its footer was read; errors of the steps.
    pub(super) async fn compute(self: Arc<Self>, chunk: RowChunk, epoch: u32) -> Result<RowBlock> {
        let RowChunk { held, range } = chunk;
        let (object, number) = (held.rows.object, held.number);
        let reader = Arc::clone(&self);
        let ids = held.rows.ids(range.clone()).to_vec();
        let work = move || {
            let table = reader.run_steps(&held.rows, range, epoch)?;
            if !reader.columns.are_of(object, table.schema()) {
                return Err(reader.source.replaced(object, "found other columns"));
            }
            let rows = concat_batches(table.schema(), table.batches());
            let rows = rows.map_err(|error| Error::internal("cannot concatenate rows").with_source(error))?;
            let converted = reader.columns.convert(object, &rows);
            converted.map_err(|error| reader.source.tables[object].map_error(error))
        };
        let rows = self.source.cpu.run_for(number, work).await??;
        Ok(RowBlock { rows, ids })
    }

    fn run_steps(&self, rows: &ArrivedRows, range: Range<usize>, epoch: u32) -> Result<Table> {
        let (source, split) = (&self.source, &self.splits[rows.split]);
        let taken = rows.take(range)?;
        let steps = split.arrival_steps()..split.pipeline.len();
        if steps.is_empty() {
            return Ok(taken);
        }
        let count = taken.rows();
        let times = self.planner.as_ref().map(|_| Arc::new(HostTimes::new()));
        let cells = times.clone().map(|times| {
            let cells: Arc<dyn CellHost> = times;
            cells
        });
        let context = Context {
            seed: source.seed,
            epoch: Some(epoch),
            limits: source.limits,
            cells,
            ..Context::new(source.objects.key(rows.object).as_bytes())
        };
        let value = split.pipeline.run(steps, Sample::Table(taken), &context);
        match value.map_err(|error| source.tables[rows.object].map_error(error))? {
            Sample::Table(table) => {
                if let Some((planner, times)) = self.planner.as_ref().zip(times) {
                    planner.observe_steps(rows.split, count, &times);
                }
                Ok(table)
            }
            other => Err(Error::internal(format!(
                "expected rows from the suffix, found {}",
                Kind::from(&other)
            ))),
        }
    }
}
