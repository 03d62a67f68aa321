//! Arrow IPC, files and streams: a file is a stream between its magic bytes and its footer, unless the footer says otherwise.

mod fields;
mod footer;
mod lz4;

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    CompressionType, MessageHeader,
    convert::fb_to_schema,
    reader::{RecordBatchDecoder, read_dictionary},
};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;

use super::Decoder;
use crate::{
    Error, ErrorKind, Result,
    limits::TableLimits,
    pipeline::excerpt,
    wire::{Frames, Message},
};
pub(in crate::step::table) use fields::check_fields;
use footer::Footer;
pub(super) use footer::Stored as StoredFooter;

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
    /// The file's footer, if its messages are no stream.
    footer: Option<Footer>,
}

impl Table {
    /// Reads the schema at the start of an object, or in the footer of a file that has none there.
    pub(super) fn open(seen: &[Bytes], footer: Option<&StoredFooter>, limits: &TableLimits) -> Result<Self> {
        let table = Self::read(seen, limits);
        let Some(footer) = footer.map(|footer| Footer::new(footer, limits)) else {
            return table;
        };
        match (table, footer) {
            // A stream needs no footer.
            (Ok(table), Err(_)) => Ok(table),
            (Ok(table), Ok(footer)) if footer.is_in_order => Ok(table),
            (Err(_), Err(error)) => Err(error),
            (table, Ok(footer)) => Ok(Self {
                schema: table.map_or_else(|_| SchemaRef::clone(&footer.schema), |table| table.schema),
                skip: 0,
                footer: Some(footer),
            }),
        }
    }

    /// The footer by which the object has to be read.
    pub(super) const fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Reads the schema at the start.
    fn read(seen: &[Bytes], limits: &TableLimits) -> Result<Self> {
        let head = Bytes::from(seen.concat());
        // Some writers pad the magic bytes to more than they have to.
        let padding = |head: &[u8]| head.iter().take_while(|byte| **byte == 0).count();
        let skip = match head.strip_prefix(FILE) {
            Some(rest) => {
                let padding = padding(rest);
                // The length of a message without a marker may start with zeros.
                let is_marked = rest[padding..].starts_with(&MESSAGE);
                FILE.len() + if is_marked { padding } else { 0 }
            }
            None => 0,
        };
        let mut rest = Buffer::from(head.slice(skip..));
        let message = Frames::new(limits.max_batch_bytes)
            .stored()
            .next(&mut rest)
            .map_err(malformed)?;
        let schema = message.as_ref().and_then(Message::schema);
        let schema =
            schema.ok_or_else(|| Error::undecodable("found malformed Arrow IPC: no schema at its start"))?;
        check_fields(&schema, limits.max_columns, limits.max_footer_bytes)?;
        let schema = Arc::new(fb_to_schema(schema));
        Ok(Self {
            schema,
            skip,
            footer: None,
        })
    }

    /// Reads some columns.
    ///
    /// # Errors
    /// [`Unsuitable`](ErrorKind::Unsuitable) for a column of unions, or with unions inside: no query has a type for them.
    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Messages> {
        for column in columns {
            let alone = self.schema.project(&[*column]).map_err(broken)?;
            let is_union = |field: &&Field| matches!(field.data_type(), DataType::Union(..));
            if alone.flattened_fields().iter().any(is_union) {
                return Err(Error::unsuitable(format!(
                    "the column `{}` has an Arrow union, which is not read",
                    excerpt(alone.field(0).name(), 60)
                )));
            }
        }
        let counted = columns.is_empty();
        Ok(Messages {
            frames: Frames::new(limits.max_batch_bytes).stored(),
            schema: SchemaRef::clone(&self.schema),
            columns: if counted { self.counted() } else { columns.to_vec() },
            counted,
            dictionaries: HashMap::new(),
            held: Held::default(),
            skip: self.skip,
            most: limits.max_batch_bytes,
        })
    }

    /// The column that is read where only the number of rows is asked for: what a record batch says of itself is no more than
    /// a claim, and Arrow holds a column's against its bytes.
    fn counted(&self) -> Vec<usize> {
        let fields = self.schema.fields();
        let cheap = fields.iter().position(|field| field.data_type().is_primitive());
        let any = (!fields.is_empty()).then_some(0);
        cheap.or(any).into_iter().collect()
    }
}

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
pub(super) struct Messages {
    frames: Frames,
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

fn malformed_footer(found: &str) -> Error {
    Error::undecodable(format!("found malformed Arrow IPC: a footer with {found}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn broken(error: ArrowError) -> Error {
    Error::undecodable(format!("found malformed Arrow IPC: {error}"))
}
