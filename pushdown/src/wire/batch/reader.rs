//! An Arrow IPC stream to rows.

use std::sync::Arc;

use arrow_array::{
    Array as _, RecordBatch,
    cast::AsArray as _,
    types::{Float32Type, UInt8Type, UInt32Type},
};
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{
    Row, RowError, column,
    schema::{ERROR, MAX_ROWS, ROW, SECONDS, STAGE, ValueType},
};
use crate::{
    Error, Limits, Result,
    wire::{arrow::tensor, header, ipc},
};

/// What a record batch has beside its values at most: row numbers, errors, shapes, padding.
const OVERHEAD: u64 = 16 << 20;

/// Reads a batch answer from chunks that are cut anywhere. Values share the memory of what arrived.
#[derive(Debug)]
pub struct BatchReader {
    batches: ipc::Batches,
    limits: Limits,
    schema: Option<(SchemaRef, ValueType)>,
    /// After an error there is no telling where the next message starts.
    broken: bool,
}

impl BatchReader {
    /// A reader that takes no value beyond `limits`, and holds no more than one record batch.
    pub fn new(limits: Limits) -> Self {
        let largest = limits.max_object_bytes.max(limits.max_value_bytes);
        Self {
            batches: ipc::Batches::new(largest.saturating_add(OVERHEAD)),
            limits,
            schema: None,
            broken: false,
        }
    }

    /// The rows that `chunk` completes, in the order of the stream.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for what is no batch answer;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past the limits. The stream cannot be read on after either.
    pub fn push(&mut self, chunk: Bytes) -> Result<Vec<Row>> {
        self.check_unbroken()?;
        let rows = self.read(Buffer::from(chunk));
        self.broken = rows.is_err();
        rows
    }

    fn read(&mut self, mut chunk: Buffer) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        loop {
            let batch = self.batches.next(&mut chunk)?;
            if let (None, Some(schema)) = (&self.schema, self.batches.schema()) {
                self.schema = Some((Arc::clone(schema), ValueType::read(schema)?));
            }
            let (Some(batch), Some((schema, value_type))) = (batch, &self.schema) else {
                return Ok(rows);
            };
            read(&batch, schema.fields().len(), value_type, &self.limits, &mut rows)?;
        }
    }

    /// The type of the values, once the start of the stream has arrived.
    pub fn value_type(&self) -> Option<&ValueType> {
        self.schema.as_ref().map(|(_, value_type)| value_type)
    }

    /// The [`Engine`](crate::Engine) that computed the values, as text, once the start of the stream has arrived.
    pub fn engine(&self) -> Option<&str> {
        let (schema, _) = self.schema.as_ref()?;
        let engine = schema.metadata().get(&tensor::key(header::ENGINE))?;
        Some(engine)
    }

    /// Checks that the stream is whole.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) where it ended early. The connection was cut: unlike other
    /// errors of this kind, asking again for the rows that are missing may help.
    pub fn finish(self) -> Result<()> {
        self.check_unbroken()?;
        self.batches.finish()
    }

    fn check_unbroken(&self) -> Result<()> {
        if self.broken {
            Err(Error::wire("the batch answer was found to be malformed before"))
        } else {
            Ok(())
        }
    }
}

fn read(
    batch: &ipc::RawBatch,
    columns: usize,
    value_type: &ValueType,
    limits: &Limits,
    rows: &mut Vec<Row>,
) -> Result<()> {
    if batch.rows() > MAX_ROWS {
        return Err(Error::too_large(format!(
            "{} rows at once are more than the limit of {MAX_ROWS}",
            batch.rows()
        )));
    }
    let head = batch.read(&[ROW, STAGE, ERROR, SECONDS])?;
    let missing = || Error::wire("found a batch answer without row numbers, stages, errors or seconds");
    let numbers = head
        .column(ROW)
        .as_primitive_opt::<UInt32Type>()
        .ok_or_else(missing)?;
    let stages = head
        .column(STAGE)
        .as_primitive_opt::<UInt8Type>()
        .ok_or_else(missing)?;
    let seconds = head
        .column(SECONDS)
        .as_primitive_opt::<Float32Type>()
        .ok_or_else(missing)?;
    let errors = head.column(ERROR).as_string_opt::<i32>().ok_or_else(missing)?;
    // The values of failed rows are not worth reading: they are nothing, at length.
    let values: Option<RecordBatch> = if errors.null_count() > 0 {
        Some(batch.read(&(0..columns).collect::<Vec<_>>())?)
    } else {
        None
    };
    rows.reserve(batch.rows());
    for row in 0..batch.rows() {
        let value = match &values {
            Some(values) if errors.is_null(row) => Ok(column::sample(value_type, values, row, limits)?),
            _ => {
                let Ok(error) = errors.value(row).parse::<RowError>();
                Err(error)
            }
        };
        rows.push(Row {
            row: numbers.value(row),
            stage: stages.value(row),
            seconds: seconds.value(row),
            value,
        });
    }
    Ok(())
}
