//! Splits a stream of bytes into IPC messages.

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{self as fb, MessageHeader, MetadataVersion, convert::MessageBuffer};

use pushdown_core::{Error, Result};

const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of the continuation marker, and of the header length that follows.
const PREFIX_BYTES: usize = 4;
/// Maximum length of a message header. Headers of schemas and record batches grow with the number of columns.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// Maximum memory reserved for a message before its bytes arrive, which limits the cost of a false length.
const MAX_RESERVED_BYTES: usize = 16 << 20;

/// Reads messages from chunks of a stream. Chunk boundaries may be anywhere.
#[derive(Debug)]
pub struct MessageReader {
    state: ReadState,
    /// The received start of an incomplete part.
    partial: MutableBuffer,
    max_body: u64,
    /// Whether the messages are those of a stored object: bytes such as the footer of a file may follow the end marker, and
    /// messages may lack the continuation marker, as before Arrow 0.15.
    is_stored: bool,
}

/// The next part of the stream.
#[derive(Debug)]
enum ReadState {
    Prefix,
    Length,
    Header { length: usize },
    Body { header: MessageBuffer, length: usize },
    Ended,
}

/// A complete message.
#[derive(Debug)]
pub struct Message {
    header: MessageBuffer,
    body: Buffer,
}

impl MessageReader {
    /// A reader of messages with bodies of at most `max_body` bytes.
    pub fn new(max_body: u64) -> Self {
        Self {
            state: ReadState::Prefix,
            partial: MutableBuffer::new(0),
            max_body,
            is_stored: false,
        }
    }

    /// Accepts the messages of a stored object: ignores bytes after the end marker, and accepts messages of old writers.
    #[must_use]
    pub fn for_stored_object(self) -> Self {
        Self {
            is_stored: true,
            ..self
        }
    }

    /// Whether the end marker has been read.
    pub const fn is_ended(&self) -> bool {
        matches!(self.state, ReadState::Ended)
    }

    /// Whether no message is partially read, so that a stream without an end marker may end.
    pub fn is_between_messages(&self) -> bool {
        matches!(self.state, ReadState::Prefix) && self.partial.is_empty()
    }

    /// The next message, if `chunk` completes one. Advances `chunk` past the bytes read.
    pub fn next(&mut self, chunk: &mut Buffer) -> Result<Option<Message>> {
        loop {
            let length = match &self.state {
                ReadState::Prefix | ReadState::Length => PREFIX_BYTES,
                ReadState::Header { length } | ReadState::Body { length, .. } => *length,
                ReadState::Ended if chunk.is_empty() || self.is_stored => return Ok(None),
                ReadState::Ended => return Err(Error::wire("found bytes after the end of the Arrow stream")),
            };
            let Some(part) = self.fill(length, chunk) else {
                return Ok(None);
            };
            match std::mem::replace(&mut self.state, ReadState::Prefix) {
                ReadState::Prefix if *part == CONTINUATION => self.state = ReadState::Length,
                ReadState::Prefix if !self.is_stored => {
                    return Err(Error::wire(
                        "invalid Arrow stream: a message lacks its continuation marker",
                    ));
                }
                ReadState::Prefix | ReadState::Length => self.state = after_length(&part)?,
                ReadState::Header { .. } => self.state = after_header(part, self.max_body)?,
                ReadState::Body { header, .. } => return Ok(Some(Message { header, body: part })),
                ReadState::Ended => {}
            }
        }
    }

    /// The next `length` bytes, once received: a slice of `chunk` if it has all of them, otherwise a copy.
    fn fill(&mut self, length: usize, chunk: &mut Buffer) -> Option<Buffer> {
        if self.partial.is_empty() && chunk.len() >= length {
            let part = chunk.slice_with_length(0, length);
            chunk.advance(length);
            return Some(part);
        }
        let missing = length - self.partial.len();
        if self.partial.is_empty() {
            self.partial.reserve(missing.min(MAX_RESERVED_BYTES));
        }
        let taken = missing.min(chunk.len());
        self.partial.extend_from_slice(&chunk[..taken]);
        chunk.advance(taken);
        (taken == missing).then(|| std::mem::take(&mut self.partial).into())
    }
}

fn after_length(length: &[u8]) -> Result<ReadState> {
    let Some(length) = length.first_chunk() else {
        return Err(Error::wire("invalid Arrow stream"));
    };
    match u32::from_le_bytes(*length) as usize {
        0 => Ok(ReadState::Ended),
        length @ 1..=MAX_HEADER_BYTES => Ok(ReadState::Header { length }),
        length => Err(Error::wire(format!(
            "the Arrow message header is too long: expected at most {MAX_HEADER_BYTES}, found {length} bytes"
        ))),
    }
}

fn after_header(header: Buffer, max_body: u64) -> Result<ReadState> {
    let header = MessageBuffer::try_new(header)
        .map_err(|error| Error::wire(format!("malformed Arrow message header: {error}")))?;
    let length = u64::try_from(header.as_ref().bodyLength())
        .map_err(|_| Error::wire("malformed Arrow message header: negative body length"))?;
    match usize::try_from(length) {
        Ok(bytes) if length <= max_body => Ok(ReadState::Body {
            header,
            length: bytes,
        }),
        _ => Err(Error::too_large(format!(
            "the Arrow message is too large: expected at most {max_body} bytes, found {length}"
        ))),
    }
}

impl Message {
    /// The type of the message.
    pub fn header(&self) -> MessageHeader {
        self.header.as_ref().header_type()
    }

    /// The schema, if the message is one.
    pub fn schema(&self) -> Option<fb::Schema<'_>> {
        self.header.as_ref().header_as_schema()
    }

    /// The record batch, if the message is one.
    pub fn batch(&self) -> Option<fb::RecordBatch<'_>> {
        self.header.as_ref().header_as_record_batch()
    }

    /// The dictionary batch, if the message is one.
    pub fn dictionary(&self) -> Option<fb::DictionaryBatch<'_>> {
        self.header.as_ref().header_as_dictionary_batch()
    }

    /// The version of the IPC format.
    pub fn version(&self) -> MetadataVersion {
        self.header.as_ref().version()
    }

    /// The body, which contains the buffers.
    pub const fn body(&self) -> &Buffer {
        &self.body
    }
}
