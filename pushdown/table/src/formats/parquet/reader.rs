//! Reads ranges of a file for Parquet's decoder. Ranges close to each other become one read.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use parquet::{
    arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::{ParquetError, Result},
    file::metadata::ParquetMetaData,
};

use super::row_group::RowGroupPages;
use pushdown_core::{Error, Source, limits::TableLimits};

/// Ranges with a gap of at most this size are read as one: reading the gap costs less than another request.
const MAX_GAP_BYTES: u64 = 32 * 1024;

/// Reads the column chunks of a file.
#[derive(Debug)]
pub(super) struct RangeReader {
    source: Arc<dyn Source>,
    max_bytes: u64,
    /// Checks the pages that are read. `None` if the ranges are not pages.
    pages: Option<RowGroupPages>,
}

impl RangeReader {
    pub(super) fn new(source: Arc<dyn Source>, limits: &TableLimits) -> Self {
        Self {
            source,
            max_bytes: limits.max_row_group_bytes,
            pages: None,
        }
    }

    /// A reader of ranges that are whole pages.
    pub(super) fn for_pages(source: Arc<dyn Source>, limits: &TableLimits, pages: RowGroupPages) -> Self {
        Self {
            pages: Some(pages),
            ..Self::new(source, limits)
        }
    }
}

impl AsyncFileReader for RangeReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        let parts = self.get_byte_ranges(vec![range]);
        async move {
            let part = parts.await?.pop();
            part.ok_or_else(|| ParquetError::General("missing bytes of a range".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        if let Some(parts) = self.pages.as_ref().and_then(|pages| pages.take_retained(&ranges)) {
            return futures::future::ready(Ok(parts)).boxed();
        }
        let reads = coalesce(&ranges);
        let bytes: u64 = reads.iter().map(|range| range.end - range.start).sum();
        if bytes > self.max_bytes {
            let message = format!(
                "row group too large: expected at most {} bytes in the columns to read, found {bytes}",
                self.max_bytes
            );
            return futures::future::ready(Err(external(Error::too_large(message)))).boxed();
        }
        let (answer, pages) = (self.source.ranges(reads.clone()), self.pages.clone());
        async move {
            let answer = answer.await.map_err(external)?;
            let parts = ranges.iter().map(|range| part(range, &reads, &answer));
            let parts = parts.collect::<Option<Vec<_>>>().ok_or_else(|| {
                external(Error::new(
                    pushdown_core::ErrorKind::Source,
                    "incomplete range: the source returned fewer bytes than requested",
                ))
            })?;
            match pages {
                Some(pages) => pages.check(&ranges, parts),
                None => Ok(parts),
            }
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let unexpected = ParquetError::General(
            "unexpected read of the footer: it was read when the file was opened".to_owned(),
        );
        futures::future::ready(Err(unexpected)).boxed()
    }
}

/// The reads that cover `ranges`: ascending, with small gaps closed.
pub(crate) fn coalesce(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut reads: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match reads.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(MAX_GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => reads.push(range),
        }
    }
    reads
}

/// The bytes of `range`, cut out of the `answer` to `reads`.
fn part(range: &Range<u64>, reads: &[Range<u64>], answer: &[Bytes]) -> Option<Bytes> {
    if range.is_empty() {
        return Some(Bytes::new());
    }
    let index = reads.partition_point(|read| read.end < range.end);
    let start = usize::try_from(range.start.checked_sub(reads.get(index)?.start)?).ok()?;
    let length = usize::try_from(range.end - range.start).ok()?;
    let bytes = answer.get(index)?;
    (bytes.len().checked_sub(start)? >= length).then(|| bytes.slice(start..start + length))
}

/// Wraps an error of this crate for Parquet's decoder.
pub(super) fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_with_small_gaps_are_read_as_one() {
        let far = MAX_GAP_BYTES + 1;
        assert_eq!(
            coalesce(&[0..10, 10 + MAX_GAP_BYTES..20 + MAX_GAP_BYTES]),
            vec![0..20 + MAX_GAP_BYTES]
        );
        assert_eq!(
            coalesce(&[0..10, 10 + far..20 + far]),
            vec![0..10, 10 + far..20 + far]
        );
        assert_eq!(coalesce(&[50..60, 0..10, 5..7, 60..60]), vec![0..60]);
        assert_eq!(coalesce(&[]), vec![]);
    }

    #[test]
    fn each_range_gets_its_bytes() {
        let object = Bytes::from(
            (0..200_000_u32)
                .map(|byte| byte.to_le_bytes()[0])
                .collect::<Vec<_>>(),
        );
        let limits = TableLimits::default();
        let mut reader = RangeReader::new(Arc::new(object.clone()), &limits);
        let ranges = vec![150_000..150_010_u64, 0..3, 1..9, 7..7, 199_999..200_000];
        let parts = reader
            .get_byte_ranges(ranges.clone())
            .now_or_never()
            .unwrap()
            .unwrap();
        for (range, part) in ranges.into_iter().zip(parts) {
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert_eq!(part, object.slice(range));
        }
    }

    #[test]
    fn a_read_beyond_the_limit_is_rejected() {
        let limits = TableLimits {
            max_row_group_bytes: 10,
            ..TableLimits::default()
        };
        let mut reader = RangeReader::new(Arc::new(Bytes::from(vec![0; 100])), &limits);
        assert!(reader.get_bytes(0..10).now_or_never().unwrap().is_ok());
        let error = reader.get_bytes(0..11).now_or_never().unwrap().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("at most 10 bytes in the columns to read, found 11"),
            "{error}"
        );
    }
}
