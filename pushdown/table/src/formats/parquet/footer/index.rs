//! Reads and checks the page index: the offset and the bounds of each page of each column chunk.

use std::ops::Range;

use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::ArrowReaderMetadata,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, RowGroupMetaData},
        page_index::offset_index::OffsetIndexMetaData,
    },
};

use super::{check_within, decode};
use crate::{
    fault,
    formats::parquet::{
        columns::with_decoded_types,
        statistics::without_nan_bounds,
        structures::{COLUMN_INDEX, OFFSET_INDEX, skip_struct},
        thrift::CompactReader,
    },
};
use pushdown_core::{Result, Source, limits::TableLimits};

/// The footer with the page index of the file, if it has one.
pub(in crate::formats::parquet) async fn page_index(
    source: &dyn Source,
    total: u64,
    metadata: ArrowReaderMetadata,
    limits: &TableLimits,
) -> Result<ArrowReaderMetadata> {
    let footer = metadata.metadata();
    let decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(total, ParquetMetaData::clone(footer))
        .map_err(fault::parquet)?
        .with_page_index_policy(PageIndexPolicy::Optional);
    let inspect = |ranges: &[Range<u64>], parts: &[Bytes]| check_structure(footer, ranges, parts);
    let metadata = decode(decoder, source, total, limits, inspect).await?;
    check_pages(&metadata, total)?;
    with_decoded_types(without_nan_bounds(metadata)).map_err(fault::parquet)
}

/// Checks the Thrift structure of the indexes in `parts` before they are decoded.
fn check_structure(footer: &ParquetMetaData, ranges: &[Range<u64>], parts: &[Bytes]) -> Result<()> {
    let chunks = footer.row_groups().iter().flat_map(RowGroupMetaData::columns);
    for chunk in chunks {
        let indexes = [
            (
                chunk.column_index_offset(),
                chunk.column_index_length(),
                COLUMN_INDEX,
            ),
            (
                chunk.offset_index_offset(),
                chunk.offset_index_length(),
                OFFSET_INDEX,
            ),
        ];
        for (start, length, shapes) in indexes {
            if let Some((start, length)) = start.zip(length)
                && let Some(bytes) = index_bytes(start, length, ranges, parts)
            {
                skip_struct(&mut CompactReader::new(bytes), shapes)?;
            }
        }
    }
    Ok(())
}

/// The `length` bytes at `start` of the object, if one of `parts`, the bytes of `ranges`, contains them.
fn index_bytes<'a>(start: i64, length: i32, ranges: &[Range<u64>], parts: &'a [Bytes]) -> Option<&'a [u8]> {
    let start = u64::try_from(start).ok()?;
    let end = start.checked_add(u64::try_from(length).ok()?)?;
    let contains = |range: &Range<u64>| range.start <= start && end <= range.end;
    let (range, part) = ranges.iter().zip(parts).find(|(range, _)| contains(range))?;
    let offset_in_part = |offset: u64| usize::try_from(offset - range.start).ok();
    part.get(offset_in_part(start)?..offset_in_part(end)?)
}

/// Checks that the pages are within the object.
fn check_pages(metadata: &ParquetMetaData, total: u64) -> Result<()> {
    let indexes = metadata.offset_index().into_iter().flatten().flatten();
    let mut pages = indexes.flat_map(OffsetIndexMetaData::page_locations);
    pages.try_for_each(|page| check_within("page", page.offset, i64::from(page.compressed_page_size), total))
}
