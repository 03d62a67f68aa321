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

use crate::{Compression, ipc};
use pushdown_core::{Error, Limits, Result, Table};

/// The end marker of a stream: a continuation marker and a message length of 0.
const END_MARKER: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Encodes a stream.
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

/// Decodes a stream from chunks.
pub(super) struct Decoder {
    decoder: StreamDecoder,
    /// The last received bytes.
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

    /// The record batches that these bytes complete.
    pub(super) fn push(&mut self, bytes: Bytes) -> Result<Vec<RecordBatch>> {
        self.end
            .extend_from_slice(&bytes[bytes.len().saturating_sub(END_MARKER.len())..]);
        self.end.drain(..self.end.len().saturating_sub(END_MARKER.len()));
        let mut buffer = Buffer::from(bytes);
        // Arrow panics on some malformed messages.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut batches = Vec::new();
            while !buffer.is_empty() {
                batches.extend(self.decoder.decode(&mut buffer)?);
            }
            Ok::<_, ArrowError>(batches)
        }));
        let read = read.map_err(|_| malformed(&"the decoder panicked"))?;
        read.map_err(|error| malformed(&error))
    }

    pub(super) fn finish(mut self) -> Result<SchemaRef> {
        // The decoder accepts a stream that is truncated between two messages.
        if self.end != END_MARKER {
            return Err(Error::wire(
                "the Arrow stream ended early: its end marker is missing",
            ));
        }
        self.decoder.finish().map_err(|error| malformed(&error))?;
        let schema = self.decoder.schema();
        schema.ok_or_else(|| malformed(&"no schema"))
    }
}

pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Table> {
    if body.len() as u64 > limits.max_value_bytes {
        return Err(Error::too_large(format!(
            "the table is too large: expected at most {} bytes, found {}",
            limits.max_value_bytes,
            body.len()
        )));
    }
    let mut decoder = Decoder::new();
    let batches = decoder.push(body)?;
    Table::new(decoder.finish()?, batches)
}

fn malformed(fault: &dyn std::fmt::Display) -> Error {
    Error::wire(format!("malformed Arrow stream: {fault}"))
}

#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
fn unwritable(error: ArrowError) -> Error {
    Error::wire(format!("the table cannot be encoded as an Arrow stream: {error}"))
}
