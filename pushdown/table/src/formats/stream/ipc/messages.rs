//! Decodes the record batches of messages. Each message is checked against the limits before memory is allocated for it.

use std::collections::HashMap;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    CompressionType, MessageHeader,
    reader::{RecordBatchDecoder, read_dictionary},
};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{ArrowTable, lz4, malformed_arrow, undecodable_frame};
use crate::formats::stream::Decoder;
use pushdown_core::{Error, Result, limits::TableLimits};
use pushdown_wire::{Message, MessageReader};

/// Sizes of the dictionaries in memory.
#[derive(Debug, Default)]
struct DictionarySizes {
    bytes_by_id: HashMap<i64, u64>,
    total_bytes: u64,
}

impl DictionarySizes {
    /// Adds a dictionary's values, in place of its previous ones unless it is a delta. Returns the total.
    fn add(&mut self, id: i64, bytes: u64, is_delta: bool) -> u64 {
        let dictionary_bytes = self.bytes_by_id.entry(id).or_default();
        if !is_delta {
            self.total_bytes -= std::mem::take(dictionary_bytes);
        }
        *dictionary_bytes += bytes;
        self.total_bytes += bytes;
        self.total_bytes
    }
}

/// Decodes a stream of messages.
pub(in crate::formats::stream) struct Messages {
    frames: MessageReader,
    schema: SchemaRef,
    columns: Vec<usize>,
    /// Whether only the number of rows is needed: batches are returned without columns.
    counts_rows: bool,
    dictionaries: HashMap<i64, ArrayRef>,
    dictionary_sizes: DictionarySizes,
    skip_bytes: usize,
    max_batch_bytes: u64,
}

impl Messages {
    /// A decoder of `columns`. With `counts_rows`, the batches have rows but no columns.
    pub(super) fn new(
        table: &ArrowTable,
        columns: Vec<usize>,
        counts_rows: bool,
        limits: &TableLimits,
    ) -> Self {
        Self {
            frames: MessageReader::new(limits.max_batch_bytes).for_stored_object(),
            schema: SchemaRef::clone(&table.schema),
            columns,
            counts_rows,
            dictionaries: HashMap::new(),
            dictionary_sizes: DictionarySizes::default(),
            skip_bytes: table.skip_bytes,
            max_batch_bytes: limits.max_batch_bytes,
        }
    }

    fn read(&mut self, message: &Message) -> Result<Option<RecordBatch>> {
        let missing_part =
            || Error::undecodable("malformed Arrow IPC: a message lacks its header or its data");
        let (body, version) = (message.body(), message.version());
        match message.header() {
            MessageHeader::DictionaryBatch => {
                let dictionary = message.dictionary().ok_or_else(missing_part)?;
                let bytes = self.check(dictionary.data().ok_or_else(missing_part)?, body)?;
                let total_bytes = self
                    .dictionary_sizes
                    .add(dictionary.id(), bytes, dictionary.isDelta());
                if total_bytes > self.max_batch_bytes {
                    return Err(Error::too_large(format!(
                        "Arrow dictionaries too large: expected at most {} bytes in total, found {total_bytes}",
                        self.max_batch_bytes
                    )));
                }
                read_dictionary(body, dictionary, &self.schema, &mut self.dictionaries, &version)
                    .map_err(malformed_arrow)?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let batch = message.batch().ok_or_else(missing_part)?;
                self.check(batch, body)?;
                let schema = SchemaRef::clone(&self.schema);
                let decoder = RecordBatchDecoder::try_new(body, batch, schema, &self.dictionaries, &version);
                let batch = decoder
                    .map_err(malformed_arrow)?
                    .with_projection(Some(&self.columns));
                let batch = batch.read_record_batch().map_err(malformed_arrow)?;
                if self.counts_rows {
                    return batch.project(&[]).map(Some).map_err(malformed_arrow);
                }
                Ok(Some(batch))
            }
            MessageHeader::Schema | MessageHeader::NONE => Ok(None),
            other => Err(Error::undecodable(format!(
                "unsupported Arrow IPC message: expected a schema, a dictionary or a record batch, found {other:?}"
            ))),
        }
    }

    /// Checks the claims of a batch against the limit before memory is allocated for it: its number of rows (rows may have no
    /// bytes), the ranges of its buffers, and the decompressed sizes of compressed ones. Returns the size of the batch in bytes.
    fn check(&self, batch: arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<u64> {
        let nodes = batch.nodes().into_iter().flatten();
        let mut row_counts = nodes.map(arrow_ipc::FieldNode::length).chain([batch.length()]);
        // A stored row takes at least one bit.
        let max_rows = self.max_batch_bytes.saturating_mul(8);
        let exceeds = |rows: &i64| !u64::try_from(*rows).is_ok_and(|rows| rows <= max_rows);
        if let Some(rows) = row_counts.find(exceeds) {
            return Err(Error::too_large(format!(
                "record batch too large: expected at most {max_rows} rows, found a claim of {rows}"
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
            Error::undecodable(
                "malformed Arrow IPC: expected each buffer within its message, found one outside",
            )
        })?;
        let (stored, compression) = (body.len() as u64, batch.compression());
        let buffer_bytes = buffers.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        if buffer_bytes > stored {
            return Err(Error::undecodable(format!(
                "malformed Arrow IPC: expected buffers of at most {stored} bytes in the message, found {buffer_bytes}"
            )));
        }
        if compression.is_none() {
            return Ok(stored);
        }
        let is_lz4 = compression.is_some_and(|compression| compression.codec() == CompressionType::LZ4_FRAME);
        let mut decompressed = 0_u64;
        for bytes in buffers {
            // An empty buffer has no length prefix, and an uncompressed one has -1.
            if let Some((announced, frame)) = bytes.split_first_chunk()
                && let Ok(announced) = u64::try_from(i64::from_le_bytes(*announced))
            {
                decompressed = decompressed.saturating_add(announced);
                let is_larger =
                    |frame: lz4::FrameSize| frame.max_bytes > announced.saturating_add(frame.block_bytes);
                if is_lz4 && announced > 0 && lz4::frame_size(frame).is_none_or(is_larger) {
                    return Err(Error::undecodable(format!(
                        "malformed Arrow IPC: expected one LZ4 frame of {announced} decompressed bytes in a buffer"
                    )));
                }
            }
        }
        if decompressed > self.max_batch_bytes {
            return Err(Error::too_large(format!(
                "record batch too large: expected at most {} decompressed bytes, found {decompressed}",
                self.max_batch_bytes
            )));
        }
        Ok(decompressed.max(stored))
    }
}

impl Decoder for Messages {
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>> {
        let skipped = self.skip_bytes.min(chunk.len());
        let _preamble = chunk.split_to(skipped);
        self.skip_bytes -= skipped;
        let mut buffer = Buffer::from(chunk.clone());
        while !self.frames.is_ended()
            && let Some(message) = self.frames.next(&mut buffer).map_err(undecodable_frame)?
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
            "malformed Arrow IPC: it ends in the middle of a message",
        ))
    }

    fn is_ended(&self) -> bool {
        self.frames.is_ended()
    }
}
