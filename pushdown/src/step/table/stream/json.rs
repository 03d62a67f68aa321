//! JSON lines: an object for each row.

mod types;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::reader::{Decoder, ReaderBuilder};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::{
    Head,
    lines::{Form, Lines, Rows},
};
use crate::{Error, Result, limits::TableLimits, pipeline::excerpt};

/// What the start of a file tells of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: SchemaRef,
    batch_rows: usize,
}

impl Table {
    /// Finds names and types in the whole rows of the head.
    pub(super) fn infer(head: &Head, limits: &TableLimits) -> Result<Self> {
        let whole = match memchr::memrchr(b'\n', &head.bytes) {
            Some(end) if head.cut => &head.bytes[..end],
            _ => &head.bytes[..],
        };
        let (fields, rows) = types::infer(whole, head.cut, limits.max_columns)?;
        let schema = Schema::new(fields);
        let columns = schema.flattened_fields().len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "the object has {columns} columns, more than the limit of {}",
                limits.max_columns
            )));
        }
        if columns == 0 {
            return Err(Error::undecodable(
                "the JSON lines have no columns, expected an object in each line",
            ));
        }
        Ok(Self {
            schema: Arc::new(schema),
            batch_rows: Head::batch_rows(rows, whole.len()),
        })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Lines<Columns>> {
        // A name that no row of the start has is an error, within nested values as well: only where the columns asked for
        // have none can others be passed over.
        let fields = self.schema.fields();
        let flat = columns
            .iter()
            .all(|column| !fields[*column].data_type().is_nested());
        let (read, strict) = if columns.len() == fields.len() || !flat {
            ((0..fields.len()).collect(), true)
        } else {
            (columns.to_vec(), false)
        };
        let schema = self
            .schema
            .project(&read)
            .map_err(|error| Error::internal(error.to_string()))?;
        let form = Columns {
            schema: Arc::new(schema),
            strict,
            kept: (read.len() != columns.len()).then(|| columns.to_vec()),
        };
        Lines::new(form, self.batch_rows, (0, 0), limits)
    }
}

/// Some columns of a file.
pub(super) struct Columns {
    schema: SchemaRef,
    strict: bool,
    /// The columns that are given of those that are read, where not all.
    kept: Option<Vec<usize>>,
}

impl Form for Columns {
    const NAME: &'static str = "JSON";
    type Rows = Objects;

    fn rows(&self, rows: usize) -> Result<Objects> {
        let decoder = ReaderBuilder::new(SchemaRef::clone(&self.schema))
            .with_batch_size(rows)
            .with_strict_mode(self.strict)
            .build_decoder()
            .map_err(|error| Error::undecodable(self.fault(&error)))?;
        Ok(Objects {
            decoder,
            rows,
            kept: self.kept.clone(),
        })
    }

    fn fault(&self, error: &ArrowError) -> String {
        let text = match error {
            ArrowError::JsonError(text) => text.clone(),
            other => other.to_string(),
        };
        let unknown = text
            .strip_prefix("column '")
            .and_then(|rest| rest.strip_suffix("' missing from schema"));
        match unknown {
            Some(name) => format!(
                "found the name `{}`, which no row at the start has",
                excerpt(name, 60)
            ),
            None => excerpt(&text, 200).into_owned(),
        }
    }
}

/// Arrow's decoder.
pub(super) struct Objects {
    decoder: Decoder,
    rows: usize,
    kept: Option<Vec<usize>>,
}

impl Rows for Objects {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        self.decoder.decode(text)
    }

    fn is_full(&self) -> bool {
        self.decoder.len() >= self.rows && !self.decoder.has_partial_record()
    }

    fn end(&mut self) -> Result<(), ArrowError> {
        if self.decoder.has_partial_record() {
            return Err(ArrowError::JsonError("the last object ends early".to_owned()));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let batch = self.decoder.flush()?;
        match (batch, &self.kept) {
            (Some(batch), Some(kept)) => batch.project(kept).map(Some),
            (batch, _) => Ok(batch),
        }
    }
}
