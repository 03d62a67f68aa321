//! The column that `each` reads: stored bytes, or values that an earlier part of it computed.

use arrow_array::{Array as _, ArrayRef, RecordBatch, cast::AsArray as _};
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};
use bytes::Bytes;

use pushdown_core::{Error, Limits, Result, Sample, language::excerpt};
use pushdown_wire::TensorColumn;

use crate::fault;

/// Locates the values that the steps run on.
#[derive(Debug)]
pub(super) struct InputColumn {
    /// Index of the column.
    pub(super) index: usize,
    values: InputValues,
}

#[derive(Debug)]
enum InputValues {
    Bytes(BytesColumn),
    /// Values after the first `stage` steps of the pipeline, and the index of the column with the errors of these steps.
    Computed {
        values: TensorColumn,
        stage: usize,
        errors: usize,
    },
}

/// Locates the bytes of a column: its values, or a field of its structs.
#[derive(Debug, Clone, Copy)]
struct BytesColumn {
    /// Index of the struct's field; `None` if the column is binary.
    field: Option<usize>,
}

impl InputColumn {
    /// The column `name` of stored bytes.
    ///
    /// # Errors
    /// [`Unsuitable`](pushdown_core::ErrorKind::Unsuitable) for a column of another type, and if the column of errors exists.
    pub(super) fn of_bytes(name: &str, schema: &SchemaRef) -> Result<Self> {
        let index = index_of(name, schema)?;
        let values = InputValues::Bytes(BytesColumn::for_field(schema.field(index))?);
        let error_column = error_column(name);
        if schema.index_of(&error_column).is_ok() {
            return Err(Error::unsuitable(format!(
                "the table has a column `{}` already, and `each` requires that name for its errors: rename the column",
                excerpt(&error_column, 60)
            )));
        }
        Ok(Self { index, values })
    }

    /// The column `name` of values that an earlier `each` computed by the first `stage` steps of the pipeline.
    ///
    /// # Errors
    /// [`Unsuitable`](pushdown_core::ErrorKind::Unsuitable) for a column of another type, and without a column of errors.
    pub(super) fn of_values(
        name: &str,
        schema: &SchemaRef,
        values: TensorColumn,
        stage: usize,
    ) -> Result<Self> {
        let index = index_of(name, schema)?;
        let (found, expected) = (schema.field(index), values.field(name)?);
        let errors = schema.index_of(&error_column(name)).ok();
        let errors = errors.filter(|errors| *schema.field(*errors).data_type() == DataType::Utf8);
        let Some(errors) = errors.filter(|_| found.data_type() == expected.data_type()) else {
            return Err(Error::unsuitable(format!(
                "the column `{}` is of type {}, expected {} and a column of errors: what another `each` of this pipeline \
                 computes with `until={stage}`",
                excerpt(name, 60),
                excerpt(&found.data_type().to_string(), 100),
                excerpt(&expected.data_type().to_string(), 100),
            )));
        };
        let values = InputValues::Computed {
            values,
            stage,
            errors,
        };
        Ok(Self { index, values })
    }

    /// Index of the column with the errors of earlier steps, if there were any.
    pub(super) const fn errors(&self) -> Option<usize> {
        match self.values {
            InputValues::Bytes(_) => None,
            InputValues::Computed { errors, .. } => Some(errors),
        }
    }

    /// The number of steps that were applied to the values.
    pub(super) const fn stage(&self) -> usize {
        match self.values {
            InputValues::Bytes(_) => 0,
            InputValues::Computed { stage, .. } => stage,
        }
    }

    /// The value in a row; `None` for a null.
    ///
    /// # Errors
    /// Those of [`TensorColumn::value`].
    pub(super) fn value(&self, rows: &RecordBatch, row: usize, limits: &Limits) -> Result<Option<Sample>> {
        let column = rows.column(self.index);
        match &self.values {
            InputValues::Bytes(bytes) => Ok(bytes.get(column, row).map(Sample::Bytes)),
            InputValues::Computed { values, .. } => values.value(column, row, limits),
        }
    }

    /// The error of earlier steps in a row.
    pub(super) fn error(&self, rows: &RecordBatch, row: usize) -> Option<String> {
        let errors = rows.column(self.errors()?).as_string_opt::<i32>()?;
        errors.is_valid(row).then(|| errors.value(row).to_owned())
    }
}

/// The name of the column with the errors of a column.
pub(super) fn error_column(name: &str) -> String {
    format!("{name}_error")
}

fn index_of(name: &str, schema: &SchemaRef) -> Result<usize> {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    schema
        .index_of(name)
        .map_err(|_missing| fault::unknown_column(name, names))
}

impl BytesColumn {
    fn for_field(field: &Field) -> Result<Self> {
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
