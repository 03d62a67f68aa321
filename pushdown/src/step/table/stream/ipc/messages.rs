//! The record batches of messages, which are held against the limits before anything is made of them.

use std::collections::HashMap;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    CompressionType, MessageHeader,
    reader::{RecordBatchDecoder, read_dictionary},
};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{Table, broken, lz4, malformed};
use crate::{
    Error, Result,
    limits::TableLimits,
    step::table::stream::Decoder,
    wire::{Message, MessageReader},
};

/// Bytes of the dictionaries that have been read.
#[derive(Debug, Default)]
struct Held {
    of: HashMap<i64, u64>,
    together: u64,
}

impl Held {
    /// Takes a dictionary's values into account: more of them, or others.
    fn add(&mut self, id: i64, bytes: u64, more: bool) -> u64 {
        let held = self.of.entry(id).or_default();
        if !more {
            self.together -= std::mem::take(held);
        }
        *held += bytes;
        self.together += bytes;
        self.together
    }
}

/// A stream of messages.
pub(in crate::step::table::stream) struct Messages {
    frames: MessageReader,
    schema: SchemaRef,
    columns: Vec<usize>,
    /// Whether these are read for the number of rows alone.
    counted: bool,
    dictionaries: HashMap<i64, ArrayRef>,
    held: Held,
    skip: usize,
    most: u64,
}

impl Messages {
    /// Reads columns of a table, for its number of rows alone if they are only counted.
    pub(super) fn new(table: &Table, columns: Vec<usize>, counted: bool, limits: &TableLimits) -> Self {
        Self {
            frames: MessageReader::new(limits.max_batch_bytes).for_stored_object(),
            schema: SchemaRef::clone(&table.schema),
            columns,
            counted,
            dictionaries: HashMap::new(),
            held: Held::default(),
            skip: table.skip,
            most: limits.max_batch_bytes,
        }
    }

    fn read(&mut self, message: &Message) -> Result<Option<RecordBatch>> {
        let none = || Error::undecodable("found malformed Arrow IPC: a message that is none");
        let (body, version) = (message.body(), message.version());
        match message.header() {
            MessageHeader::DictionaryBatch => {
                let dictionary = message.dictionary().ok_or_else(none)?;
                let bytes = self.check(dictionary.data().ok_or_else(none)?, body)?;
                let together = self.held.add(dictionary.id(), bytes, dictionary.isDelta());
                if together > self.most {
                    return Err(Error::too_large(format!(
                        "the dictionaries have {together} bytes together, more than the limit of {}",
                        self.most
                    )));
                }
                read_dictionary(body, dictionary, &self.schema, &mut self.dictionaries, &version)
                    .map_err(broken)?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let batch = message.batch().ok_or_else(none)?;
                self.check(batch, body)?;
                let schema = SchemaRef::clone(&self.schema);
                let decoder = RecordBatchDecoder::try_new(body, batch, schema, &self.dictionaries, &version);
                let batch = decoder.map_err(broken)?.with_projection(Some(&self.columns));
                let batch = batch.read_record_batch().map_err(broken)?;
                if self.counted {
                    return batch.project(&[]).map(Some).map_err(broken);
                }
                Ok(Some(batch))
            }
            MessageHeader::Schema | MessageHeader::NONE => Ok(None),
            other => Err(Error::undecodable(format!(
                "found Arrow IPC with a message of another kind: {other:?}"
            ))),
        }
    }

    /// Holds what a batch says of itself against the limit, before anything is set aside for it: how many rows it has, which
    /// may have no bytes, where its buffers are, and what the compressed ones inflate to. Gives its bytes.
    fn check(&self, batch: arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<u64> {
        let nodes = batch.nodes().into_iter().flatten();
        let mut claims = nodes.map(arrow_ipc::FieldNode::length).chain([batch.length()]);
        // A row that has bytes has a bit of them at least.
        let most = self.most.saturating_mul(8);
        if let Some(rows) = claims.find(|rows| !u64::try_from(*rows).is_ok_and(|rows| rows <= most)) {
            return Err(Error::too_large(format!(
                "a record batch claims {rows} rows, expected at most {most}"
            )));
        }
        let buffers = batch.buffers().into_iter().flatten();
        let buffers = buffers.map(|buffer| {
            let start = usize::try_from(buffer.offset()).ok()?;
            let length = usize::try_from(buffer.length()).ok()?;
            body.get(start..)?.get(..length)
        });
        let buffers: Option<Vec<_>> = buffers.collect();
        let buffers = buffers.ok_or_else(|| {
            Error::undecodable("found malformed Arrow IPC: a buffer that is not within its message")
        })?;
        let (stored, compression) = (body.len() as u64, batch.compression());
        let sum = buffers.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        if sum > stored {
            return Err(Error::undecodable(format!(
                "found malformed Arrow IPC: buffers of {sum} bytes in a message of {stored}"
            )));
        }
        if compression.is_none() {
            return Ok(stored);
        }
        let is_lz4 = compression.is_some_and(|compression| compression.codec() == CompressionType::LZ4_FRAME);
        let mut inflated = 0_u64;
        for bytes in buffers {
            // Nothing has no length, and what is not compressed says -1.
            if let Some((announced, frame)) = bytes.split_first_chunk()
                && let Ok(announced) = u64::try_from(i64::from_le_bytes(*announced))
            {
                inflated = inflated.saturating_add(announced);
                let lies = |(most, block): (u64, u64)| most > announced.saturating_add(block);
                if is_lz4 && announced > 0 && lz4::most(frame).is_none_or(lies) {
                    return Err(Error::undecodable(format!(
                        "found malformed Arrow IPC: an LZ4 buffer that is no frame of the {announced} bytes that it announces"
                    )));
                }
            }
        }
        if inflated > self.most {
            return Err(Error::too_large(format!(
                "a record batch has {inflated} bytes once it is inflated, more than the limit of {}",
                self.most
            )));
        }
        Ok(inflated.max(stored))
    }
}

impl Decoder for Messages {
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>> {
        let skipped = self.skip.min(chunk.len());
        let _behind = chunk.split_to(skipped);
        self.skip -= skipped;
        let mut buffer = Buffer::from(chunk.clone());
        while !self.frames.is_ended()
            && let Some(message) = self.frames.next(&mut buffer).map_err(malformed)?
        {
            if let Some(batch) = self.read(&message)? {
                let _read = chunk.split_to(chunk.len() - buffer.len());
                return Ok(Some(batch));
            }
        }
        chunk.clear();
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        if self.frames.is_ended() || self.frames.is_between_messages() {
            return Ok(None);
        }
        Err(Error::undecodable(
            "found malformed Arrow IPC: it ends in the middle of a message",
        ))
    }

    fn ended(&self) -> bool {
        self.frames.is_ended()
    }
}
