//! `each`: a pipeline over one column's values.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _, types::Int64Type,
};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;

use super::{
    fault, row_numbers,
    rowwise::{self, Rows, Rowwise},
};
use crate::{
    Context, Error, ErrorKind, Limits, Pipeline, Result, Sample, Table, TableKind,
    limits::{BATCH_ROWS, EACH_BYTES},
    pipeline::{Args, Param, Value, excerpt},
    step::{Operator, Scope},
    wire::Tensors,
};

/// Rows of a record batch whose values have no fixed shape.
const VARIABLE_ROWS: usize = 64;

/// `each`. A row whose value fails has null in its place, and the error in the column behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    column: String,
    pipeline: Pipeline,
}

impl Each {
    /// What runs over each value.
    pub const fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }
}

impl Operator for Each {
    type Input = Table;
    type Output = Table;

    const NAME: &'static str = "each";
    const SUMMARY: &'static str =
        "runs a pipeline over the values of a column of bytes: each(column: pipeline)";
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "column",
            "name",
            "a column of binary values, or of structs with such values as `bytes`",
        ),
        Param::positional(
            "pipeline",
            "steps",
            "written behind the column and a colon, or in quotes; its values take the column's place",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let (column, pipeline) = (args.required("column")?, args.pipeline("pipeline")?);
        let last = pipeline.kinds().last();
        if last.and_then(Tensors::of).is_none() {
            let fault = "the pipeline of `each` gives a table or codes with a scale, expected an image, a tensor or bytes";
            return Err(args.fault(fault));
        }
        Ok(Self { column, pipeline })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("column", Value::Text(self.column.clone())),
            ("pipeline", Value::Text(self.pipeline.to_string())),
        ]
    }

    fn output(&self, _input: &TableKind) -> Result<TableKind, String> {
        Ok(TableKind::default())
    }

    fn scratch_bytes(&self, _input: &TableKind) -> Option<u64> {
        None
    }

    fn is_augmenting(&self) -> bool {
        self.pipeline.is_augmenting(self.pipeline.len())
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        rowwise::run(self, &input, scope)
    }
}

impl Rowwise for Each {
    fn begin(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn Rows>> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let Ok(column) = schema.index_of(&self.column) else {
            return Err(fault::unknown_column(&self.column, names()));
        };
        let values = Values::of(schema.field(column))?;
        let number = |field: &FieldRef| field.metadata().contains_key(row_numbers::METADATA);
        let numbers = schema.fields().iter().position(number);
        if numbers.is_none() && self.is_augmenting() {
            return Err(Error::new(
                ErrorKind::InvalidPipeline,
                "random steps inside of `each` need the rows' places in the object: give `row_number=` to the step that reads \
                 it, and keep that column",
            ));
        }
        let kind = self.pipeline.kinds().last().and_then(Tensors::of);
        let tensors = kind.ok_or_else(|| Error::internal("`each` gives values of no kind"))?;
        let error = format!("{}_error", self.column);
        if names().any(|name| name == error) {
            return Err(Error::unsuitable(format!(
                "the table has a column `{}` already, which `each` puts its errors into",
                excerpt(&error, 60)
            )));
        }
        let mut fields: Vec<_> = schema.fields().to_vec();
        fields[column] = Arc::new(tensors.field(&self.column)?);
        fields.insert(column + 1, Arc::new(Field::new(error, DataType::Utf8, true)));
        let rows = tensors.value_bytes().map(|bytes| EACH_BYTES / bytes.max(1));
        Ok(Box::new(Running {
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            pipeline: self.pipeline.clone(),
            column,
            values,
            numbers,
            tensors,
            most: rows.unwrap_or(VARIABLE_ROWS).clamp(1, BATCH_ROWS),
            sample_id: scope.sample_id.to_vec(),
            seed: scope.seed,
            epoch: scope.epoch,
            limits: *scope.limits,
        }))
    }
}

/// Where a column has its bytes.
#[derive(Debug, Clone, Copy)]
enum Values {
    Binary,
    LargeBinary,
    /// In this field of a struct.
    Field(usize),
}

impl Values {
    fn of(field: &Field) -> Result<Self> {
        let misfit = || {
            Error::unsuitable(format!(
                "the column `{}` is of type {}, expected binary, or a struct with binary `bytes`",
                excerpt(field.name(), 60),
                excerpt(&field.data_type().to_string(), 100)
            ))
        };
        match field.data_type() {
            DataType::Binary => Ok(Self::Binary),
            DataType::LargeBinary => Ok(Self::LargeBinary),
            DataType::Struct(fields) => {
                let bytes =
                    |inner: &FieldRef| inner.name() == "bytes" && *inner.data_type() == DataType::Binary;
                fields.iter().position(bytes).map(Self::Field).ok_or_else(misfit)
            }
            _ => Err(misfit()),
        }
    }

    /// The bytes in a row.
    fn get(self, column: &ArrayRef, row: usize) -> Option<Bytes> {
        if column.is_null(row) {
            return None;
        }
        let bytes = match self {
            Self::Binary => column.as_binary_opt::<i32>()?.value(row),
            Self::LargeBinary => column.as_binary_opt::<i64>()?.value(row),
            Self::Field(index) => {
                let inner = column.as_struct_opt()?.column(index);
                return Self::Binary.get(inner, row);
            }
        };
        Some(Bytes::copy_from_slice(bytes))
    }
}

struct Running {
    schema: SchemaRef,
    pipeline: Pipeline,
    column: usize,
    values: Values,
    numbers: Option<usize>,
    tensors: Tensors,
    most: usize,
    sample_id: Vec<u8>,
    seed: Option<u64>,
    epoch: Option<u32>,
    limits: Limits,
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

    fn next(&mut self, rows: &mut RecordBatch) -> Result<RecordBatch> {
        let column = rows.column(self.column);
        let numbers = self
            .numbers
            .and_then(|index| rows.column(index).as_primitive_opt::<Int64Type>());
        let (mut values, mut errors, mut bytes) = (Vec::new(), Vec::new(), 0);
        while values.len() < rows.num_rows() && bytes < EACH_BYTES {
            let row = values.len();
            let number = numbers.map(|numbers| numbers.value(row));
            let value = self.values.get(column, row).map(|bytes| self.run(bytes, number));
            let (value, error) = match value.transpose() {
                Ok(value) => (value, None),
                Err(error) => (None, Some(error.to_string())),
            };
            bytes += value.as_ref().map_or(0, |(_, elements)| elements.len());
            values.push(value);
            errors.push(error);
        }
        let batch = rowwise::take(rows, values.len());
        let mut columns = batch.columns().to_vec();
        columns[self.column] = self.tensors.array(&values)?;
        columns.insert(self.column + 1, Arc::new(StringArray::from(errors)));
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &rows)
            .map_err(|error| Error::internal(error.to_string()))
    }
}
