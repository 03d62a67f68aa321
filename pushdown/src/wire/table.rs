//! Tables as bytes: record batches in, pieces of a body out.

mod arrow;
mod parquet;
mod sink;
mod text;
mod width;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{Compression, form};
use crate::{Limits, Result, Table};

/// How a table is written as a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableForm {
    /// An Arrow IPC stream, its buffers compressed or not.
    ArrowStream(Compression),
    /// A Parquet file, compressed by Snappy.
    Parquet,
    /// Comma-separated values behind a header. Null is an empty value, as an empty string is.
    Csv,
    /// A JSON object in each line, null values among them; JSON has no NaN and no infinities, which are null, too.
    Ndjson,
}

impl TableForm {
    /// Every form, the default one first.
    pub const ALL: [Self; 4] = [
        Self::ArrowStream(Compression::None),
        Self::Parquet,
        Self::Csv,
        Self::Ndjson,
    ];

    /// The form that a caller with this `Accept` header likes best, as [`Form::negotiate`](super::Form::negotiate) has it;
    /// `None` where it accepts none of them. Buffers are compressed where the type of the stream has the parameter
    /// `compression=lz4` or `compression=zstd`.
    pub fn negotiate(accept: Option<&str>) -> Option<Self> {
        let form = form::negotiate(accept, &Self::ALL, Self::content_type)?;
        let Self::ArrowStream(_) = form else {
            return Some(form);
        };
        let asks = |codec| {
            accept.is_some_and(|accept| form::asks(accept, form.content_type(), "compression", codec))
        };
        let compression = if asks("lz4") {
            Compression::Lz4
        } else if asks("zstd") {
            Compression::Zstd
        } else {
            Compression::None
        };
        Some(Self::ArrowStream(compression))
    }

    /// The `Accept` header that this form is negotiated for.
    pub const fn accept(self) -> &'static str {
        match self {
            Self::ArrowStream(Compression::Lz4) => "application/vnd.apache.arrow.stream; compression=lz4",
            Self::ArrowStream(Compression::Zstd) => "application/vnd.apache.arrow.stream; compression=zstd",
            form => form.content_type(),
        }
    }

    /// Bytes that an encoder holds back before any flow, at most, a record batch apart.
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

/// Writes the rows of a table as they come. The same rows in the same record batches are always the same bytes.
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
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a type that the form cannot hold.
    pub fn new(form: TableForm, schema: &SchemaRef) -> Result<Self> {
        let encoder = match form {
            TableForm::ArrowStream(compression) => Encoder::Arrow(arrow::Encoder::new(schema, compression)?),
            TableForm::Parquet => Encoder::Parquet(Box::new(parquet::Encoder::new(schema)?)),
            TableForm::Csv => Encoder::Csv(Box::new(text::Csv::new(schema)?)),
            TableForm::Ndjson => Encoder::Ndjson(text::Ndjson::new(schema)?),
        };
        Ok(Self(encoder))
    }

    /// Writes a record batch; gives what of the body is ready, which may be nothing.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a value that the form cannot hold.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        match &mut self.0 {
            Encoder::Arrow(encoder) => encoder.write(batch),
            Encoder::Parquet(encoder) => encoder.write(batch),
            Encoder::Csv(encoder) => encoder.write(batch),
            Encoder::Ndjson(encoder) => encoder.write(batch),
        }
    }

    /// Ends the table; gives the rest of the body. Arrow and Parquet without it are recognisably cut off; of texts only
    /// what carries them can tell.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) where the form's writer fails.
    pub fn finish(self) -> Result<Vec<Bytes>> {
        match self.0 {
            Encoder::Arrow(encoder) => encoder.finish(),
            Encoder::Parquet(encoder) => encoder.finish(),
            Encoder::Csv(encoder) => Ok(encoder.finish()),
            Encoder::Ndjson(encoder) => encoder.finish(),
        }
    }
}

/// Writes a whole table as an Arrow IPC stream.
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

/// Reads the rows of an Arrow IPC stream as they come.
#[derive(Debug)]
pub struct TableDecoder(arrow::Decoder);

impl TableDecoder {
    /// A decoder that nothing has come to.
    #[expect(clippy::new_without_default, reason = "there is no decoder but this one")]
    pub fn new() -> Self {
        Self(arrow::Decoder::new())
    }

    /// The record batches that are whole with these bytes.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for what is no Arrow stream.
    pub fn push(&mut self, bytes: Bytes) -> Result<Vec<RecordBatch>> {
        self.0.push(bytes)
    }

    /// The columns, once all has come.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a stream that ended early.
    pub fn finish(self) -> Result<SchemaRef> {
        self.0.finish()
    }
}

/// Reads a whole table back from an Arrow IPC stream.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a stream that is malformed or cut off;
/// [`TooLarge`](crate::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Table> {
    arrow::decode(body, limits)
}

#[cfg(test)]
mod tests;
