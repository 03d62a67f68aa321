//! Reads rows from an Arrow IPC stream.

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
    CacheStatus, Row, RowError, column, crops,
    schema::{AnswerColumns, ERROR, MAX_ROWS, ROW, SECONDS, STAGE, ValueType},
};
use crate::{arrow::tensor, header, ipc};
use pushdown_core::{Error, Limits, Result};

/// The column `cache` among those of [`AnswerColumns::head`].
const CACHE: usize = SECONDS + 1;
/// Maximum size of a record batch without its values: row numbers, errors, shapes and padding.
const MAX_OVERHEAD_BYTES: u64 = 16 << 20;

/// The schema of an answer.
#[derive(Debug)]
struct AnswerSchema {
    schema: SchemaRef,
    columns: AnswerColumns,
}

/// Reads a batch answer from chunks with any boundaries. Columns that this version does not know are ignored. Values share the memory of the received bytes.
#[derive(Debug)]
pub struct BatchReader {
    batches: ipc::RecordBatchReader,
    limits: Limits,
    /// Whether the request asked for values.
    has_values: bool,
    schema: Option<AnswerSchema>,
    /// Whether an error occurred, after which the start of the next message is unknown.
    is_failed: bool,
}

impl BatchReader {
    /// A reader that returns errors for values past `limits`, and buffers at most one record batch.
    pub fn new(limits: Limits) -> Self {
        let largest = limits.max_object_bytes.max(limits.max_value_bytes);
        Self {
            batches: ipc::RecordBatchReader::new(largest.saturating_add(MAX_OVERHEAD_BYTES)),
            limits,
            has_values: true,
            schema: None,
            is_failed: false,
        }
    }

    /// A reader of the answer to a request with `deliver: false`, which returns an error for an answer with values.
    pub fn without_values(limits: Limits) -> Self {
        Self {
            has_values: false,
            ..Self::new(limits)
        }
    }

    /// The rows that `chunk` completes, in the order of the stream.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an invalid batch answer, and for one with values if none were asked
    /// for, or without them if they were;
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past the limits. The stream cannot be read further after an error.
    pub fn push(&mut self, chunk: Bytes) -> Result<Vec<Row>> {
        self.check_not_failed()?;
        let rows = self.read(Buffer::from(chunk));
        self.is_failed = rows.is_err();
        rows
    }

    fn read(&mut self, mut chunk: Buffer) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        loop {
            let batch = self.batches.next(&mut chunk)?;
            if let (None, Some(schema)) = (&self.schema, self.batches.schema()) {
                let columns = AnswerColumns::read(schema)?;
                check_values(self.has_values, &columns)?;
                self.schema = Some(AnswerSchema {
                    schema: Arc::clone(schema),
                    columns,
                });
            }
            let (Some(batch), Some(schema)) = (batch, &self.schema) else {
                return Ok(rows);
            };
            read(&batch, &schema.columns, &self.limits, &mut rows)?;
        }
    }

    /// Whether the last chunk ended within a row, or within the start of the stream.
    pub fn is_within_row(&self) -> bool {
        !self.batches.is_between_messages()
    }

    /// The type of the values; `None` until the start of the stream has been received.
    pub fn value_type(&self) -> Option<&ValueType> {
        self.schema.as_ref().map(|schema| &schema.columns.value_type)
    }

    /// The [`Engine`](pushdown_core::Engine) that computed the values, as text; `None` until the start of the stream has been
    /// received.
    pub fn engine(&self) -> Option<&str> {
        let engine = self
            .schema
            .as_ref()?
            .schema
            .metadata()
            .get(&tensor::key(header::ENGINE))?;
        Some(engine)
    }

    /// The names of the further columns, in the order of [`Row::columns`]; `None` until the start of the stream has been received.
    pub fn column_names(&self) -> Option<&[String]> {
        let schema = self.schema.as_ref()?;
        Some(&schema.columns.further_names)
    }

    /// Checks that the stream is complete.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if the stream is truncated, because the connection was closed. Unlike
    /// for other errors of this kind, a retry of the missing rows may help.
    pub fn finish(self) -> Result<()> {
        self.check_not_failed()?;
        self.batches.finish()
    }

    fn check_not_failed(&self) -> Result<()> {
        if self.is_failed {
            Err(Error::wire(
                "the batch answer is malformed: an earlier chunk failed",
            ))
        } else {
            Ok(())
        }
    }
}

/// Checks that the answer has values exactly if the request asked for them.
fn check_values(has_values: bool, columns: &AnswerColumns) -> Result<()> {
    match (has_values, columns.stored) {
        (true, Some(_)) => Err(Error::wire(
            "invalid batch answer: expected values, found the column `stored` of an answer without them",
        )),
        (false, None) => Err(Error::wire(
            "invalid batch answer: expected the column `stored`, because the request has `deliver: false`, found values",
        )),
        _ => Ok(()),
    }
}

fn read(batch: &ipc::RawBatch, columns: &AnswerColumns, limits: &Limits, rows: &mut Vec<Row>) -> Result<()> {
    if batch.rows() > MAX_ROWS {
        return Err(Error::too_large(format!(
            "the record batch is too long: expected at most {MAX_ROWS} rows, found {}",
            batch.rows()
        )));
    }
    let head = batch.read(&columns.head)?;
    let missing = || Error::wire("invalid batch answer: expected row numbers, stages, errors and seconds");
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
    let statuses = head
        .columns()
        .get(CACHE)
        .map(|column| column.as_primitive_opt::<UInt8Type>());
    let statuses = statuses.map(|column| column.ok_or_else(missing)).transpose()?;
    // The values of failed rows are zeros, and not read.
    let values: Option<RecordBatch> = if errors.null_count() > 0 {
        Some(batch.read(&columns.values)?)
    } else {
        None
    };
    let further = match &values {
        Some(_) if !columns.further.is_empty() => Some(batch.read(&columns.further)?),
        _ => None,
    };
    let positions = match &values {
        Some(_) if !columns.crops.is_empty() => Some(batch.read(&columns.crops)?),
        _ => None,
    };
    let stored = match columns.stored {
        Some(index) => Some(batch.read(&[index])?),
        None => None,
    };
    let stored = stored
        .as_ref()
        .map(|stored| stored.column(0).as_primitive_opt::<UInt8Type>());
    let stored = stored.map(|column| column.ok_or_else(missing)).transpose()?;
    rows.reserve(batch.rows());
    for row in 0..batch.rows() {
        let value = match &values {
            Some(values) if errors.is_null(row) && stored.is_some() => {
                Ok(column::check_no_value(values, row)?)
            }
            Some(values) if errors.is_null(row) => {
                let value = column::sample(&columns.value_type, values, row, limits)?;
                match &positions {
                    Some(positions) => crops::with_position(value, stages.value(row), positions, row)?,
                    None => Ok(value),
                }
            }
            _ => {
                let Ok(error) = errors.value(row).parse::<RowError>();
                Err(error)
            }
        };
        let further_columns = match &further {
            Some(further) if value.is_ok() => column::further_columns(further, row)?,
            _ => Vec::new(),
        };
        rows.push(Row {
            row: numbers.value(row),
            stage: stages.value(row),
            seconds: seconds.value(row),
            cache: statuses.map_or(CacheStatus::Computed, |statuses| statuses.value(row).into()),
            stored: stored
                .filter(|_| value.is_ok())
                .map(|stored| stored.value(row) > 0),
            value,
            columns: further_columns,
        });
    }
    Ok(())
}
