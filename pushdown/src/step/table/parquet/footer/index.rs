//! The page index: where the pages of each column chunk lie, and what is in them.

use std::ops::Range;

use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::ArrowReaderMetadata,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, RowGroupMetaData},
        page_index::offset_index::OffsetIndexMetaData,
    },
};

use super::{before, decode};
use crate::{
    Result, Source,
    limits::TableLimits,
    step::table::{
        fault,
        parquet::{
            columns::with_columns,
            grammar::{COLUMN_INDEX, OFFSET_INDEX, structure},
            thrift::Compact,
            trusted::trusted_pages,
        },
    },
};

/// The same footer with the page index, where the file has one.
pub(in crate::step::table::parquet) async fn page_index(
    source: &dyn Source,
    total: u64,
    metadata: ArrowReaderMetadata,
    limits: &TableLimits,
) -> Result<ArrowReaderMetadata> {
    let footer = metadata.metadata();
    let decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(total, ParquetMetaData::clone(footer))
        .map_err(fault::parquet)?
        .with_page_index_policy(PageIndexPolicy::Optional);
    let look = |ranges: &[Range<u64>], parts: &[Bytes]| forms(footer, ranges, parts);
    let metadata = decode(decoder, source, total, limits, look).await?;
    pages(&metadata, total)?;
    with_columns(trusted_pages(metadata)).map_err(fault::parquet)
}

/// Looks through the indexes that are within what was read, before they are decoded.
fn forms(footer: &ParquetMetaData, ranges: &[Range<u64>], parts: &[Bytes]) -> Result<()> {
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
            if let Some(bytes) = start.zip(length).and_then(|place| within(place, ranges, parts)) {
                structure(&mut Compact::new(bytes), shapes)?;
            }
        }
    }
    Ok(())
}

fn within<'a>((start, length): (i64, i32), ranges: &[Range<u64>], parts: &'a [Bytes]) -> Option<&'a [u8]> {
    let start = u64::try_from(start).ok()?;
    let end = start.checked_add(u64::try_from(length).ok()?)?;
    let holds = |range: &Range<u64>| range.start <= start && end <= range.end;
    let (range, part) = ranges.iter().zip(parts).find(|(range, _)| holds(range))?;
    let place = |of: u64| usize::try_from(of - range.start).ok();
    part.get(place(start)?..place(end)?)
}

/// Checks that pages lie within the object.
fn pages(metadata: &ParquetMetaData, total: u64) -> Result<()> {
    let indexes = metadata.offset_index().into_iter().flatten().flatten();
    let mut pages = indexes.flat_map(OffsetIndexMetaData::page_locations);
    pages.try_for_each(|page| before("page", page.offset, i64::from(page.compressed_page_size), total))
}
