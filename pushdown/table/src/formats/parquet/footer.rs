//! Reads and checks the footer of a Parquet file.

mod index;
mod schema;

use std::ops::Range;

use arrow_cast::base64::{BASE64_STANDARD, Engine as _};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::{
    DecodeResult,
    arrow::{ARROW_SCHEMA_META_KEY, arrow_reader::ArrowReaderMetadata},
    file::{
        FOOTER_SIZE,
        metadata::{
            ColumnChunkMetaData, FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
            RowGroupMetaData,
        },
    },
};

use super::{
    columns::{table_schema, with_decoded_types},
    fault, intervals,
    statistics::without_untrusted_statistics,
};
use crate::formats::arrow_schema::check_fields;
use pushdown_core::{Error, ErrorKind, Result, Source, Suffix, limits::TableLimits};

pub(super) use index::page_index;

/// Reads the footer of an object whose last bytes are `end`. Returns it with the schema of the table.
pub(super) async fn read(
    source: &dyn Source,
    end: Suffix,
    limits: &TableLimits,
) -> Result<(ArrowReaderMetadata, SchemaRef)> {
    let total = end.total;
    let mut decoder = ParquetMetaDataPushDecoder::try_new(total)
        .map_err(fault::parquet)?
        .with_page_index_policy(PageIndexPolicy::Skip);
    let tail = end
        .bytes
        .last_chunk()
        .ok_or_else(|| Error::undecodable("missing Parquet footer"))?;
    let tail = FooterTail::try_new(tail).map_err(fault::parquet)?;
    let footer = footer_range(&tail, total)?;
    let bytes = footer_bytes(source, &end, &footer, limits).await?;
    // An encrypted footer is not Thrift. The decoder rejects it.
    if !tail.is_encrypted_footer() {
        schema::check_footer(&bytes, limits)?;
    }
    let start = footer.start;
    let known = total - end.bytes.len() as u64..total;
    decoder.push_range(known, end.bytes).map_err(fault::parquet)?;
    decoder.push_range(footer, bytes).map_err(fault::parquet)?;
    let metadata = decode(decoder, source, total, limits, |_, _| Ok(())).await?;
    let metadata = without_untrusted_statistics(metadata).map_err(fault::parquet)?;
    check_arrow_schema(&metadata, limits)?;
    check_chunks(&metadata, start)?;
    let stored = metadata.file_metadata().schema_descr_ptr();
    let metadata = intervals::as_bytes(metadata)
        .and_then(with_decoded_types)
        .map_err(fault::parquet)?;
    let schema = table_schema(metadata.schema(), &stored);
    Ok((metadata, schema))
}

/// The range of the footer in the object, without its tail.
fn footer_range(tail: &FooterTail, total: u64) -> Result<Range<u64>> {
    let length = tail.metadata_length() as u64;
    let end = total.checked_sub(FOOTER_SIZE as u64);
    let range = end.and_then(|end| Some(end.checked_sub(length)?..end));
    range.ok_or_else(|| {
        Error::undecodable(format!(
            "invalid Parquet footer: expected it within the {total} bytes of the object, found a length of {length} bytes"
        ))
    })
}

/// The bytes of the footer: taken from `end` if it contains them, otherwise read.
async fn footer_bytes(
    source: &dyn Source,
    end: &Suffix,
    footer: &Range<u64>,
    limits: &TableLimits,
) -> Result<Bytes> {
    let end_offset = end.total - end.bytes.len() as u64;
    let offset_in_end = |offset: u64| usize::try_from(offset.checked_sub(end_offset)?).ok();
    if let (Some(from), Some(to)) = (offset_in_end(footer.start), offset_in_end(footer.end)) {
        return Ok(end.bytes.slice(from..to));
    }
    check_ranges(std::slice::from_ref(footer), end.total, limits)?;
    let part = source.ranges(vec![footer.clone()]).await?.pop();
    part.filter(|part| part.len() as u64 == footer.end - footer.start)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Source,
                "incomplete range: the source returned fewer bytes than requested",
            )
        })
}

