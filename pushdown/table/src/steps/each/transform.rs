//! Runs a pipeline over the values of a column: one value after the other, or several at a time if their steps run in micro-batches.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context as Task, Poll},
};

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _, types::Int64Type,
};
use arrow_schema::SchemaRef;

use pushdown_core::{
    Error, Result, Sample,
    limits::EACH_BYTES,
    step::{CellValues, RowProgress, RowTransform, rowwise::take_rows},
};

use super::{
    cell::{Cell, CellOutput, CellRunner, OutputValue},
    input::InputColumn,
    lookup::{CellStart, Lookup},
};

/// The state of `each` while it transforms one table.
pub(super) struct EachTransform {
    pub(super) schema: SchemaRef,
    pub(super) input: InputColumn,
    /// Index of the column of row numbers.
    pub(super) row_numbers: Option<usize>,
    pub(super) max_rows: usize,
    pub(super) sample_id: Vec<u8>,
    /// Cached values of the column.
    pub(super) cells: Option<Box<dyn CellValues>>,
    pub(super) runner: CellRunner,
    /// The most cells that are computed at a time.
    pub(super) max_active: usize,
    /// The output of the first rows of a record batch.
    pub(super) done: Vec<CellOutput>,
    pub(super) done_bytes: usize,
    /// The cells of the rows after them. The first one is not done.
    pub(super) active: VecDeque<Cell>,
}

impl EachTransform {
    /// Begins the cell of a row.
    fn begin(&self, rows: &RecordBatch, row: usize) -> Result<Cell> {
        let Some(value) = self.input.value(rows, row, &self.runner.limits)? else {
            return Ok(Cell::null(self.input.error(rows, row)));
        };
        let mut sample_id = self.sample_id.clone();
        let row_numbers = self
            .row_numbers
            .and_then(|index| rows.column(index).as_primitive_opt::<Int64Type>());
        if let Some(row_numbers) = row_numbers {
            sample_id.extend_from_slice(format!("\0{}", row_numbers.value(row)).as_bytes());
        }
        Ok(match (value, &self.cells) {
            (Sample::Bytes(bytes), Some(cells)) => Cell::with_lookup(Lookup::new(&**cells, bytes), sample_id),
            (value, _) => {
                let start = CellStart::new(value, self.input.stage());
                Cell::with_start(start, sample_id, &self.runner)
            }
        })
    }

    /// Advances the cells that have begun. Returns whether steps of one of them ran.
    fn poll_cells(&mut self, task: &mut Task<'_>) -> Result<bool> {
        let mut has_run = false;
        for cell in &mut self.active {
            if let Poll::Ready(ran) = cell.poll(&self.runner, task)? {
                has_run = ran;
            }
            if has_run {
                break;
            }
        }
        while let Some(output) = self.active.front_mut().and_then(Cell::take_output) {
            self.done_bytes += output.bytes();
            self.done.push(output);
            self.active.pop_front();
        }
        Ok(has_run)
    }

    /// The rows of the next record batch, which ends after the value that brings it to the limit. `None` if it is not that long.
    fn full_rows(&self) -> Option<usize> {
        let mut bytes = 0;
        let is_full = |output: &CellOutput| {
            bytes += output.bytes();
            bytes >= EACH_BYTES
        };
        self.done.iter().position(is_full).map(|last| last + 1)
    }

    /// The first `count` rows with their values.
    fn output(&mut self, rows: &mut RecordBatch, count: usize) -> Result<RecordBatch> {
        let outputs = self.done.drain(..count);
        let (values, errors): (Vec<Option<OutputValue>>, Vec<Option<String>>) =
            outputs.map(|output| (output.value, output.error)).unzip();
        self.done_bytes = self.done.iter().map(CellOutput::bytes).sum();
        let batch = take_rows(rows, count);
        let mut columns = batch.columns().to_vec();
        let errors: ArrayRef = Arc::new(StringArray::from(errors));
        columns[self.input.index] = self.runner.tensors.array(&values)?;
        match self.input.errors() {
            Some(index) => columns[index] = errors,
            None => columns.insert(self.input.index + 1, errors),
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
            .map_err(|error| Error::internal(error.to_string()))
    }
}

impl RowTransform for EachTransform {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn next(&mut self, rows: &mut RecordBatch, task: &mut Task<'_>) -> Poll<Result<RowProgress>> {
        loop {
            // Yield after each value: decoding one photo takes as long as a task may run without yielding.
            if self.poll_cells(task)? {
                return Poll::Ready(Ok(RowProgress::Unfinished));
            }
            let row = self.done.len() + self.active.len();
            let can_begin = self.done_bytes < EACH_BYTES && self.active.len() < self.max_active;
            if row < rows.num_rows() && can_begin {
                let cell = self.begin(rows, row)?;
                self.active.push_back(cell);
            } else if self.active.is_empty() {
                let count = self.full_rows().unwrap_or(self.done.len());
                return Poll::Ready(self.output(rows, count).map(RowProgress::Output));
            } else {
                return Poll::Pending;
            }
        }
    }
}
