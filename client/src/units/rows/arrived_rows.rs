//! The rows of a row group that have arrived.

use std::ops::Range;

use arrow_array::{RecordBatch, cast::AsArray as _};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;
use pushdown::Table;

use super::RowId;
use crate::error::{Error, Result};

/// Rows of a chunk if this host runs steps on them: enough to keep all threads busy, and few enough that their values are small
/// beside the prefetch budget.
pub(super) const COMPUTED_ROWS: usize = 16;
/// Bytes of a chunk that is only taken from the rows that arrived: several of them wait for the consumer beside the prefetch budget.
const TAKEN_BYTES: u64 = 1 << 20;
/// The most rows of such a chunk.
const TAKEN_ROWS: usize = 8192;
/// Bytes in memory of a row that is taken, beside its values: its number and its source.
const TAKEN_ROW_BYTES: u64 = (size_of::<u32>() + size_of::<RowId>()) as u64;
/// Bytes in memory of a row group beside its rows: buffers of columns without values, schemas, and what the tasks of its read keep.
const GROUP_BYTES: u64 = 4096;

/// Bytes in memory of a row group of which `rows` rows are taken, beside their values. Even one without any bytes counts, so that the budget
/// bounds how many of them wait.
pub(super) const fn bytes_beside_values(rows: u64) -> u64 {
    rows.saturating_mul(TAKEN_ROW_BYTES).saturating_add(GROUP_BYTES)
}

/// The rows of a row group on arrival, before the steps that this host runs.
#[derive(Debug)]
pub(super) struct ArrivedRows {
    /// Index of the object.
    pub(super) object: usize,
    /// The split at which they arrived.
    pub(super) split: usize,
    pub(super) table: Table,
    /// The rows that are read, numbered in the table, in the order of the epoch.
    pub(super) taken: Vec<u32>,
    pub(super) ids: Vec<RowId>,
}

impl ArrivedRows {
    /// Bytes in memory.
    pub(super) fn held_bytes(&self) -> u64 {
        let beside = bytes_beside_values(self.taken.len() as u64);
        self.table.bytes().saturating_add(beside)
    }

    /// Whether a value of a column that `each` has computed failed with an error that begins so.
    pub(super) fn has_error(&self, column: &str, begin: &str) -> bool {
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
        let rows = self.taken.len();
        let size = if has_steps {
            COMPUTED_ROWS
        } else {
            let row_bytes = self.table.bytes() / self.table.rows().max(1);
            let fitting = usize::try_from(TAKEN_BYTES / row_bytes.max(1)).unwrap_or(usize::MAX);
            fitting.clamp(COMPUTED_ROWS, TAKEN_ROWS)
        };
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

    use arrow_array::{ArrayRef, BinaryArray, Int64Array, types::Int64Type};

    use super::*;

    fn batch(rows: Range<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    fn arrived(batches: Vec<RecordBatch>, taken: Vec<u32>) -> ArrivedRows {
        let id = |row: &u32| RowId {
            object: 0,
            row: u64::from(*row),
        };
        ArrivedRows {
            object: 0,
            split: 0,
            table: Table::new(batches[0].schema(), batches).unwrap(),
            ids: taken.iter().map(id).collect(),
            taken,
        }
    }

    /// Chunks that are done wait for the consumer, and no longer count against the budget.
    #[test]
    fn chunks_of_large_rows_have_few_rows() {
        let chunk_sizes = |value_bytes: usize, has_steps| {
            let column: ArrayRef =
                Arc::new(BinaryArray::from_iter_values(vec![vec![7_u8; value_bytes]; 100]));
            let batch = RecordBatch::try_from_iter([("b", column)]).unwrap();
            let rows = arrived(vec![batch], (0..100).collect());
            rows.chunks(has_steps).map(|rows| rows.len()).collect::<Vec<_>>()
        };
        assert_eq!(chunk_sizes(10, false), [100]);
        assert_eq!(chunk_sizes(20_000, false), [52, 48]);
        assert_eq!(chunk_sizes(100_000, false), chunk_sizes(10, true));
        assert_eq!(chunk_sizes(10, true).first(), Some(&COMPUTED_ROWS));
    }

    /// Otherwise any number of row groups could wait for a slow consumer.
    #[test]
    fn rows_without_values_take_memory() {
        let column: ArrayRef = Arc::new(arrow_array::NullArray::new(1000));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let rows = arrived(vec![batch.clone()], (0..1000).collect());
        assert_eq!(rows.table.bytes(), 0);
        assert_eq!(rows.held_bytes(), 20 * 1000 + GROUP_BYTES);
        assert_eq!(
            arrived(vec![batch.slice(0, 0)], Vec::new()).held_bytes(),
            GROUP_BYTES
        );
    }

    #[test]
    fn rows_are_taken_from_any_batches_in_the_order_of_the_epoch() {
        let batches = vec![batch(0..3), batch(3..3), batch(3..4), batch(4..9)];
        let taken = vec![8, 0, 3, 2, 4, 7];
        let rows = arrived(batches, taken);
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
