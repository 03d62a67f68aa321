//! Arrow IPC streams, read and written without trust and without copies.
//!
//! Arrow's own stream decoder takes a missing end for an end, and panics on some malformed messages. So messages
//! are framed here, checked against the bytes at hand, and only then given to Arrow, which makes arrays of them.

mod check;
mod frames;

use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{MessageHeader, convert::fb_to_schema, reader::RecordBatchDecoder};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use crate::{Error, Result};

pub(super) use check::MAX_COMPRESSED;
pub(crate) use frames::{Message, MessageReader};

/// Pieces of an answer shorter than this are joined: a padding of 8 bytes is not worth a write of its own.
const JOINED: usize = 4096;

/// A stream's record batches, from chunks that are cut anywhere.
#[derive(Debug)]
pub(super) struct Batches {
    frames: MessageReader,
    schema: Option<SchemaRef>,
}

/// A record batch that has arrived whole and has been checked, its columns not yet made.
#[derive(Debug)]
pub(super) struct RawBatch {
    schema: SchemaRef,
    message: Message,
    rows: usize,
}

impl Batches {
    /// Reads a stream whose record batches have at most `max_body` bytes each.
    pub(super) fn new(max_body: u64) -> Self {
        Self {
            frames: MessageReader::new(max_body),
            schema: None,
        }
    }

    /// The schema, once it has arrived.
    pub(super) const fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// The next record batch, if the bytes up to the end of `chunk` complete one; goes past what it has read.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for what is no such stream, and for bytes after its end;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for a record batch beyond `max_body`.
    pub(super) fn next(&mut self, chunk: &mut Buffer) -> Result<Option<RawBatch>> {
        while let Some(message) = self.frames.next(chunk)? {
            match (message.header(), &self.schema) {
                (MessageHeader::Schema, None) => {
                    let schema = message
                        .schema()
                        .ok_or_else(|| Error::wire("found an Arrow schema that is none"))?;
                    check::schema(&schema)?;
                    self.schema = Some(Arc::new(fb_to_schema(schema)));
                }
                (MessageHeader::RecordBatch, Some(schema)) => {
                    return RawBatch::new(Arc::clone(schema), message).map(Some);
                }
                (found, _) => {
                    return Err(Error::wire(format!(
                        "found {found:?} out of place in an Arrow stream"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Checks that the stream has ended where it said so.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) where the end of the stream has not been seen.
    pub(super) fn finish(&self) -> Result<()> {
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
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// The stream's schema.
    pub(super) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Makes some of the columns, by index, in ascending order. They share the bytes that arrived.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) where they do not fit the schema.
    pub(super) fn read(&self, columns: &[usize]) -> Result<RecordBatch> {
        check::columns(&self.message, &self.schema, columns)?;
        let batch = self
            .message
            .batch()
            .ok_or_else(|| Error::wire("found an Arrow record batch that is none"))?;
        let (body, version) = (self.message.body(), self.message.version());
        let dictionaries = HashMap::new();
        RecordBatchDecoder::try_new(body, batch, Arc::clone(&self.schema), &dictionaries, &version)
            .and_then(|decoder| decoder.with_projection(Some(columns)).read_record_batch())
            .map_err(|error| Error::wire(format!("found a malformed Arrow record batch: {error}")))
    }
}

/// A buffer as [`Bytes`], not copied.
pub(super) fn share(buffer: Buffer) -> Bytes {
    Bytes::from_owner(Owner(buffer))
}

/// Buffers as the pieces of a body: long ones not copied, short ones joined.
pub(super) fn parts(buffers: Vec<Buffer>) -> Vec<Bytes> {
    let mut parts = Vec::new();
    let mut joined = Vec::new();
    for buffer in buffers {
        if buffer.len() < JOINED {
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

/// The length of the first message of a stream that this crate wrote, if it has no body: a schema's.
pub(super) fn first_message(stream: &[u8]) -> usize {
    match stream.as_chunks::<4>().0 {
        [_, length, ..] => 8 + u32::from_le_bytes(*length) as usize,
        _ => 0,
    }
}

/// What Arrow finds wrong with what this crate gave it.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
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
