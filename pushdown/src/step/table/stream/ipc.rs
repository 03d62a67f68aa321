//! Arrow IPC, files and streams: a file is a stream between its magic bytes and its footer.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    MessageHeader,
    convert::fb_to_schema,
    reader::{RecordBatchDecoder, read_dictionary},
};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use super::Decoder;
use crate::{
    Error, ErrorKind, Result,
    limits::TableLimits,
    wire::{Frames, Message},
};

/// What a file starts with, its padding behind it.
pub(in crate::step::table) const FILE: &[u8] = b"ARROW1\0\0";
/// What a message starts with.
pub(in crate::step::table) const MESSAGE: [u8; 4] = [0xff; 4];

/// What the start of an object tells of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: SchemaRef,
    /// Bytes before the first message.
    skip: usize,
}

impl Table {
    /// Reads the schema.
    pub(super) fn read(seen: &[Bytes], limits: &TableLimits) -> Result<Self> {
        let head = Bytes::from(seen.concat());
        // Some writers pad the magic bytes to more than they have to.
        let padding = |head: &[u8]| head.iter().take_while(|byte| **byte == 0).count();
        let skip = if head.starts_with(FILE) {
            FILE.len() + padding(&head[FILE.len()..])
        } else {
            0
        };
        let mut rest = Buffer::from(head.slice(skip..));
        let message = Frames::new(limits.max_batch_bytes)
            .next(&mut rest)
            .map_err(malformed)?;
        let schema = message.as_ref().and_then(Message::schema);
        let schema =
            schema.ok_or_else(|| Error::undecodable("found malformed Arrow IPC: no schema at its start"))?;
        let schema = Arc::new(fb_to_schema(schema));
        let columns = schema.flattened_fields().len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "the object has {columns} columns, more than the limit of {}",
                limits.max_columns
            )));
        }
        Ok(Self { schema, skip })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Messages {
        Messages {
            frames: Frames::new(limits.max_batch_bytes).with_footer(),
            schema: SchemaRef::clone(&self.schema),
            columns: columns.to_vec(),
            dictionaries: HashMap::new(),
            skip: self.skip,
            most: limits.max_batch_bytes,
        }
    }
}

/// A stream of messages.
pub(super) struct Messages {
    frames: Frames,
    schema: SchemaRef,
    columns: Vec<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
    skip: usize,
    most: u64,
}

impl Messages {
    fn read(&mut self, message: &Message) -> Result<Option<RecordBatch>> {
        let none = || Error::undecodable("found malformed Arrow IPC: a message that is none");
        let (body, version) = (message.body(), message.version());
        match message.header() {
            MessageHeader::DictionaryBatch => {
                let dictionary = message.dictionary().ok_or_else(none)?;
                self.check(dictionary.data().ok_or_else(none)?, body)?;
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
                batch.read_record_batch().map(Some).map_err(broken)
            }
            MessageHeader::Schema | MessageHeader::NONE => Ok(None),
            other => Err(Error::undecodable(format!(
                "found Arrow IPC with a message of another kind: {other:?}"
            ))),
        }
    }

    /// Holds what compressed buffers say that they inflate to against the limit, before anything is set aside for it.
    fn check(&self, batch: arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<()> {
        if batch.compression().is_none() {
            return Ok(());
        }
        let length = |buffer: &arrow_ipc::Buffer| {
            let start = usize::try_from(buffer.offset()).ok()?;
            let announced = body.get(start..)?.first_chunk()?;
            u64::try_from(i64::from_le_bytes(*announced)).ok()
        };
        let buffers = batch.buffers().into_iter().flatten();
        let inflated = buffers.filter(|buffer| buffer.length() > 0).filter_map(length);
        let inflated = inflated.fold(0, u64::saturating_add);
        if inflated > self.most {
            return Err(Error::too_large(format!(
                "a record batch has {inflated} bytes once it is inflated, more than the limit of {}",
                self.most
            )));
        }
        Ok(())
    }
}

impl Decoder for Messages {
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>> {
        let skipped = self.skip.min(chunk.len());
        let _behind = chunk.split_to(skipped);
        self.skip -= skipped;
        let mut buffer = Buffer::from(chunk.clone());
        while !self.frames.ended()
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
        if self.frames.ended() || self.frames.between() {
            return Ok(None);
        }
        Err(Error::undecodable(
            "found malformed Arrow IPC: it ends in the middle of a message",
        ))
    }

    fn ended(&self) -> bool {
        self.frames.ended()
    }
}

/// What the framing finds wrong is wrong with the object here.
fn malformed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidWire => Error::new(ErrorKind::Undecodable, error.to_string()),
        _ => error,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn broken(error: ArrowError) -> Error {
    Error::undecodable(format!("found malformed Arrow IPC: {error}"))
}
