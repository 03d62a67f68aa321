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
/// Reads a stream as it comes.
pub(super) struct Decoder {
    decoder: StreamDecoder,
    /// The last bytes that came.
    end: Vec<u8>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            decoder: StreamDecoder::new(),
            end: Vec::new(),
        }
    }

    /// What is whole with these bytes.
    pub(super) fn push(&mut self, bytes: Bytes) -> Result<Vec<RecordBatch>> {
        self.end
            .extend_from_slice(&bytes[bytes.len().saturating_sub(END.len())..]);
        self.end.drain(..self.end.len().saturating_sub(END.len()));
        let mut buffer = Buffer::from(bytes);
        // Arrow panics on some malformed messages.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut batches = Vec::new();
            while !buffer.is_empty() {
                batches.extend(self.decoder.decode(&mut buffer)?);
            }
            Ok::<_, ArrowError>(batches)
        }));
        let read = read.map_err(|_| malformed(&"it cannot be decoded"))?;
        read.map_err(|error| malformed(&error))
    }

    pub(super) fn finish(mut self) -> Result<SchemaRef> {
        // What ends between two messages looks whole to the decoder.
        if self.end != END {
            return Err(Error::wire(
                "the Arrow stream ended early: its end marker is missing",
            ));
        }
        self.decoder.finish().map_err(|error| malformed(&error))?;
        let schema = self.decoder.schema();
        schema.ok_or_else(|| malformed(&"it has no schema"))
    }
}

pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Table> {
    if body.len() as u64 > limits.max_value_bytes {
        return Err(Error::too_large(format!(
            "a table of {} bytes is more than the limit of {}",
            body.len(),
            limits.max_value_bytes
        )));
    }
    let mut decoder = Decoder::new();
    let batches = decoder.push(body)?;
    Table::new(decoder.finish()?, batches)
}

fn malformed(what: &dyn std::fmt::Display) -> Error {
    Error::wire(format!("found a malformed Arrow stream: {what}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn unwritable(error: ArrowError) -> Error {
    Error::wire(format!("the table cannot be written as an Arrow stream: {error}"))
}
