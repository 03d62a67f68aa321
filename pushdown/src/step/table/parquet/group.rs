//! A row group: its pages are read and looked through, and then decoded.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, RowSelection},
        async_reader::ParquetRecordBatchStreamBuilder,
    },
    basic::Compression,
    errors::Result,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
};

use super::{
    File,
    dictionary::{self, Dictionary},
    pages,
    reader::{Ranges, external},
};
use crate::{Error, limits::BATCH_BYTES};

/// The most bytes of pages that are inflated at a time, where the footer tells of fewer: nobody has asked for memory for them.
const UNTOLD_BYTES: u64 = 64 << 20;

/// What is read of a row group.
pub(super) struct Group {
    pub(super) file: File,
    pub(super) index: usize,
    pub(super) leaves: ProjectionMask,
    pub(super) selected: Option<RowSelection>,
    pub(super) limit: Option<usize>,
}

impl Group {
    /// Reads its pages, to make record batches of so many rows of them: of fewer, where so many may have more bytes than a
    /// record batch is to have, since values are long that stand in dictionaries.
    pub(super) async fn read(self, batch_rows: usize) -> Result<Option<ParquetRecordBatchReader>> {
        let rows = batch_rows.max(1) as u64;
        let pages = Pages {
            metadata: Arc::clone(self.file.metadata.metadata()),
            row_group: self.index,
            most: self.file.limits.max_batch_bytes,
            together: self.file.limits.max_row_group_bytes.min(UNTOLD_BYTES),
            enough: BATCH_BYTES / rows,
            row: Arc::default(),
            read: Arc::default(),
        };
        let read = self.read_with(batch_rows, &pages).await?;
        let row = pages.row.load(Relaxed);
        if row <= pages.enough {
            return Ok(read);
        }
        // What was read is at hand.
        drop(read);
        let fewer = usize::try_from(BATCH_BYTES / row).unwrap_or(batch_rows);
        self.read_with(fewer.clamp(1, batch_rows), &pages).await
    }

    async fn read_with(&self, rows: usize, pages: &Pages) -> Result<Option<ParquetRecordBatchReader>> {
        let File {
            source,
            limits,
            metadata,
            ..
        } = &self.file;
        let reader = Ranges::of_pages(Arc::clone(source), limits, pages.clone());
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata.clone())
            .with_projection(self.leaves.clone())
            .with_row_groups(vec![self.index])
            .with_batch_size(rows);
        if let Some(selected) = &self.selected {
            builder = builder.with_row_selection(selected.clone());
        }
        if let Some(limit) = self.limit {
            builder = builder.with_limit(limit);
        }
        builder.build()?.next_row_group().await
    }
}

/// Ranges, and what is there.
type Parts = (Vec<Range<u64>>, Vec<Bytes>);

/// The pages of a row group. Clones share what is known of them.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    metadata: Arc<ParquetMetaData>,
    row_group: usize,
    /// The most bytes that a page may have once it is inflated.
    most: u64,
    /// The most bytes of the pages that are inflated at a time, a dictionary and another of each column, where the footer does
    /// not tell of more.
    together: u64,
    /// Bytes of a row up to which it does not matter how many they are.
    enough: u64,
    /// The most bytes of a row's values that stand in dictionaries, once these are read.
    row: Arc<AtomicU64>,
    /// What was read last.
    read: Arc<Mutex<Parts>>,
}

impl Pages {
    /// The pages in these ranges, where they are what was read last.
    pub(super) fn at_hand(&self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let mut read = self.read.lock();
        (!ranges.is_empty() && read.0 == ranges).then(|| std::mem::take(&mut *read).1)
    }

    /// Looks through the pages in these ranges, and gives them as the decoder can read them.
    pub(super) fn check(&self, ranges: &[Range<u64>], mut parts: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let group = self.metadata.row_group(self.row_group);
        let columns = spans(group)?;
        let (mut seen, mut found) = (HashMap::<usize, Seen>::new(), Vec::new());
        for (range, part) in ranges.iter().zip(&mut parts) {
            let pages = pages::check(part, self.most).map_err(external)?;
            let before = columns.partition_point(|(span, _)| span.start <= range.start);
            let column = before.checked_sub(1).and_then(|at| columns.get(at));
            let Some((_, column)) = column.filter(|(span, _)| range.start < span.end) else {
                return Err(external(Error::undecodable("found pages of no column")));
            };
            if group.column(*column).compression() == Compression::LZ4 {
                *part = pages::with_joined_chunks(part).map_err(external)?;
            }
            let of_column = seen.entry(*column).or_default();
            of_column.values = of_column.values.saturating_add(pages.values);
            of_column.largest = of_column.largest.max(pages.largest);
            let pages = pages.dictionaries.into_iter();
            found.extend(pages.map(|(place, inflated)| (*column, part.slice(place), inflated)));
        }
        let claimed =
            |column: &usize| u64::try_from(group.column(*column).uncompressed_size()).unwrap_or_default();
        let claimed = seen.keys().map(claimed).fold(0, u64::saturating_add);
        let dictionaries = found.iter().map(|(_, _, inflated)| *inflated);
        let largest = seen.values().map(|seen| seen.largest);
        let held = dictionaries.chain(largest).fold(0, u64::saturating_add);
        let most = self.together.max(claimed);
        if held > most {
            return Err(external(Error::too_large(format!(
                "pages that are inflated together have {held} bytes, more than the limit of {most}"
            ))));
        }
        let rows = u64::try_from(group.num_rows()).unwrap_or_default().max(1);
        let dictionary = |(column, page, inflated): (usize, Bytes, u64)| {
            let chunk = group.column(column);
            let claimed = u64::try_from(chunk.num_values()).unwrap_or_default();
            let counted = seen.get(&column).map_or(0, |seen| seen.values);
            let is_list = chunk.column_descr().max_rep_level() > 0;
            Dictionary {
                page,
                inflated,
                chunk,
                values: if is_list {
                    claimed.max(counted).div_ceil(rows).max(1)
                } else {
                    1
                },
            }
        };
        let dictionaries: Vec<_> = found.into_iter().map(dictionary).collect();
        let row = dictionary::row(&dictionaries, self.enough)?;
        self.row.fetch_max(row, Relaxed);
        if row > self.enough {
            *self.read.lock() = (ranges.to_vec(), parts.clone());
        }
        Ok(parts)
    }
}

/// What the pages of a column hold, but for dictionaries.
#[derive(Debug, Default)]
struct Seen {
    values: u64,
    /// Bytes that the largest of them inflates to.
    largest: u64,
}

/// Where the columns of a row group are, in the order of the file.
fn spans(group: &RowGroupMetaData) -> Result<Vec<(Range<u64>, usize)>> {
    let span = |(column, chunk): (usize, &ColumnChunkMetaData)| {
        let (start, length) = chunk.byte_range();
        (start..start.saturating_add(length), column)
    };
    let spans = group.columns().iter().enumerate().map(span);
    let mut spans: Vec<_> = spans.filter(|(span, _)| !span.is_empty()).collect();
    spans.sort_unstable_by_key(|(span, column)| (span.start, *column));
    if spans
        .array_windows()
        .any(|[(one, _), (next, _)]| next.start < one.end)
    {
        return Err(external(Error::undecodable("found columns that share bytes")));
    }
    Ok(spans)
}
