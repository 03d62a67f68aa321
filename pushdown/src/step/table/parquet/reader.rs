//! Ranges of a file for Parquet's decoder: near ones joined.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use parquet::{
    arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::{ParquetError, Result},
    file::metadata::ParquetMetaData,
};

use super::group::Pages;
use crate::{Error, Source, limits::TableLimits};

/// Ranges with no more than this between them are read as one: reading the bytes between takes less than asking again.
const NEAR: u64 = 32 * 1024;

/// Reads a file's column chunks.
#[derive(Debug)]
pub(super) struct Ranges {
    source: Arc<dyn Source>,
    most: u64,
    /// Where ranges are pages: they are looked through.
    pages: Option<Pages>,
}

impl Ranges {
    pub(super) fn new(source: Arc<dyn Source>, limits: &TableLimits) -> Self {
        Self {
            source,
            most: limits.max_row_group_bytes,
            pages: None,
        }
    }

    /// The same for ranges of whole pages.
    pub(super) fn of_pages(source: Arc<dyn Source>, limits: &TableLimits, pages: Pages) -> Self {
        Self {
            pages: Some(pages),
            ..Self::new(source, limits)
        }
    }
}

impl AsyncFileReader for Ranges {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        let parts = self.get_byte_ranges(vec![range]);
        async move {
            let part = parts.await?.pop();
            part.ok_or_else(|| ParquetError::General("no part for a range".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        if let Some(parts) = self.pages.as_ref().and_then(|pages| pages.at_hand(&ranges)) {
            return futures::future::ready(Ok(parts)).boxed();
        }
        let joined = joined(&ranges);
        let bytes: u64 = joined.iter().map(|range| range.end - range.start).sum();
        if bytes > self.most {
            let message = format!(
                "the columns of a row group have {bytes} bytes, more than the limit of {}",
                self.most
            );
            return futures::future::ready(Err(external(Error::too_large(message)))).boxed();
        }
        let (reading, pages) = (self.source.ranges(joined.clone()), self.pages.clone());
        async move {
            let parts = reading.await.map_err(external)?;
            let cut = |range: &Range<u64>| cut(range, &joined, &parts);
            let cut = ranges.iter().map(cut).collect::<Option<Vec<_>>>();
            let cut = cut.ok_or_else(|| {
                external(Error::new(
                    crate::ErrorKind::Source,
                    "a part is shorter than its range",
                ))
            })?;
            match pages {
                Some(pages) => pages.check(&ranges, cut),
                None => Ok(cut),
            }
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let unexpected = ParquetError::General("the footer is read before the file".to_owned());
        futures::future::ready(Err(unexpected)).boxed()
    }
}

/// The ranges that are read for `ranges`: ascending, near ones joined.
pub(in crate::step::table) fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(NEAR) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The part of what was read that is `range`.
fn cut(range: &Range<u64>, joined: &[Range<u64>], parts: &[Bytes]) -> Option<Bytes> {
    if range.is_empty() {
        return Some(Bytes::new());
    }
    let index = joined.partition_point(|whole| whole.end < range.end);
    let start = usize::try_from(range.start.checked_sub(joined.get(index)?.start)?).ok()?;
    let length = usize::try_from(range.end - range.start).ok()?;
    let part = parts.get(index)?;
    (part.len().checked_sub(start)? >= length).then(|| part.slice(start..start + length))
}

pub(super) fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_read_as_one() {
        let far = NEAR + 1;
        assert_eq!(joined(&[0..10, 10 + NEAR..20 + NEAR]), vec![0..20 + NEAR]);
        assert_eq!(
            joined(&[0..10, 10 + far..20 + far]),
            vec![0..10, 10 + far..20 + far]
        );
        assert_eq!(joined(&[50..60, 0..10, 5..7, 60..60]), vec![0..60]);
        assert_eq!(joined(&[]), vec![]);
    }

    #[test]
    fn each_range_gets_its_bytes() {
        let object = Bytes::from(
            (0..200_000_u32)
                .map(|byte| byte.to_le_bytes()[0])
                .collect::<Vec<_>>(),
        );
        let limits = TableLimits::default();
        let mut reader = Ranges::new(Arc::new(object.clone()), &limits);
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
    fn no_more_than_the_limit_is_read_at_once() {
        let limits = TableLimits {
            max_row_group_bytes: 10,
            ..TableLimits::default()
        };
        let mut reader = Ranges::new(Arc::new(Bytes::from(vec![0; 100])), &limits);
        assert!(reader.get_bytes(0..10).now_or_never().unwrap().is_ok());
        let error = reader.get_bytes(0..11).now_or_never().unwrap().unwrap_err();
        assert!(
            error.to_string().contains("11 bytes, more than the limit of 10"),
            "{error}"
        );
    }
}
