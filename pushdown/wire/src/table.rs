//! Encodes tables as bodies, one record batch at a time, and decodes them.

mod arrow;
mod parquet;
mod sink;
mod text;
mod width;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{Compression, form};
use pushdown_core::{Limits, Result, Table};

/// The encoding of a table as a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableForm {
    /// An Arrow IPC stream with this compression of its buffers.
    ArrowStream(Compression),
    /// A Parquet file with Snappy compression.
    Parquet,
    /// Comma-separated values with a header. Nulls and empty strings are empty values.
    Csv,
    /// One JSON object per line, including null values. NaN and infinities become null, since JSON lacks them.
    Ndjson,
}

impl TableForm {
    /// All forms, with the default first.
    pub const ALL: [Self; 4] = [
        Self::ArrowStream(Compression::None),
        Self::Parquet,
        Self::Csv,
        Self::Ndjson,
    ];

    /// The preferred form of a caller with this `Accept` header, as in [`Form::negotiate`](super::Form::negotiate); `None` if it
    /// accepts none. The parameters `compression=lz4` and `compression=zstd` of the Arrow content type select compression.
    pub fn negotiate(accept: Option<&str>) -> Option<Self> {
        let form = form::negotiate(accept, &Self::ALL, Self::content_type)?;
        let Self::ArrowStream(_) = form else {
            return Some(form);
        };
        let has_codec = |codec| {
            accept
                .is_some_and(|accept| form::has_parameter(accept, form.content_type(), "compression", codec))
        };
        let compression = if has_codec("lz4") {
            Compression::Lz4
        } else if has_codec("zstd") {
            Compression::Zstd
        } else {
            Compression::None
        };
        Some(Self::ArrowStream(compression))
    }

    /// The `Accept` header that selects this form.
    pub const fn accept(self) -> &'static str {
        match self {
            Self::ArrowStream(Compression::Lz4) => "application/vnd.apache.arrow.stream; compression=lz4",
            Self::ArrowStream(Compression::Zstd) => "application/vnd.apache.arrow.stream; compression=zstd",
            form => form.content_type(),
        }
    }

    /// Maximum bytes that an encoder buffers before it returns any, without one record batch.
    pub const fn buffered_bytes(self) -> u64 {
        match self {
            Self::Parquet => parquet::GROUP_BYTES as u64,
            Self::ArrowStream(_) | Self::Csv | Self::Ndjson => 0,
        }
    }

    /// The `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::ArrowStream(_) => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// Encodes the rows of a table as a stream. Equal rows in equal record batches have equal bytes.
#[derive(Debug)]
pub struct TableEncoder(Encoder);

#[derive(Debug)]
enum Encoder {
    Arrow(arrow::Encoder),
    Parquet(Box<parquet::Encoder>),
    Csv(Box<text::Csv>),
    Ndjson(text::Ndjson),
}

impl TableEncoder {
    /// An encoder of record batches of `schema`.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a type that the form does not support.
    pub fn new(form: TableForm, schema: &SchemaRef) -> Result<Self> {
        let encoder = match form {
            TableForm::ArrowStream(compression) => Encoder::Arrow(arrow::Encoder::new(schema, compression)?),
            TableForm::Parquet => Encoder::Parquet(Box::new(parquet::Encoder::new(schema)?)),
            TableForm::Csv => Encoder::Csv(Box::new(text::Csv::new(schema)?)),
            TableForm::Ndjson => Encoder::Ndjson(text::Ndjson::new(schema)?),
        };
        Ok(Self(encoder))
    }

    /// Encodes a record batch, and returns the next pieces of the body, if any.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a value that the form does not support.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        match &mut self.0 {
            Encoder::Arrow(encoder) => encoder.write(batch),
            Encoder::Parquet(encoder) => encoder.write(batch),
            Encoder::Csv(encoder) => encoder.write(batch),
            Encoder::Ndjson(encoder) => encoder.write(batch),
        }
    }

    /// Ends the table, and returns the rest of the body. A reader detects a missing end of Arrow and Parquet; for texts only the
    /// transport can detect it.
    ///
    /// # Errors
    /// [`Internal`](pushdown_core::ErrorKind::Internal) if the writer of the form fails.
    pub fn finish(self) -> Result<Vec<Bytes>> {
        match self.0 {
            Encoder::Arrow(encoder) => encoder.finish(),
            Encoder::Parquet(encoder) => encoder.finish(),
            Encoder::Csv(encoder) => Ok(encoder.finish()),
            Encoder::Ndjson(encoder) => encoder.finish(),
        }
    }
}

/// Encodes a whole table as an Arrow IPC stream.
pub(super) fn encode(table: &Table) -> Result<Vec<Bytes>> {
    let form = TableForm::ArrowStream(Compression::None);
    let mut encoder = TableEncoder::new(form, table.schema())?;
    let mut parts = Vec::new();
    for batch in table.batches() {
        parts.extend(encoder.write(batch)?);
    }
    parts.extend(encoder.finish()?);
    Ok(parts)
}

/// Decodes the rows of an Arrow IPC stream from chunks.
#[derive(Debug)]
pub struct TableDecoder(arrow::Decoder);

impl TableDecoder {
    /// A decoder at the start of a stream.
    #[expect(clippy::new_without_default, reason = "a decoder has no default state")]
    pub fn new() -> Self {
        Self(arrow::Decoder::new())
    }

    /// The record batches that these bytes complete.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an invalid Arrow stream.
    pub fn push(&mut self, bytes: Bytes) -> Result<Vec<RecordBatch>> {
        self.0.push(bytes)
    }

    /// Checks that the stream is complete, and returns its schema.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a truncated stream.
    pub fn finish(self) -> Result<SchemaRef> {
        self.0.finish()
    }
}

/// Decodes a whole table from an Arrow IPC stream.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a malformed or truncated stream;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Table> {
    arrow::decode(body, limits)
}

#[cfg(test)]
mod tests;
