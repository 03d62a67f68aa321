//! Reads row groups up to the stage at which their rows are handed over.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use arrow_array::{RecordBatch, cast::AsArray as _};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;
use pushdown::{Pipeline, Step, Table, step::TOO_MUCH_MEMORY};

use super::{
    RowId,
    order::{RowGroupSlice, RowOrder},
    planner::RowPlanner,
    row_groups::SampleRows,
    source::{TableSource, is_refusal},
    splits::RowSplit,
};
use crate::{
    error::{Error, Result},
    planning::{ExpansionGuard, SplitBytes},
};

/// Rows of a chunk if this host runs steps on them: enough to keep all threads busy, and few enough that their values are small
/// beside the prefetch budget.
pub(super) const COMPUTED_ROWS: usize = 16;
/// Rows of a chunk that is only taken from the rows that arrived.
const TAKEN_ROWS: usize = 8192;

/// Reads the rows of a data set through a pipeline.
#[derive(Debug)]
pub(super) struct RowReader {
    pub(super) source: TableSource,
    /// The splits of the pipeline, from stored columns to rows after all steps.
    pub(super) splits: Vec<RowSplit>,
    /// The split that is used without a planner.
    pub(super) split: usize,
    pub(super) bytes: SplitBytes,
    /// Set if the split was chosen by estimated bytes.
    pub(super) expansion_guard: Option<ExpansionGuard>,
    /// Chooses the split of each row group, in place of `split`.
    pub(super) planner: Option<RowPlanner>,
    /// Whether rows that the gateway refuses are computed on this host.
    pub(super) falls_back: bool,
    /// Whether the gateway has refused rows: from then on they are computed on this host.
    pub(super) is_refused: AtomicBool,
    pub(super) samples: SampleRows,
    /// Rows of the objects before each object.
    pub(super) first_rows: Vec<u64>,
    pub(super) schema: SchemaRef,
}

/// The rows of a row group on arrival, before the steps that this host runs.
#[derive(Debug)]
pub(super) struct ArrivedRows {
    /// Index of the object.
    pub(super) object: usize,
    /// The split at which they arrived.
    pub(super) split: usize,
    table: Table,
    /// The rows that are read, numbered in the table, in the order of the epoch.
    taken: Vec<u32>,
    ids: Vec<RowId>,
}

// === impl RowReader ===

impl RowReader {
    /// The split at which a row group is read from now on, by its number in this epoch.
    pub(super) fn split(&self, number: usize) -> usize {
        let guard = self.expansion_guard.as_ref();
        let is_exceeded = guard.is_some_and(ExpansionGuard::is_exceeded);
        if is_exceeded || self.is_refused.load(Relaxed) {
            return 0;
        }
        let planned = self.planner.as_ref().map(|planner| planner.split(number));
        planned.unwrap_or(self.split)
    }

    /// The split at which most row groups are read.
    pub(super) fn main_split(&self) -> usize {
        let planned = self.planner.as_ref().map(RowPlanner::main_split);
        planned.unwrap_or(self.split)
    }

    /// The number of a row in the data set: the rows of all objects in their order.
    pub(super) fn index(&self, id: RowId) -> usize {
        let first = self.first_rows.get(id.object).copied().unwrap_or_default();
        usize::try_from(first.saturating_add(id.row)).unwrap_or(usize::MAX)
    }

    /// Expected bytes of the rows of a row group on arrival.
    pub(super) fn expected_bytes(&self, group: usize, split: usize) -> u64 {
        let row_bytes = self.bytes.row_bytes.get(split).copied().flatten();
        let row_bytes = row_bytes.unwrap_or(self.bytes.read_row_bytes);
        self.samples.count(group).saturating_mul(row_bytes)
    }

    /// Reads the row group of a slice at a split, and returns the rows of the slice. Reads stored columns if the gateway refuses to
    /// compute them or lacks memory for one of them, and the reader may choose.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`](crate::ErrorKind) for an object replaced since its footer was read; errors of reading it.
    pub(super) async fn read(
        &self,
        slice: &RowGroupSlice,
        split: usize,
        order: RowOrder,
        epoch: u32,
    ) -> Result<ArrivedRows> {
        match self.read_at(slice, split, order, epoch).await {
            Err(error) if self.falls_back && split > 0 && is_refusal(&error) => {
                if !self.is_refused.swap(true, Relaxed) {
                    tracing::warn!(%error, "falling back to plain reading: all steps run on this host");
                }
                self.read_at(slice, 0, order, epoch).await
            }
            Ok(rows) if self.falls_back && split > 0 && self.has_lacked_memory(&rows) => {
                self.read_at(slice, 0, order, epoch).await
            }
            read => read,
        }
    }

    /// Whether the gateway had too little memory for a value.
    fn has_lacked_memory(&self, rows: &ArrivedRows) -> bool {
        let split = &self.splits[rows.split];
        let steps = split.pipeline.steps()[..split.steps].iter();
        steps
            .filter_map(Step::inner_steps)
            .any(|inner| rows.has_error(inner.column, TOO_MUCH_MEMORY))
    }

