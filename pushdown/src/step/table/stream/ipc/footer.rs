//! Files whose messages are no stream: Polars 2 writes the schema without the start of a message, and dictionaries after the
//! record batches that need them. Their footer says where the messages are (Arrow columnar format, IPC file format).

use std::{ops::Range, sync::Arc};

use arrow_ipc::{Block, convert::fb_to_schema, root_as_footer};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt as _, stream};

use super::{check_fields, malformed_footer};
use crate::{Error, Result, Source, Suffix, limits::TableLimits, step::table::stream::Chunks};

/// What a file ends with, the length of the footer before it.
const END: &[u8] = b"ARROW1";
const LENGTH: usize = 4;
/// Bytes of messages that are asked for at once, or one message.
const REQUEST_BYTES: u64 = 8 << 20;

/// Where the messages of a file are.
#[derive(Debug, Clone)]
pub(in crate::step::table::stream) struct Footer {
    pub(super) schema: SchemaRef,
    /// Dictionaries, then record batches.
    messages: Arc<[Range<u64>]>,
    /// Whether the messages can be read in the order in which they are stored.
    pub(super) is_in_order: bool,
}

/// The bytes of a footer, and where they start.
#[derive(Debug)]
pub(in crate::step::table::stream) struct Stored {
    bytes: Bytes,
    start: u64,
}

impl Stored {
    /// Reads the footer of an object whose end is at hand; `None` if it has none within the limit.
    pub(in crate::step::table::stream) async fn read(
        source: &dyn Source,
        end: &Suffix,
        limits: &TableLimits,
    ) -> Result<Option<Self>> {
        let rest = end.bytes.strip_suffix(END);
        let Some((rest, length)) = rest.and_then(<[u8]>::split_last_chunk::<LENGTH>) else {
            return Ok(None);
        };
        let length = u64::from(u32::from_le_bytes(*length));
        let start = end.total.checked_sub((LENGTH + END.len()) as u64 + length);
        let Some(start) = start.filter(|_| length > 0 && length <= limits.max_footer_bytes) else {
            return Ok(None);
        };
        let at_hand = usize::try_from(length)
            .ok()
            .and_then(|length| rest.len().checked_sub(length));
        let bytes = if let Some(place) = at_hand {
            end.bytes.slice(place..rest.len())
        } else {
            let footer = start..start + length;
            source.ranges(vec![footer]).await?.concat().into()
        };
        Ok(Some(Self { bytes, start }))
    }
}

impl Footer {
    /// Reads a footer.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for more columns or a larger message than the limits,
    /// [`Undecodable`](crate::ErrorKind::Undecodable) for what is no footer, and for messages outside of the file or of each
    /// other.
    pub(super) fn new(stored: &Stored, limits: &TableLimits) -> Result<Self> {
        let footer = root_as_footer(&stored.bytes).map_err(|error| malformed_footer(&error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| malformed_footer("no schema"))?;
        check_fields(&schema, limits.max_columns, limits.max_footer_bytes)?;
        let place = |block: &Block| place(block, stored.start, limits.max_batch_bytes);
        let dictionaries = footer.dictionaries().into_iter().flatten().map(place);
        let dictionaries = dictionaries.collect::<Result<Vec<_>>>()?;
        let batches = footer.recordBatches().into_iter().flatten().map(place);
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let first = batches.iter().map(|batch| batch.start).min();
        let is_before = |dictionary: &Range<u64>| first.is_none_or(|first| dictionary.start < first);
        let is_in_order = dictionaries.iter().all(is_before);
        let messages = [dictionaries, batches].concat();
        let mut sorted: Vec<_> = messages
            .iter()
            .map(|message| (message.start, message.end))
            .collect();
        sorted.sort_unstable();
        if sorted.array_windows().any(|[one, next]| one.1 > next.0) {
            return Err(malformed_footer("messages that overlap"));
        }
        Ok(Self {
            schema: Arc::new(fb_to_schema(schema)),
            messages: messages.into(),
            is_in_order,
        })
    }

    /// The messages in an order in which they can be read.
    pub(in crate::step::table::stream) fn chunks(&self, source: Arc<dyn Source>) -> Chunks {
        let mut requests: Vec<Vec<Range<u64>>> = Vec::new();
        let mut bytes = 0;
        for message in self.messages.iter() {
            bytes += message.end - message.start;
            let is_next = |last: &Range<u64>| last.end <= message.start;
            match requests.last_mut() {
                Some(request) if bytes <= REQUEST_BYTES && request.last().is_some_and(is_next) => {
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

/// Where a message is, its prefix included: before the footer, and no larger than a record batch may be.
fn place(block: &Block, total: u64, most: u64) -> Result<Range<u64>> {
    let outside = || malformed_footer("a message outside of the file");
    let start = u64::try_from(block.offset()).map_err(|_| outside())?;
    let header = u64::try_from(block.metaDataLength()).map_err(|_| outside())?;
    let body = u64::try_from(block.bodyLength()).map_err(|_| outside())?;
    let end = start.checked_add(header).and_then(|end| end.checked_add(body));
    let end = end
        .filter(|end| header > 0 && *end <= total)
        .ok_or_else(outside)?;
    if body > most {
        return Err(Error::too_large(format!(
            "an Arrow message of {body} bytes is more than the limit of {most}"
        )));
    }
    Ok(start..end)
}
