//! Arrow IPC streams: validated reading, and writing, without copies.
//!
//! The stream decoder of the `arrow-ipc` crate accepts a stream without its end marker, and panics on some malformed
//! messages. This module splits the stream into messages and validates them before that crate decodes arrays.

mod check;
mod message_reader;

use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{MessageHeader, convert::fb_to_schema, reader::RecordBatchDecoder};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use pushdown_core::{Error, Result};

pub(super) use check::MAX_COMPRESSED_BYTES;
pub use message_reader::{Message, MessageReader};

/// Buffers shorter than this are joined: a padding of 8 bytes does not deserve a write of its own.
const MIN_PIECE_BYTES: usize = 4096;

/// Reads record batches from chunks of a stream. Chunk boundaries may be anywhere.
#[derive(Debug)]
pub struct RecordBatchReader {
    frames: MessageReader,
    schema: Option<SchemaRef>,
}

/// A complete, validated record batch whose columns are not decoded yet.
#[derive(Debug)]
pub struct RawBatch {
    schema: SchemaRef,
    message: Message,
    rows: usize,
}

impl RecordBatchReader {
    /// A reader for record batches of at most `max_body` bytes.
    pub fn new(max_body: u64) -> Self {
        Self {
            frames: MessageReader::new(max_body),
            schema: None,
        }
    }

    /// Accepts the messages of a file: see [`MessageReader::for_stored_object`].
    #[must_use]
    pub fn for_stored_object(self) -> Self {
        Self {
            frames: self.frames.for_stored_object(),
            ..self
        }
    }

    /// The schema; `None` until it has been received.
    pub const fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// The next record batch, if `chunk` completes one. Advances `chunk` past the bytes read.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an invalid stream, and for bytes after its end;
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for a record batch of more than `max_body` bytes.
    pub fn next(&mut self, chunk: &mut Buffer) -> Result<Option<RawBatch>> {
        while let Some(message) = self.frames.next(chunk)? {
            match (message.header(), &self.schema) {
                (MessageHeader::Schema, None) => {
                    let schema = message
                        .schema()
                        .ok_or_else(|| Error::wire("invalid Arrow schema message"))?;
                    check::schema(&schema)?;
                    self.schema = Some(Arc::new(fb_to_schema(schema)));
                }
                (MessageHeader::RecordBatch, Some(schema)) => {
                    return RawBatch::new(Arc::clone(schema), message).map(Some);
                }
                (found, _) => {
                    return Err(Error::wire(format!(
                        "invalid Arrow stream: found an unexpected {found:?} message"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Whether no message is partially read.
    pub fn is_between_messages(&self) -> bool {
        self.frames.is_between_messages()
    }

    /// Checks that the end marker has been received.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if the stream is truncated.
    pub fn finish(&self) -> Result<()> {
        if self.frames.is_ended() {
            return Ok(());
        }
        Err(Error::wire(
            "the Arrow stream ended early: its end marker is missing",
        ))
    }
}

impl RawBatch {
    fn new(schema: SchemaRef, message: Message) -> Result<Self> {
        let rows = check::batch(&message)?;
        Ok(Self {
            schema,
            message,
            rows,
        })
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The schema of the stream.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes the columns with these ascending indices. They share the received bytes.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if they do not match the schema.
    pub fn read(&self, columns: &[usize]) -> Result<RecordBatch> {
        check::columns(&self.message, &self.schema, columns)?;
        let batch = self
            .message
            .batch()
            .ok_or_else(|| Error::wire("invalid Arrow record batch message"))?;
        let (body, version) = (self.message.body(), self.message.version());
        let dictionaries = HashMap::new();
        RecordBatchDecoder::try_new(body, batch, Arc::clone(&self.schema), &dictionaries, &version)
            .and_then(|decoder| decoder.with_projection(Some(columns)).read_record_batch())
            .map_err(|error| Error::wire(format!("malformed Arrow record batch: {error}")))
    }
}

/// Converts a buffer to [`Bytes`] without a copy.
pub(super) fn share(buffer: Buffer) -> Bytes {
    Bytes::from_owner(Owner(buffer))
}

/// Converts buffers to pieces of a body: long ones without a copy, short ones joined.
pub(super) fn parts(buffers: Vec<Buffer>) -> Vec<Bytes> {
    let mut parts = Vec::new();
    let mut joined = Vec::new();
    for buffer in buffers {
        if buffer.len() < MIN_PIECE_BYTES {
            joined.extend_from_slice(&buffer);
            continue;
        }
        if !joined.is_empty() {
            parts.push(Bytes::from(std::mem::take(&mut joined)));
        }
        parts.push(share(buffer));
    }
    if !joined.is_empty() {
        parts.push(joined.into());
    }
    parts
}

/// The length of the first message, a schema, of a stream that this crate wrote.
pub(super) fn first_message(stream: &[u8]) -> usize {
    match stream.as_chunks::<4>().0 {
        [_, length, ..] => 8 + u32::from_le_bytes(*length) as usize,
        _ => 0,
    }
}

/// An error of Arrow for input from this crate.
#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
pub(super) fn internal(error: ArrowError) -> Error {
    Error::internal(format!("Arrow: {error}"))
}

/// A buffer as the owner of [`Bytes`].
struct Owner(Buffer);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}
