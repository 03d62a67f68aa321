//! Tables as bytes: record batches in, pieces of a body out.

mod arrow;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{
    Compression,
    form::{best, quality},
};
use crate::{Limits, Result, Table};

/// How a table is written as a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableForm {
    /// An Arrow IPC stream, its buffers compressed or not.
    ArrowStream(Compression),
}

impl TableForm {
    /// The forms that there are, the default one first.
    pub const OFFERED: &[Self] = &[Self::ArrowStream(Compression::None)];

    /// The form that a caller with this `Accept` header likes best, as [`Form::negotiate`](super::Form::negotiate)
    /// has it; `None` where it accepts none of them.
    pub fn negotiate(accept: Option<&str>) -> Option<Self> {
        match accept.filter(|accept| !accept.trim().is_empty()) {
            None => Self::OFFERED.first().copied(),
            Some(accept) => best(accept, Self::OFFERED, |form, ranges| {
                quality(form.content_type(), false, ranges)
            }),
        }
    }

    /// The `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::ArrowStream(_) => "application/vnd.apache.arrow.stream",
        }
    }
}

/// Writes the rows of a table as they come. The same rows in the same record batches are always the same bytes.
#[derive(Debug)]
pub struct TableEncoder(Encoder);

#[derive(Debug)]
enum Encoder {
    Arrow(arrow::Encoder),
}

impl TableEncoder {
    /// An encoder of record batches of `schema`.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a type that the form cannot hold.
    pub fn new(form: TableForm, schema: &SchemaRef) -> Result<Self> {
        let encoder = match form {
            TableForm::ArrowStream(compression) => Encoder::Arrow(arrow::Encoder::new(schema, compression)?),
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
        }
    }

    /// Ends the table; gives the rest of the body. A body without it is recognisably cut off.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) where the form's writer fails.
    pub fn finish(self) -> Result<Vec<Bytes>> {
        match self.0 {
            Encoder::Arrow(encoder) => encoder.finish(),
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
