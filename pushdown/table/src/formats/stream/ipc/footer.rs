//! Reads the footer of files whose messages are not a valid stream: Polars 2 writes the schema without the start of a message,
//! and dictionaries after the record batches that use them. The footer has the offsets of the messages (Arrow columnar format,
//! IPC file format).

use std::{ops::Range, sync::Arc};

use arrow_ipc::{Block, convert::fb_to_schema, root_as_footer};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt as _, stream};

use super::malformed_footer;
use crate::formats::{arrow_schema::check_fields, stream::Chunks};
use pushdown_core::{Error, Result, Source, Suffix, limits::TableLimits};

/// Last bytes of a file, after the length of its footer.
const END_MAGIC: &[u8] = b"ARROW1";
/// Size of the footer's length.
const LENGTH_BYTES: usize = 4;
/// Maximum bytes of messages per request, unless one message is larger.
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// The ranges of the messages of a file.
#[derive(Debug, Clone)]
pub(in crate::formats::stream) struct Footer {
    pub(super) schema: SchemaRef,
    /// The ranges of the dictionaries, then of the record batches.
    messages: Arc<[Range<u64>]>,
    /// Whether the messages can be read in stored order.
    pub(super) is_in_order: bool,
}

/// The bytes of a footer and their offset in the object.
#[derive(Debug)]
pub(in crate::formats::stream) struct StoredFooter {
    bytes: Bytes,
    offset: u64,
}

impl StoredFooter {
    /// Reads the footer of an object whose last bytes are `end`. `None` if the object has no footer or a larger one than the
    /// limit.
    pub(in crate::formats::stream) async fn read(
        source: &dyn Source,
        end: &Suffix,
        limits: &TableLimits,
    ) -> Result<Option<Self>> {
        let rest = end.bytes.strip_suffix(END_MAGIC);
        let Some((rest, length)) = rest.and_then(<[u8]>::split_last_chunk::<LENGTH_BYTES>) else {
            return Ok(None);
        };
        let length = u64::from(u32::from_le_bytes(*length));
        let offset = end
            .total
            .checked_sub((LENGTH_BYTES + END_MAGIC.len()) as u64 + length);
        let Some(offset) = offset.filter(|_| length > 0 && length <= limits.max_footer_bytes) else {
            return Ok(None);
        };
        let start_in_end = usize::try_from(length)
            .ok()
            .and_then(|length| rest.len().checked_sub(length));
        let bytes = if let Some(start) = start_in_end {
            end.bytes.slice(start..rest.len())
        } else {
            let footer = offset..offset + length;
            source.ranges(vec![footer]).await?.concat().into()
        };
        Ok(Some(Self { bytes, offset }))
    }
}

impl Footer {
    /// Parses a footer.
    ///
    /// # Errors
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for more columns or a larger message than the limits,
    /// [`Undecodable`](pushdown_core::ErrorKind::Undecodable) for a malformed footer, and for messages that overlap or are outside of
    /// the file.
    pub(super) fn new(stored: &StoredFooter, limits: &TableLimits) -> Result<Self> {
        let footer = root_as_footer(&stored.bytes).map_err(|error| malformed_footer(&error.to_string()))?;
        let schema = footer
            .schema()
            .ok_or_else(|| malformed_footer("missing schema"))?;
        check_fields(&schema, limits.max_columns, limits.max_footer_bytes)?;
        let range = |block: &Block| message_range(block, stored.offset, limits.max_batch_bytes);
        let dictionaries = footer.dictionaries().into_iter().flatten().map(range);
        let dictionaries = dictionaries.collect::<Result<Vec<_>>>()?;
        let batches = footer.recordBatches().into_iter().flatten().map(range);
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let first_batch = batches.iter().map(|batch| batch.start).min();
        let is_before = |dictionary: &Range<u64>| first_batch.is_none_or(|first| dictionary.start < first);
        let is_in_order = dictionaries.iter().all(is_before);
        let messages = [dictionaries, batches].concat();
        let mut sorted: Vec<_> = messages
            .iter()
            .map(|message| (message.start, message.end))
            .collect();
        sorted.sort_unstable();
        if sorted.array_windows().any(|[message, next]| message.1 > next.0) {
            return Err(malformed_footer(
                "expected separate messages, found overlapping ones",
            ));
        }
        Ok(Self {
            schema: Arc::new(fb_to_schema(schema)),
            messages: messages.into(),
            is_in_order,
        })
    }

    /// Reads the messages, each dictionary before the record batches that use it.
    pub(in crate::formats::stream) fn chunks(&self, source: Arc<dyn Source>) -> Chunks {
        let mut requests: Vec<Vec<Range<u64>>> = Vec::new();
        let mut bytes = 0;
        for message in self.messages.iter() {
            bytes += message.end - message.start;
            let follows = |last: &Range<u64>| last.end <= message.start;
            match requests.last_mut() {
                Some(request) if bytes <= MAX_REQUEST_BYTES && request.last().is_some_and(follows) => {
                    request.push(message.clone());
                }
                _ => {
                    bytes = message.end - message.start;
                    requests.push(vec![message.clone()]);
                }
            }
        }
        let parts = stream::iter(requests).then(move |request| source.ranges(request));
        let chunks = parts.flat_map(|parts| match parts {
            Ok(parts) => stream::iter(parts.into_iter().map(Ok).collect::<Vec<Result<Bytes>>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        });
        chunks.boxed()
    }
}

/// The range of a message, with its prefix. Checks that it is before the footer, and that its body is at most `max_body_bytes`.
fn message_range(block: &Block, footer_offset: u64, max_body_bytes: u64) -> Result<Range<u64>> {
    let outside = || malformed_footer("expected the messages before the footer, found one outside");
    let start = u64::try_from(block.offset()).map_err(|_| outside())?;
    let header = u64::try_from(block.metaDataLength()).map_err(|_| outside())?;
    let body = u64::try_from(block.bodyLength()).map_err(|_| outside())?;
    let end = start.checked_add(header).and_then(|end| end.checked_add(body));
    let end = end
        .filter(|end| header > 0 && *end <= footer_offset)
        .ok_or_else(outside)?;
    if body > max_body_bytes {
        return Err(Error::too_large(format!(
            "Arrow message too large: expected a body of at most {max_body_bytes} bytes, found {body}"
        )));
    }
    Ok(start..end)
}
