//! A pipeline over one value after the other.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _, types::Int64Type,
};
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};
use bytes::Bytes;

use crate::{
    Context, Error, Limits, Pipeline, Result, Sample,
    limits::EACH_BYTES,
    pipeline::excerpt,
    step::table::rowwise::{self, Rows},
    wire::TensorColumn,
};

/// Where a column has its bytes: in its own values, or in a field of its structs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    field: Option<usize>,
}

impl Values {
    pub(super) fn of(field: &Field) -> Result<Self> {
        let misfit = || {
            Error::unsuitable(format!(
                "the column `{}` is of type {}, expected binary, or a struct with binary `bytes`",
                excerpt(field.name(), 60),
                excerpt(&field.data_type().to_string(), 100)
            ))
        };
        match field.data_type() {
            DataType::Struct(fields) => {
                let bytes = |inner: &FieldRef| inner.name() == "bytes" && is_binary(inner.data_type());
                let field = fields.iter().position(bytes).ok_or_else(misfit)?;
                Ok(Self { field: Some(field) })
            }
            binary if is_binary(binary) => Ok(Self { field: None }),
            _ => Err(misfit()),
        }
    }

    /// The bytes in a row.
    fn get(self, column: &ArrayRef, row: usize) -> Option<Bytes> {
        match self.field {
            None => bytes(column, row),
            Some(_) if column.is_null(row) => None,
            Some(field) => bytes(column.as_struct_opt()?.column(field), row),
        }
    }
}

/// Whether values are bytes, however they are held.
fn is_binary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_binary(value),
        other => other.is_binary(),
    }
}

/// The bytes in a row of such a column.
fn bytes(column: &ArrayRef, row: usize) -> Option<Bytes> {
    if column.is_null(row) {
        return None;
    }
    let bytes = match column.data_type() {
        DataType::Binary => column.as_binary_opt::<i32>()?.value(row),
        DataType::LargeBinary => column.as_binary_opt::<i64>()?.value(row),
        DataType::BinaryView => column.as_binary_view_opt()?.value(row),
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary_opt()?.value(row),
        _ => {
            let one = column.slice(row, 1);
            let one = one.as_any_dictionary_opt()?;
            return bytes(one.values(), *one.normalized_keys().first()?);
        }
    };
    Some(Bytes::copy_from_slice(bytes))
}

/// `each` on its way through a table.
pub(super) struct Running {
    pub(super) schema: SchemaRef,
    pub(super) pipeline: Pipeline,
    pub(super) column: usize,
    pub(super) values: Values,
    pub(super) numbers: Option<usize>,
    pub(super) tensors: TensorColumn,
    pub(super) most: usize,
    pub(super) sample_id: Vec<u8>,
    pub(super) seed: Option<u64>,
    pub(super) epoch: Option<u32>,
    pub(super) limits: Limits,
    pub(super) made: Made,
}

/// What was made of the first rows of a record batch.
#[derive(Default)]
pub(super) struct Made {
    values: Vec<Option<(Vec<usize>, arrow_buffer::Buffer)>>,
    errors: Vec<Option<String>>,
    bytes: usize,
}

impl Running {
    fn run(&self, bytes: Bytes, number: Option<i64>) -> Result<(Vec<usize>, arrow_buffer::Buffer)> {
        let mut sample_id = self.sample_id.clone();
        if let Some(number) = number {
            sample_id.extend_from_slice(format!("\0{number}").as_bytes());
        }
        let context = Context {
            seed: self.seed,
            epoch: self.epoch,
            limits: self.limits,
            ..Context::new(&sample_id)
        };
        let stretch = 0..self.pipeline.len();
        let value = self.pipeline.run(stretch, Sample::Bytes(bytes), &context)?;
        let (shape, elements) = self.tensors.elements(value)?;
        let most = self.limits.tables.max_batch_bytes;
        if elements.len() as u64 > most {
            return Err(Error::too_large(format!(
                "a value of {} bytes is more than the limit of {most} on a record batch",
                elements.len()
            )));
        }
        Ok((shape, elements))
    }
}

impl Rows for Running {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn most(&self) -> usize {
        self.most
    }

    fn next(&mut self, rows: &mut RecordBatch) -> Result<Option<RecordBatch>> {
        let row = self.made.values.len();
        if row < rows.num_rows() && self.made.bytes < EACH_BYTES {
            let numbers = self
                .numbers
                .and_then(|index| rows.column(index).as_primitive_opt::<Int64Type>());
            let number = numbers.map(|numbers| numbers.value(row));
            let value = self.values.get(rows.column(self.column), row);
            let value = value.map(|bytes| self.run(bytes, number));
            let (value, error) = match value.transpose() {
                Ok(value) => (value, None),
                Err(error) => (None, Some(error.to_string())),
            };
            self.made.bytes += value.as_ref().map_or(0, |(_, elements)| elements.len());
            self.made.values.push(value);
            self.made.errors.push(error);
            // A photo takes as long as a turn may.
            return Ok(None);
        }
        let Made { values, errors, .. } = std::mem::take(&mut self.made);
        let batch = rowwise::take(rows, values.len());
        let mut columns = batch.columns().to_vec();
        columns[self.column] = self.tensors.array(&values)?;
        columns.insert(self.column + 1, Arc::new(StringArray::from(errors)));
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &rows)
            .map(Some)
            .map_err(|error| Error::internal(error.to_string()))
    }
}