    async fn read_at(
        &self,
        slice: &RowGroupSlice,
        split: usize,
        order: RowOrder,
        epoch: u32,
    ) -> Result<ArrivedRows> {
        let group = &self.samples.groups()[slice.group];
        let RowSplit { pipeline, steps, .. } = &self.splits[split];
        let over = over(pipeline, group.rows())?;
        let (table, cost) = self.source.rows(group.object(), &over, *steps, epoch).await?;
        if let Some(planner) = &self.planner {
            planner.observe_read(split, &table, &cost);
        }
        if let Some(guard) = self.expansion_guard.as_ref().filter(|_| *steps > 0) {
            let rows = group.rows();
            guard.observe(rows.end.saturating_sub(rows.start), table.bytes());
        }
        let expected = group.count();
        if table.rows() != expected {
            return Err(self.source.replaced(
                group.object(),
                &format!("found {} rows of a row group, expected {expected}", table.rows()),
            ));
        }
        let taken = order.rows_of(slice, expected);
        Ok(ArrivedRows {
            object: group.object(),
            split,
            ids: group.ids(&taken),
            table,
            taken,
        })
    }
}

/// The pipeline over a range of rows of an object.
pub(super) fn over(pipeline: &Pipeline, rows: Range<u64>) -> Result<Pipeline> {
    pipeline
        .with_rows(rows)
        .ok_or_else(|| Error::internal("expected a pipeline that begins with `select`"))
}

// === impl ArrivedRows ===

impl ArrivedRows {
    /// Bytes of all rows.
    pub(super) fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Whether a value of a column that `each` has computed failed with an error that begins so.
    fn has_error(&self, column: &str, begin: &str) -> bool {
        let name = format!("{column}_error");
        self.table.batches().iter().any(|batch| {
            let errors = batch
                .column_by_name(&name)
                .and_then(|errors| errors.as_string_opt::<i32>());
            errors.is_some_and(|errors| errors.iter().flatten().any(|error| error.starts_with(begin)))
        })
    }

    /// Ranges of the rows that are computed together. `has_steps`: whether this host runs steps on them.
    pub(super) fn chunks(&self, has_steps: bool) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, size) = (
            self.taken.len(),
            if has_steps { COMPUTED_ROWS } else { TAKEN_ROWS },
        );
        (0..rows)
            .step_by(size)
            .map(move |start| start..rows.min(start + size))
    }

    /// The sources of the rows in a range.
    pub(super) fn ids(&self, range: Range<usize>) -> &[RowId] {
        self.ids.get(range).unwrap_or_default()
    }

    /// The rows in a range, in the order of the epoch.
    pub(super) fn take(&self, range: Range<usize>) -> Result<Table> {
        let internal = || Error::internal("cannot take rows");
        let batches: Vec<&RecordBatch> = self.table.batches().iter().collect();
        // The number of the first row of each batch.
        let starts: Vec<usize> = batches
            .iter()
            .scan(0, |start, batch| {
                let first = *start;
                *start += batch.num_rows();
                Some(first)
            })
            .collect();
        let place = |row: &u32| {
            let row = *row as usize;
            let batch = starts.partition_point(|start| *start <= row).checked_sub(1)?;
            (row - starts[batch] < batches[batch].num_rows()).then(|| (batch, row - starts[batch]))
        };
        let taken = self.taken.get(range).filter(|_| !batches.is_empty());
        let places = taken.and_then(|taken| taken.iter().map(place).collect::<Option<Vec<_>>>());
        let rows = interleave_record_batch(&batches, &places.ok_or_else(internal)?);
        let rows = rows.map_err(|error| internal().with_source(error))?;
        Ok(Table::new(SchemaRef::clone(self.table.schema()), vec![rows])?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, types::Int64Type};

    use super::*;

    fn batch(rows: Range<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    #[test]
    fn rows_are_taken_from_any_batches_in_the_order_of_the_epoch() {
        let batches = vec![batch(0..3), batch(3..3), batch(3..4), batch(4..9)];
        let taken = vec![8, 0, 3, 2, 4, 7];
        let rows = ArrivedRows {
            object: 0,
            split: 0,
            table: Table::new(batches[0].schema(), batches).unwrap(),
            ids: taken
                .iter()
                .map(|row| RowId {
                    object: 0,
                    row: u64::from(*row),
                })
                .collect(),
            taken,
        };
        let numbers = |range: Range<usize>| {
            let table = rows.take(range.clone()).unwrap();
            let numbers = table.batches()[0]
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec();
            let ids: Vec<_> = rows
                .ids(range)
                .iter()
                .map(|id| i64::try_from(id.row).unwrap())
                .collect();
            assert_eq!(numbers, ids);
            numbers
        };
        assert_eq!(numbers(0..6), [8, 0, 3, 2, 4, 7]);
        assert_eq!(numbers(2..4), [3, 2]);
        assert!(rows.take(5..7).is_err());
        assert_eq!(rows.chunks(true).count(), 1);
    }
}
