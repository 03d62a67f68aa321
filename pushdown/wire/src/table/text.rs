//! Tables as text: CSV with a header, and JSON lines.

mod uuids;

use std::fmt;

use arrow_array::RecordBatch;
use arrow_csv::{Writer as CsvWriter, WriterBuilder as CsvWriterBuilder};
use arrow_json::{LineDelimitedWriter, writer::LineDelimited, writer::WriterBuilder as JsonWriterBuilder};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;

use super::sink::Sink;
use pushdown_core::{Error, Result, language::excerpt};

/// Encodes CSV. Nulls are empty values, and UUIDs texts.
pub(super) struct Csv {
    writer: CsvWriter<Sink>,
    sink: Sink,
    /// The columns as they are written.
    schema: SchemaRef,
}

/// Encodes one JSON object per line, including null values. UUIDs are texts.
pub(super) struct Ndjson {
    writer: LineDelimitedWriter<Sink>,
    sink: Sink,
    /// The columns as they are written.
    schema: SchemaRef,
}

impl Csv {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self> {
        let is_nested = |data_type: &DataType| data_type.is_nested() && !is_dictionary(data_type);
        let schema = uuids::without_uuids(schema);
        check_types(&schema, "CSV", |data_type| {
            is_nested(data_type) || is_binary(data_type)
        })?;
        let sink = Sink::default();
        let mut csv = Self {
            writer: CsvWriterBuilder::new().with_header(true).build(sink.clone()),
            sink,
            schema,
        };
        // Writes the header even if no row follows.
        let empty = RecordBatch::new_empty(SchemaRef::clone(&csv.schema));
        csv.writer
            .write(&empty)
            .map_err(|error| unwritable("CSV", &error))?;
        Ok(csv)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        uuids::convert(batch, &self.schema)
            .and_then(|batch| self.writer.write(&batch))
            .map_err(|error| unwritable("CSV", &error))?;
        Ok(self.sink.take())
    }

    pub(super) fn finish(self) -> Vec<Bytes> {
        drop(self.writer);
        self.sink.take()
    }
}

impl Ndjson {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self> {
        let schema = uuids::without_uuids(schema);
        check_types(&schema, "JSON", |data_type| {
            is_binary(data_type) || matches!(data_type, DataType::Union(..) | DataType::Interval(_))
        })?;
        let sink = Sink::default();
        let builder = JsonWriterBuilder::new().with_explicit_nulls(true);
        Ok(Self {
            writer: builder.build::<_, LineDelimited>(sink.clone()),
            sink,
            schema,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        uuids::convert(batch, &self.schema)
            .and_then(|batch| self.writer.write(&batch))
            .map_err(|error| unwritable("JSON", &error))?;
        Ok(self.sink.take())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Bytes>> {
        self.writer.finish().map_err(|error| unwritable("JSON", &error))?;
        Ok(self.sink.take())
    }
}

impl fmt::Debug for Csv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Csv")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Ndjson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ndjson")
    }
}

/// Checks that no field of a schema, at any depth, has an unsupported type.
fn check_types(schema: &SchemaRef, form: &str, is_unsupported: impl Fn(&DataType) -> bool) -> Result<()> {
    let has_unsupported_type = |field: &&Field| {
        is_unsupported(field.data_type()) || is_dictionary_of(field.data_type(), &is_unsupported)
    };
    match schema.flattened_fields().into_iter().find(has_unsupported_type) {
        None => Ok(()),
        Some(field) => Err(Error::wire(format!(
            "{form} does not support column `{}` of type {}: leave it out, or request Arrow or Parquet",
            excerpt(field.name(), 60),
            excerpt(&field.data_type().to_string(), 100)
        ))),
    }
}

const fn is_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..))
}

fn is_dictionary_of(data_type: &DataType, is_value_type: &impl Fn(&DataType) -> bool) -> bool {
    matches!(data_type, DataType::Dictionary(_, value) if is_value_type(value))
}

const fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

fn unwritable(form: &str, error: &ArrowError) -> Error {
    Error::wire(format!("the table cannot be encoded as {form}: {error}"))
}
