//! The footer of a Parquet file: what it holds and where.

use std::{ops::Range, sync::Arc};

use parquet::{
    DecodeResult,
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder},
};

use super::fault;
use crate::{Error, Result, Source, Suffix, limits::TableLimits};

/// Reads the footer of an object whose end is at hand.
pub(super) async fn read(
    source: &dyn Source,
    end: Suffix,
    limits: &TableLimits,
) -> Result<ArrowReaderMetadata> {
    let mut decoder = ParquetMetaDataPushDecoder::try_new(end.total)
        .map_err(fault::parquet)?
        .with_page_index_policy(PageIndexPolicy::Skip);
    let known = end.total - end.bytes.len() as u64..end.total;
    decoder.push_range(known, end.bytes).map_err(fault::parquet)?;
    let metadata = decode(decoder, source, limits).await?;
    let leaves = metadata.file_metadata().schema_descr().num_columns();
    if leaves > limits.max_columns {
        return Err(Error::too_large(format!(
            "the object has {leaves} columns, more than the limit of {}",
            limits.max_columns
        )));
    }
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).map_err(fault::parquet)
}

/// The same footer with the page index, where the file has one.
pub(super) async fn page_index(
    source: &dyn Source,
    total: u64,
    metadata: ArrowReaderMetadata,
    limits: &TableLimits,
) -> Result<ArrowReaderMetadata> {
    let decoder =
        ParquetMetaDataPushDecoder::try_new_with_metadata(total, ParquetMetaData::clone(metadata.metadata()))
            .map_err(fault::parquet)?
            .with_page_index_policy(PageIndexPolicy::Optional);
    let metadata = decode(decoder, source, limits).await?;
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).map_err(fault::parquet)
}

async fn decode(
    mut decoder: ParquetMetaDataPushDecoder,
    source: &dyn Source,
    limits: &TableLimits,
) -> Result<ParquetMetaData> {
    loop {
        match decoder.try_decode().map_err(fault::parquet)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                check(&ranges, limits)?;
                let parts = source.ranges(ranges.clone()).await?;
                decoder.push_ranges(ranges, parts).map_err(fault::parquet)?;
            }
            DecodeResult::Finished => return Err(Error::undecodable("the Parquet footer is missing")),
        }
    }
}

fn check(ranges: &[Range<u64>], limits: &TableLimits) -> Result<()> {
    let bytes = ranges.iter().fold(0_u64, |bytes, range| {
        bytes.saturating_add(range.end.saturating_sub(range.start))
    });
    if bytes > limits.max_footer_bytes {
        return Err(Error::too_large(format!(
            "the object's footer has {bytes} bytes, more than the limit of {}",
            limits.max_footer_bytes
        )));
    }
    Ok(())
}
