//! Tables as Arrow IPC streams.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{
    CompressionType,
    reader::StreamDecoder,
    writer::{IpcWriteOptions, StreamEncoder},
};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use crate::{
    Error, Limits, Result, Table,
    wire::{Compression, ipc},
};

/// What ends a stream: a continuation marker, and no message behind it.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Writes a stream.
pub(super) struct Encoder(StreamEncoder);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    pub(super) fn new(schema: &SchemaRef, compression: Compression) -> Result<Self> {
        let codec = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd => Some(CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::default()
            .try_with_compression(codec)
            .map_err(ipc::internal)?;
        StreamEncoder::try_new_with_options(schema, options)
            .map(Self)
            .map_err(unwritable)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        self.0.encode(batch).map(ipc::parts).map_err(unwritable)
    }

    pub(super) fn finish(self) -> Result<Vec<Bytes>> {
        self.0.finish().map(ipc::parts).map_err(ipc::internal)
    }
}

/// Reads a whole stream.
pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Table> {
    if body.len() as u64 > limits.max_value_bytes {
        return Err(Error::too_large(format!(
            "a table of {} bytes is more than the limit of {}",
            body.len(),
            limits.max_value_bytes
        )));
    }
    if !body.ends_with(&END) {
        return Err(Error::wire(
            "the Arrow stream ended early: its end marker is missing",
        ));
    }
    // Arrow panics on some malformed messages.
    let read = catch_unwind(AssertUnwindSafe(|| read(body)));
    let malformed =
        |what: &dyn std::fmt::Display| Error::wire(format!("found a malformed Arrow stream: {what}"));
    let (schema, batches) = read
        .map_err(|_| malformed(&"it cannot be decoded"))?
        .map_err(|error| malformed(&error))?;
    let schema = schema.ok_or_else(|| malformed(&"it has no schema"))?;
    Table::new(schema, batches)
}

fn read(body: Bytes) -> Result<(Option<SchemaRef>, Vec<RecordBatch>), ArrowError> {
    let mut decoder = StreamDecoder::new();
    let mut buffer = Buffer::from(body);
    let mut batches = Vec::new();
    while !buffer.is_empty() {
        batches.extend(decoder.decode(&mut buffer)?);
    }
    decoder.finish()?;
    Ok((decoder.schema(), batches))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn unwritable(error: ArrowError) -> Error {
    Error::wire(format!("the table cannot be written as an Arrow stream: {error}"))
}
