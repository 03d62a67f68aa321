//! JSON lines: an object for each row.

mod columns;
mod fault;
mod rows;
#[cfg(test)]
mod tests;
mod tokens;
mod types;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::{
    Head,
    lines::{self, Form, Lines, breaks, leading, malformed},
};
use crate::{Error, Result, limits::TableLimits};
use columns::Objects;
use fault::Fault;
use rows::Rows;
use tokens::{Tokens, Value};
use types::Inference;

/// What the start of a file tells of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: SchemaRef,
    batch_rows: usize,
}

impl Table {
    /// Finds names and types in the whole rows of the head.
    pub(super) fn infer(head: &Head, limits: &TableLimits) -> Result<Self> {
        let mut inference = Inference::new(limits.max_columns);
        let (mut found, mut count, mut start, mut line) = (Rows::default(), 0_usize, 0, 1);
        while start < head.bytes.len() {
            let rest = &head.bytes[start..];
            let (length, is_end) = found.next(rest);
            if !is_end && (head.cut || found.is_between()) {
                break;
            }
            let text = &rest[..length];
            let read = object(text, |tokens| inference.add(tokens));
            if inference.is_full() {
                return Err(Error::too_large(format!(
                    "the object has more columns than the limit of {}",
                    limits.max_columns
                )));
            }
            read.map_err(|fault| malformed::<Columns>(line + breaks(leading(text)), &fault.to_string()))?;
            line += breaks(text);
            start += length;
            count += 1;
        }
        let schema = Schema::new(inference.finish());
        let columns = schema.flattened_fields().len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "the object has {columns} columns, more than the limit of {}",
                limits.max_columns
            )));
        }
        if count == 0 && head.cut {
            return Err(Error::undecodable(format!(
                "the first row of the JSON lines has more than {} bytes: a string or a bracket may not be closed",
                head.bytes.len()
            )));
        }
        if columns == 0 {
            return Err(Error::undecodable(
                "the JSON lines have no columns, expected an object in each line",
            ));
        }
        // A row of a few bytes takes as many columns as any other.
        let bytes = start.max(count.saturating_mul(columns).saturating_mul(size_of::<u64>()));
        Ok(Self {
            schema: Arc::new(schema),
            batch_rows: Head::batch_rows(count, bytes),
        })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Lines<Columns>> {
        let schema = self.schema.project(columns);
        let schema = schema.map_err(|error| Error::internal(error.to_string()))?;
        let form = Columns {
            schema: Arc::new(schema),
            is_strict: columns.len() == self.schema.fields().len(),
        };
        Lines::new(form, self.batch_rows, (0, 0), limits)
    }
}

/// Reads the object that a row has to be.
fn object(row: &[u8], read: impl FnOnce(&mut Tokens<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    let text = std::str::from_utf8(row).map_err(|_| Fault::syntax("found bytes that are no UTF-8"))?;
    let mut tokens = Tokens::new(text);
    match tokens.value()? {
        Value::Object => read(&mut tokens),
        other => Err(Fault::syntax(format!(
            "found {}, expected an object in each line",
            other.name()
        ))),
    }
}

/// Some columns of a file.
pub(super) struct Columns {
    schema: SchemaRef,
    /// Whether these are all columns, so that a name that is none of theirs is an error.
    is_strict: bool,
}

impl Form for Columns {
    const NAME: &'static str = "JSON";
    type Rows = Growing;

    fn rows(&self, rows: usize) -> Result<Growing> {
        Ok(Growing {
            schema: SchemaRef::clone(&self.schema),
            objects: Objects::new(self.schema.fields().clone(), self.is_strict),
            most: rows,
            found: Rows::default(),
            begun: Vec::new(),
        })
    }

    fn fault(&self, error: &ArrowError) -> String {
        match error {
            ArrowError::JsonError(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Columns of a record batch that grow by rows.
pub(super) struct Growing {
    schema: SchemaRef,
    objects: Objects,
    /// Rows of a record batch.
    most: usize,
    found: Rows,
    /// The row that the text ends in.
    begun: Vec<u8>,
}

impl Growing {
    fn add(&mut self, row: &[u8]) -> Result<(), ArrowError> {
        let added = object(row, |tokens| self.objects.add(tokens));
        added.map_err(|fault| ArrowError::JsonError(fault.to_string()))
    }
}

impl lines::Rows for Growing {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        let mut taken = 0;
        while taken < text.len() && !self.is_full() {
            let rest = &text[taken..];
            let (length, is_end) = self.found.next(rest);
            let part = &rest[..length];
            taken += length;
            if !is_end {
                if !self.found.is_between() {
                    self.begun.extend_from_slice(part);
                }
            } else if self.begun.is_empty() {
                self.add(part)?;
            } else {
                let mut row = std::mem::take(&mut self.begun);
                row.extend_from_slice(part);
                self.add(&row)?;
            }
        }
        Ok(taken)
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= self.most
    }

    fn end(&mut self) -> Result<(), ArrowError> {
        if self.found.is_between() {
            return Ok(());
        }
        // A row that does not end is no object: what it is instead is the error.
        let row = std::mem::take(&mut self.begun);
        self.add(&row)
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
