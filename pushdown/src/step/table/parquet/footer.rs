//! The footer of a Parquet file: what it holds and where.

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
    columns::{columns, with_columns},
    fault, intervals,
    trusted::trusted,
};
use crate::{
    Error, ErrorKind, Result, Source, Suffix, limits::TableLimits, step::table::stream::check_fields,
};

pub(super) use index::page_index;

/// Reads the footer of an object whose end is at hand, and gives its columns.
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
        .ok_or_else(|| Error::undecodable("the Parquet footer is missing"))?;
    let tail = FooterTail::try_new(tail).map_err(fault::parquet)?;
    let footer = place(&tail, total)?;
    let bytes = bytes(source, &end, &footer, limits).await?;
    // An encrypted one is none of Thrift's, and nothing that can be read here: the decoder says so.
    if !tail.is_encrypted_footer() {
        schema::check(&bytes, limits)?;
    }
    let start = footer.start;
    let known = total - end.bytes.len() as u64..total;
    decoder.push_range(known, end.bytes).map_err(fault::parquet)?;
    decoder.push_range(footer, bytes).map_err(fault::parquet)?;
    let metadata =
        trusted(decode(decoder, source, total, limits, |_, _| Ok(())).await?).map_err(fault::parquet)?;
    hint(&metadata, limits)?;
    chunks(&metadata, start)?;
    let stored = metadata.file_metadata().schema_descr_ptr();
    let metadata = intervals::as_bytes(metadata)
        .and_then(with_columns)
        .map_err(fault::parquet)?;
    let columns = columns(metadata.schema(), &stored);
    Ok((metadata, columns))
}

/// Where the footer lies, without its tail.
fn place(tail: &FooterTail, total: u64) -> Result<Range<u64>> {
    let length = tail.metadata_length() as u64;
    let end = total.checked_sub(FOOTER_SIZE as u64);
    let place = end.and_then(|end| Some(end.checked_sub(length)?..end));
    place.ok_or_else(|| {
        Error::undecodable(format!(
            "found a Parquet footer of {length} bytes, expected it within the {total} bytes of the object"
        ))
    })
}

/// The bytes of the footer: read where they are not at hand.
async fn bytes(
    source: &dyn Source,
    end: &Suffix,
    footer: &Range<u64>,
    limits: &TableLimits,
) -> Result<Bytes> {
    let held = end.total - end.bytes.len() as u64;
    let within = |place: u64| usize::try_from(place.checked_sub(held)?).ok();
    if let (Some(from), Some(to)) = (within(footer.start), within(footer.end)) {
        return Ok(end.bytes.slice(from..to));
    }
    check(std::slice::from_ref(footer), end.total, limits)?;
    let part = source.ranges(vec![footer.clone()]).await?.pop();
    part.filter(|part| part.len() as u64 == footer.end - footer.start)
        .ok_or_else(|| Error::new(ErrorKind::Source, "a part is shorter than its range"))
}

/// Looks through the Arrow schema that a file may have beside its own. One that cannot be read is left to the decoder, which
/// tells what is wrong with it.
fn hint(metadata: &ParquetMetaData, limits: &TableLimits) -> Result<()> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let hints = pairs.into_iter().flatten();
    for hint in hints.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY) {
        let Ok(message) = BASE64_STANDARD.decode(hint.value.as_deref().unwrap_or_default()) else {
            continue;
        };
        let message = match message.as_slice() {
            [0xff, 0xff, 0xff, 0xff, _, _, _, _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        // Groups are counted here, and not among the columns of the file: their names are what is bounded.
        if let Ok(message) = arrow_ipc::root_as_message(message)
            && let Some(schema) = message.header_as_schema()
        {
            check_fields(&schema, usize::MAX, limits.max_footer_bytes)?;
        }
    }
    Ok(())
}

/// Checks that the column chunks lie before the footer: what lies beyond the end would be asked for in vain, and the answer
/// looks like that of a store which has another object by now.
fn chunks(metadata: &ParquetMetaData, footer: u64) -> Result<()> {
    let groups = metadata.row_groups().iter();
    let mut chunks = groups.flat_map(RowGroupMetaData::columns);
    chunks.try_for_each(|chunk| {
        let start = chunk.dictionary_page_offset();
        let start = start.unwrap_or_else(|| chunk.data_page_offset());
        before("column chunk", start, chunk.compressed_size(), footer)?;
        filter(chunk, footer)
    })
}

/// The same of a Bloom filter, where its length is known and it can be read.
fn filter(chunk: &ColumnChunkMetaData, footer: u64) -> Result<()> {
    match (chunk.bloom_filter_offset(), chunk.bloom_filter_length()) {
        (Some(start), Some(length)) => before("Bloom filter", start, i64::from(length), footer),
        _ => Ok(()),
    }
}

fn before(what: &str, start: i64, length: i64, end: u64) -> Result<()> {
    let stop = start
        .checked_add(length)
        .and_then(|stop| u64::try_from(stop).ok());
    if start >= 0 && length >= 0 && stop.is_some_and(|stop| stop <= end) {
        return Ok(());
    }
    Err(Error::undecodable(format!(
        "found malformed Parquet: a {what} of {length} bytes at {start}, expected it within the first {end} bytes of \
         the object"
    )))
}

/// Decodes what is pushed, and what it asks for beyond that, once `look` has looked through it.
async fn decode(
    mut decoder: ParquetMetaDataPushDecoder,
    source: &dyn Source,
    total: u64,
    limits: &TableLimits,
    look: impl Fn(&[Range<u64>], &[Bytes]) -> Result<()>,
) -> Result<ParquetMetaData> {
    loop {
        match decoder.try_decode().map_err(fault::parquet)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                check(&ranges, total, limits)?;
                let parts = source.ranges(ranges.clone()).await?;
                look(&ranges, &parts)?;
                decoder.push_ranges(ranges, parts).map_err(fault::parquet)?;
            }
            DecodeResult::Finished => return Err(Error::undecodable("the Parquet footer is missing")),
        }
    }
}

fn check(ranges: &[Range<u64>], total: u64, limits: &TableLimits) -> Result<()> {
    let bytes = ranges.iter().fold(0_u64, |bytes, range| {
        bytes.saturating_add(range.end.saturating_sub(range.start))
    });
    if bytes > limits.max_footer_bytes {
        return Err(Error::too_large(format!(
            "the object's footer has {bytes} bytes, more than the limit of {}",
            limits.max_footer_bytes
        )));
    }
    match ranges.iter().find(|range| range.end > total) {
        None => Ok(()),
        Some(Range { start, end }) => Err(Error::undecodable(format!(
            "found malformed Parquet: a part of its footer at {start}..{end}, expected it within the {total} bytes of the \
             object"
        ))),
    }
}
