//! Cuts a stream of bytes into IPC messages.

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{self as fb, MessageHeader, MetadataVersion, convert::MessageBuffer};

use crate::{Error, Result};

const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of the continuation marker, and of the header's length after it.
const PREFIX: usize = 4;
/// The longest header of a message. A schema's grows with its columns, a record batch's too.
const MAX_HEADER: usize = 1 << 20;
/// What is set aside for a message before its bytes have arrived: a length that lies costs no more than this.
const RESERVED: usize = 16 << 20;

/// A stream of messages, from chunks that are cut anywhere.
#[derive(Debug)]
pub(crate) struct MessageReader {
    state: State,
    /// The start of a part whose rest is still to come.
    held: MutableBuffer,
    max_body: u64,
    /// Whether the messages are stored ones: more bytes may come after their end, as a file's footer does, and they may lack
    /// the continuation marker, as those from before Arrow 0.15 do.
    is_stored: bool,
}

/// The part that comes next.
#[derive(Debug)]
enum State {
    Prefix,
    Length,
    Header { length: usize },
    Body { header: MessageBuffer, length: usize },
    Ended,
}

/// A message that has arrived whole.
#[derive(Debug)]
pub(crate) struct Message {
    header: MessageBuffer,
    body: Buffer,
}

impl MessageReader {
    pub(crate) fn new(max_body: u64) -> Self {
        Self {
            state: State::Prefix,
            held: MutableBuffer::new(0),
            max_body,
            is_stored: false,
        }
    }

    /// The same for the messages of an object: what is after their end is passed over, and they may be of old writers.
    pub(crate) fn for_stored_object(self) -> Self {
        Self {
            is_stored: true,
            ..self
        }
    }

    /// Whether the end marker has been read.
    pub(crate) const fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Whether whole messages have been read and nothing of the next: where a stream without an end marker may end.
    pub(crate) fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Prefix) && self.held.is_empty()
    }

    /// The next message, if the bytes up to the end of `chunk` complete one; goes past what it has read.
    pub(crate) fn next(&mut self, chunk: &mut Buffer) -> Result<Option<Message>> {
        loop {
            let length = match &self.state {
                State::Prefix | State::Length => PREFIX,
                State::Header { length } | State::Body { length, .. } => *length,
                State::Ended if chunk.is_empty() || self.is_stored => return Ok(None),
                State::Ended => return Err(Error::wire("found bytes after the end of an Arrow stream")),
            };
            let Some(part) = self.fill(length, chunk) else {
                return Ok(None);
            };
            match std::mem::replace(&mut self.state, State::Prefix) {
                State::Prefix if *part == CONTINUATION => self.state = State::Length,
                State::Prefix if !self.is_stored => {
                    return Err(Error::wire(
                        "found no Arrow stream: a message does not start with its marker",
                    ));
                }
                State::Prefix | State::Length => self.state = after_length(&part)?,
                State::Header { .. } => self.state = after_header(part, self.max_body)?,
                State::Body { header, .. } => return Ok(Some(Message { header, body: part })),
                State::Ended => {}
            }
        }
    }

    /// The next `length` bytes once they are there: a slice of `chunk` where it has them all, else a copy.
    fn fill(&mut self, length: usize, chunk: &mut Buffer) -> Option<Buffer> {
        if self.held.is_empty() && chunk.len() >= length {
            let part = chunk.slice_with_length(0, length);
            chunk.advance(length);
            return Some(part);
        }
        let missing = length - self.held.len();
        if self.held.is_empty() {
            self.held.reserve(missing.min(RESERVED));
        }
        let taken = missing.min(chunk.len());
        self.held.extend_from_slice(&chunk[..taken]);
        chunk.advance(taken);
        (taken == missing).then(|| std::mem::take(&mut self.held).into())
    }
}

fn after_length(length: &[u8]) -> Result<State> {
    let Some(length) = length.first_chunk() else {
        return Err(Error::wire("found no Arrow stream"));
    };
    match u32::from_le_bytes(*length) as usize {
        0 => Ok(State::Ended),
        length @ 1..=MAX_HEADER => Ok(State::Header { length }),
        length => Err(Error::wire(format!(
            "found an Arrow message header of {length} bytes, expected at most {MAX_HEADER}"
        ))),
    }
}

fn after_header(header: Buffer, max_body: u64) -> Result<State> {
    let header = MessageBuffer::try_new(header)
        .map_err(|error| Error::wire(format!("found a malformed Arrow message header: {error}")))?;
    let length = u64::try_from(header.as_ref().bodyLength())
        .map_err(|_| Error::wire("found an Arrow message of negative length"))?;
    match usize::try_from(length) {
        Ok(bytes) if length <= max_body => Ok(State::Body {
            header,
            length: bytes,
        }),
        _ => Err(Error::too_large(format!(
            "an Arrow message of {length} bytes is more than the limit of {max_body}"
        ))),
    }
}

impl Message {
    /// What it is.
    pub(crate) fn header(&self) -> MessageHeader {
        self.header.as_ref().header_type()
    }

    /// It as a schema.
    pub(crate) fn schema(&self) -> Option<fb::Schema<'_>> {
        self.header.as_ref().header_as_schema()
    }

    /// It as a record batch.
    pub(crate) fn batch(&self) -> Option<fb::RecordBatch<'_>> {
        self.header.as_ref().header_as_record_batch()
    }

    /// It as values of a dictionary.
    pub(crate) fn dictionary(&self) -> Option<fb::DictionaryBatch<'_>> {
        self.header.as_ref().header_as_dictionary_batch()
    }

    /// The version of its format.
    pub(crate) fn version(&self) -> MetadataVersion {
        self.header.as_ref().version()
    }

    /// What its buffers are cut from.
    pub(crate) const fn body(&self) -> &Buffer {
        &self.body
    }
}
