//! JSON lines: one object per row.

mod columns;
mod inference;
mod row_error;
mod splitter;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::{
    head::Head,
    lines::{Preamble, RowDecoder, TextDecoder, TextFormat, count_line_breaks, leading_space, malformed},
};
use columns::ObjectColumn;
use inference::Inference;
use pushdown_core::{Error, Result, limits::TableLimits};
use row_error::RowError;
use splitter::RowSplitter;
use tokens::{Tokens, Value};

/// The inferred layout of a file of JSON lines.
#[derive(Debug, Clone)]
pub(super) struct JsonTable {
    pub(super) schema: SchemaRef,
    batch_rows: usize,
}

impl JsonTable {
    /// Infers names and types from the whole rows of the head.
    pub(super) fn infer(head: &Head, limits: &TableLimits) -> Result<Self> {
        let mut inference = Inference::new(limits.max_columns);
        let (mut splitter, mut count, mut start, mut line) = (RowSplitter::default(), 0_usize, 0, 1);
        while start < head.bytes.len() {
            let rest = &head.bytes[start..];
            let (length, is_row_end) = splitter.next(rest);
            if !is_row_end && (head.is_truncated || splitter.is_between_rows()) {
                break;
            }
            let text = &rest[..length];
            let added = read_object(text, |tokens| inference.add(tokens));
            if inference.is_over_limit() {
                return Err(Error::too_large(format!(
                    "too many columns: expected at most {}, found more",
                    limits.max_columns
                )));
            }
            added.map_err(|error| {
                let line = line + count_line_breaks(leading_space(text));
                malformed::<JsonFormat>(line, &error.to_string())
            })?;
            line += count_line_breaks(text);
            start += length;
            count += 1;
        }
        let schema = Schema::new(inference.finish());
        let columns = schema.flattened_fields().len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "too many columns: expected at most {}, found {columns}",
                limits.max_columns
            )));
        }
        if count == 0 && head.is_truncated {
            return Err(Error::undecodable(format!(
                "first JSON row too long: expected at most {} bytes, found more (check for an unclosed string or bracket)",
                head.bytes.len()
            )));
        }
        if columns == 0 {
            return Err(Error::undecodable(
                "empty JSON lines: expected an object with members in each line, found no columns",
            ));
        }
        // A short row also takes a value in each column.
        let bytes = start.max(count.saturating_mul(columns).saturating_mul(size_of::<u64>()));
        Ok(Self {
            schema: Arc::new(schema),
            batch_rows: Head::batch_rows(count, bytes),
        })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<TextDecoder<JsonFormat>> {
        let schema = self.schema.project(columns);
        let schema = schema.map_err(|error| Error::internal(error.to_string()))?;
        let format = JsonFormat {
            schema: Arc::new(schema),
            is_strict: columns.len() == self.schema.fields().len(),
        };
        TextDecoder::new(format, self.batch_rows, Preamble::default(), limits)
    }
}

/// The end of the first row; `None` if the text ends before it.
pub(super) fn first_row_end(text: &[u8]) -> Option<usize> {
    let (length, is_row_end) = RowSplitter::default().next(text);
    is_row_end.then_some(length)
}

/// Parses a row and reads it by `read`. Fails if the row is not an object.
fn read_object(
    row: &[u8],
    read: impl FnOnce(&mut Tokens<'_>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let text = std::str::from_utf8(row)
        .map_err(|_| RowError::syntax("expected text in UTF-8, found invalid bytes"))?;
    let mut tokens = Tokens::new(text);
    match tokens.value()? {
        Value::Object => read(&mut tokens),
        other => Err(RowError::syntax(format!(
            "expected an object in each line, found {}",
            other.describe()
        ))),
    }
}

/// JSON lines with the columns to read.
pub(super) struct JsonFormat {
    schema: SchemaRef,
    /// Whether these are all columns, so that an unknown name is an error.
    is_strict: bool,
}

impl TextFormat for JsonFormat {
    const NAME: &'static str = "JSON";
    type Decoder = JsonDecoder;

    fn row_decoder(&self, batch_rows: usize) -> Result<JsonDecoder> {
        Ok(JsonDecoder {
            schema: SchemaRef::clone(&self.schema),
            objects: ObjectColumn::new(self.schema.fields().clone(), self.is_strict),
            batch_rows,
            splitter: RowSplitter::default(),
            partial_row: Vec::new(),
        })
    }

    fn describe(&self, error: &ArrowError) -> String {
        match error {
            ArrowError::JsonError(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Decodes rows into the columns of a record batch.
pub(super) struct JsonDecoder {
    schema: SchemaRef,
    objects: ObjectColumn,
    batch_rows: usize,
    splitter: RowSplitter,
    /// The unfinished row at the end of the text.
    partial_row: Vec<u8>,
}

impl JsonDecoder {
    fn add_row(&mut self, row: &[u8]) -> Result<(), ArrowError> {
        let added = read_object(row, |tokens| self.objects.add(tokens));
        added.map_err(|error| ArrowError::JsonError(error.to_string()))
    }
}

impl RowDecoder for JsonDecoder {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        let mut consumed = 0;
        while consumed < text.len() && !self.is_full() {
            let rest = &text[consumed..];
            let (length, is_row_end) = self.splitter.next(rest);
            let part = &rest[..length];
            consumed += length;
            if !is_row_end {
                if !self.splitter.is_between_rows() {
                    self.partial_row.extend_from_slice(part);
                }
            } else if self.partial_row.is_empty() {
                self.add_row(part)?;
            } else {
                let mut row = std::mem::take(&mut self.partial_row);
                row.extend_from_slice(part);
                self.add_row(&row)?;
            }
        }
        Ok(consumed)
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= self.batch_rows
    }

    fn end(&mut self) -> Result<(), ArrowError> {
        if self.splitter.is_between_rows() {
            return Ok(());
        }
        // An unfinished row is not a valid object, so this returns its error.
        let row = std::mem::take(&mut self.partial_row);
        self.add_row(&row)
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = self.objects.len();
        if rows == 0 {
            return Ok(None);
        }
        let (_, columns, _) = self.objects.finish()?.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options).map(Some)
    }
}