/// Checks the Arrow schema that a file may have in its key-value metadata. The decoder rejects one that cannot be parsed.
fn check_arrow_schema(metadata: &ParquetMetaData, limits: &TableLimits) -> Result<()> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let pairs = pairs.into_iter().flatten();
    for pair in pairs.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY) {
        let Ok(message) = BASE64_STANDARD.decode(pair.value.as_deref().unwrap_or_default()) else {
            continue;
        };
        let message = match message.as_slice() {
            [0xff, 0xff, 0xff, 0xff, _, _, _, _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        // No limit on the number of fields, since it includes groups. The limit is on the bytes of their names.
        if let Ok(message) = arrow_ipc::root_as_message(message)
            && let Some(schema) = message.header_as_schema()
        {
            check_fields(&schema, usize::MAX, limits.max_footer_bytes)?;
        }
    }
    Ok(())
}

/// Checks that the column chunks are before the footer. A request for bytes after the end of the object would fail as if the
/// object had changed in the store.
fn check_chunks(metadata: &ParquetMetaData, footer: u64) -> Result<()> {
    let groups = metadata.row_groups().iter();
    let mut chunks = groups.flat_map(RowGroupMetaData::columns);
    chunks.try_for_each(|chunk| {
        let start = chunk.dictionary_page_offset();
        let start = start.unwrap_or_else(|| chunk.data_page_offset());
        check_within("column chunk", start, chunk.compressed_size(), footer)?;
        check_bloom_filter(chunk, footer)
    })
}

/// Checks that the Bloom filter of a chunk is before the footer, if the chunk has one of known length.
fn check_bloom_filter(chunk: &ColumnChunkMetaData, footer: u64) -> Result<()> {
    match (chunk.bloom_filter_offset(), chunk.bloom_filter_length()) {
        (Some(start), Some(length)) => check_within("Bloom filter", start, i64::from(length), footer),
        _ => Ok(()),
    }
}

/// Checks that `length` bytes at `start` end at or before `end`.
fn check_within(what: &str, start: i64, length: i64, end: u64) -> Result<()> {
    let stop = start
        .checked_add(length)
        .and_then(|stop| u64::try_from(stop).ok());
    if start >= 0 && length >= 0 && stop.is_some_and(|stop| stop <= end) {
        return Ok(());
    }
    Err(Error::undecodable(format!(
        "malformed Parquet: expected the {what} within the first {end} bytes of the object, found {length} bytes at \
         {start}"
    )))
}

/// Runs the decoder: reads the ranges that it requests, checks them by `inspect` and pushes them to the decoder.
async fn decode(
    mut decoder: ParquetMetaDataPushDecoder,
    source: &dyn Source,
    total: u64,
    limits: &TableLimits,
    inspect: impl Fn(&[Range<u64>], &[Bytes]) -> Result<()>,
) -> Result<ParquetMetaData> {
    loop {
        match decoder.try_decode().map_err(fault::parquet)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                check_ranges(&ranges, total, limits)?;
                let parts = source.ranges(ranges.clone()).await?;
                inspect(&ranges, &parts)?;
                decoder.push_ranges(ranges, parts).map_err(fault::parquet)?;
            }
            DecodeResult::Finished => return Err(Error::undecodable("missing Parquet footer")),
        }
    }
}

fn check_ranges(ranges: &[Range<u64>], total: u64, limits: &TableLimits) -> Result<()> {
    let bytes = ranges.iter().fold(0_u64, |bytes, range| {
        bytes.saturating_add(range.end.saturating_sub(range.start))
    });
    if bytes > limits.max_footer_bytes {
        return Err(Error::too_large(format!(
            "Parquet footer too large: expected at most {} bytes, found {bytes}",
            limits.max_footer_bytes
        )));
    }
    match ranges.iter().find(|range| range.end > total) {
        None => Ok(()),
        Some(Range { start, end }) => Err(Error::undecodable(format!(
            "malformed Parquet: expected the footer within the {total} bytes of the object, found a part of it at \
             {start}..{end}"
        ))),
    }
}
