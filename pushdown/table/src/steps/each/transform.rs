//! Runs a pipeline over one value after the other.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _, types::Int64Type,
};
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};
use bytes::Bytes;

use pushdown_core::{
    Context, Error, Limits, Result,
    language::excerpt,
    limits::EACH_BYTES,
    step::{CellValues, InnerPipeline, RowProgress, RowTransform, rowwise::take_rows},
};
use pushdown_wire::TensorColumn;

use super::lookup::{CellStart, Lookup, LookupState};

/// Locates the bytes of a column: its values, or a field of its structs.
#[derive(Debug, Clone, Copy)]
pub(super) struct BytesColumn {
    /// Index of the struct's field; `None` if the column is binary.
    field: Option<usize>,
}

impl BytesColumn {
    pub(super) fn for_field(field: &Field) -> Result<Self> {
        let unsuitable = || {
            Error::unsuitable(format!(
                "the column `{}` is of type {}, expected binary, or a struct with binary `bytes`",
                excerpt(field.name(), 60),
                excerpt(&field.data_type().to_string(), 100)
            ))
        };
        match field.data_type() {
            DataType::Struct(fields) => {
                let has_bytes = |inner: &FieldRef| inner.name() == "bytes" && is_binary(inner.data_type());
                let field = fields.iter().position(has_bytes).ok_or_else(unsuitable)?;
                Ok(Self { field: Some(field) })
            }
            binary if is_binary(binary) => Ok(Self { field: None }),
            _ => Err(unsuitable()),
        }
    }

    /// The bytes of a row.
    fn get(self, column: &ArrayRef, row: usize) -> Option<Bytes> {
        match self.field {
            None => row_bytes(column, row),
            Some(_) if column.is_null(row) => None,
            Some(field) => row_bytes(column.as_struct_opt()?.column(field), row),
        }
    }
}

/// Whether the values are bytes, in a dictionary or not.
fn is_binary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_binary(value),
        other => other.is_binary(),
    }
}

/// The bytes of a row of a binary column.
fn row_bytes(column: &ArrayRef, row: usize) -> Option<Bytes> {
    if column.is_null(row) {
        return None;
    }
    let bytes = match column.data_type() {
        DataType::Binary => column.as_binary_opt::<i32>()?.value(row),
        DataType::LargeBinary => column.as_binary_opt::<i64>()?.value(row),
        DataType::BinaryView => column.as_binary_view_opt()?.value(row),
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary_opt()?.value(row),
        _ => {
            let single_row = column.slice(row, 1);
            let dictionary = single_row.as_any_dictionary_opt()?;
            return row_bytes(dictionary.values(), *dictionary.normalized_keys().first()?);
        }
    };
    Some(Bytes::copy_from_slice(bytes))
}

/// The state of `each` while it transforms one table.
pub(super) struct EachTransform {
    pub(super) schema: SchemaRef,
    pub(super) pipeline: Arc<dyn InnerPipeline>,
    pub(super) column: usize,
    pub(super) bytes: BytesColumn,
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
        let value = start.run(&*self.pipeline, &context)?;
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
    fn start(&mut self, rows: &RecordBatch, row: usize) -> Option<LookupState> {
        let lookup = match (self.lookup.take(), &self.cells) {
            (Some(lookup), _) => lookup,
            (None, cells) => {
                let bytes = self.bytes.get(rows.column(self.column), row)?;
                match cells {
                    Some(cells) => Lookup::new(&**cells, bytes),
                    None => return Some(LookupState::Done(CellStart::from_bytes(bytes))),
                }
            }
        };
        let (state, lookup) = lookup.poll();
        self.lookup = lookup;
        Some(state)
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
            let start = match self.start(rows, row) {
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
                Ok(value) => (value, None),
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
        columns[self.column] = self.tensors.array(&values)?;
        columns.insert(self.column + 1, Arc::new(StringArray::from(errors)));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
            .map(RowProgress::Output)
            .map_err(|error| Error::internal(error.to_string()))
    }
}
