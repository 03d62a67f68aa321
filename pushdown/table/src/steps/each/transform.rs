//! Runs a pipeline over one value after the other.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _, types::Int64Type,
};
use arrow_schema::SchemaRef;

use pushdown_core::{
    Context, Error, Limits, Result, Sample,
    limits::EACH_BYTES,
    step::{CellValues, InnerPipeline, RowProgress, RowTransform, rowwise::take_rows},
};
use pushdown_wire::TensorColumn;

use super::{
    input::InputColumn,
    lookup::{CellStart, Lookup, LookupState},
};

/// The state of `each` while it transforms one table.
pub(super) struct EachTransform {
    pub(super) schema: SchemaRef,
    pub(super) pipeline: Arc<dyn InnerPipeline>,
    /// The stage of the pipeline at which the values are complete.
    pub(super) until: usize,
    pub(super) input: InputColumn,
    /// Index of the column of row numbers.
    pub(super) row_numbers: Option<usize>,
    pub(super) tensors: TensorColumn,
    pub(super) max_rows: usize,
    pub(super) sample_id: Vec<u8>,
    pub(super) seed: Option<u64>,
    pub(super) epoch: Option<u32>,
    pub(super) limits: Limits,
    /// Cached values of the column.
    pub(super) cells: Option<Box<dyn CellValues>>,
    /// The lookup of the next row, if it has to be waited for.
    pub(super) lookup: Option<Lookup>,
    pub(super) pending: PendingOutput,
}

/// Shape and elements of an output value.
type OutputValue = (Vec<usize>, arrow_buffer::Buffer);

/// The output of the first rows of a record batch.
#[derive(Default)]
pub(super) struct PendingOutput {
    values: Vec<Option<OutputValue>>,
    errors: Vec<Option<String>>,
    bytes: usize,
}

impl EachTransform {
    /// Runs the steps that are left for a cell.
    fn run(&self, start: CellStart, row_number: Option<i64>) -> Result<OutputValue> {
        let mut sample_id = self.sample_id.clone();
        if let Some(row_number) = row_number {
            sample_id.extend_from_slice(format!("\0{row_number}").as_bytes());
        }
        let context = Context {
            seed: self.seed,
            epoch: self.epoch,
            limits: self.limits,
            ..Context::new(&sample_id)
        };
        let value = start.run(&*self.pipeline, self.until, &context)?;
        let (shape, elements) = self.tensors.elements(value)?;
        let max_bytes = self.limits.tables.max_batch_bytes;
        if elements.len() as u64 > max_bytes {
            return Err(Error::too_large(format!(
                "value too large: expected at most {max_bytes} bytes in a record batch, found {}",
                elements.len()
            )));
        }
        Ok((shape, elements))
    }

    /// What the value of a row is computed from; `None` for a null.
    fn start(&mut self, rows: &RecordBatch, row: usize) -> Result<Option<LookupState>> {
        let lookup = match self.lookup.take() {
            Some(lookup) => lookup,
            None => match (self.input.value(rows, row, &self.limits)?, &self.cells) {
                (None, _) => return Ok(None),
                (Some(Sample::Bytes(bytes)), Some(cells)) => Lookup::new(&**cells, bytes),
                (Some(value), _) => {
                    let stage = self.input.stage();
                    return Ok(Some(LookupState::Done(CellStart::new(value, stage))));
                }
            },
        };
        let (state, lookup) = lookup.poll();
        self.lookup = lookup;
        Ok(Some(state))
    }
}

impl RowTransform for EachTransform {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn next(&mut self, rows: &mut RecordBatch) -> Result<RowProgress> {
        let row = self.pending.values.len();
        if row < rows.num_rows() && self.pending.bytes < EACH_BYTES {
            let start = match self.start(rows, row)? {
                Some(LookupState::Waiting(event)) => return Ok(RowProgress::Waiting(event)),
                Some(LookupState::Done(start)) => Some(start),
                None => None,
            };
            let row_numbers = self
                .row_numbers
                .and_then(|index| rows.column(index).as_primitive_opt::<Int64Type>());
            let row_number = row_numbers.map(|numbers| numbers.value(row));
            let result = start.map(|start| self.run(start, row_number)).transpose();
            let (value, error) = match result {
                Ok(Some(value)) => (Some(value), None),
                Ok(None) => (None, self.input.error(rows, row)),
                Err(error) => (None, Some(error.to_string())),
            };
            self.pending.bytes += value.as_ref().map_or(0, |(_, elements)| elements.len());
            self.pending.values.push(value);
            self.pending.errors.push(error);
            // Yield after each value: decoding one photo takes as long as a task may run without yielding.
            return Ok(RowProgress::Unfinished);
        }
        let PendingOutput { values, errors, .. } = std::mem::take(&mut self.pending);
        let batch = take_rows(rows, values.len());
        let mut columns = batch.columns().to_vec();
        let errors: ArrayRef = Arc::new(StringArray::from(errors));
        columns[self.input.index] = self.tensors.array(&values)?;
        match self.input.errors() {
            Some(index) => columns[index] = errors,
            None => columns.insert(self.input.index + 1, errors),
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
            .map(RowProgress::Output)
            .map_err(|error| Error::internal(error.to_string()))
    }
}
