//! Reads a row group: its pages are read, checked and then decoded.

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
    ParquetFile,
    dictionary::{self, Dictionary},
    pages::{inspect_pages, merge_lz4_chunks},
    reader::{RangeReader, external},
};
use pushdown_core::{Error, limits::BATCH_BYTES};

/// Maximum bytes of decompressed pages held at a time beyond the sizes in the footer: no memory is reserved for them.
const MAX_UNDECLARED_BYTES: u64 = 64 << 20;

/// Reads the selected rows and columns of a row group.
pub(super) struct RowGroupReader {
    pub(super) file: ParquetFile,
    pub(super) index: usize,
    pub(super) projection: ProjectionMask,
    pub(super) selection: Option<RowSelection>,
    pub(super) limit: Option<usize>,
}

impl RowGroupReader {
    /// Reads the pages, for record batches of `batch_rows` rows. Batches have fewer rows if long dictionary values would make
    /// them larger than `BATCH_BYTES`.
    pub(super) async fn read(self, batch_rows: usize) -> Result<Option<ParquetRecordBatchReader>> {
        let rows = batch_rows.max(1) as u64;
        let pages = RowGroupPages {
            metadata: Arc::clone(self.file.metadata.metadata()),
            row_group: self.index,
            max_page_bytes: self.file.limits.max_batch_bytes,
            max_held_bytes: self.file.limits.max_row_group_bytes.min(MAX_UNDECLARED_BYTES),
            row_budget_bytes: BATCH_BYTES / rows,
            max_row_bytes: Arc::default(),
            retained: Arc::default(),
        };
        let decoder = self.read_with(batch_rows, &pages).await?;
        let row_bytes = pages.max_row_bytes.load(Relaxed);
        if row_bytes <= pages.row_budget_bytes {
            return Ok(decoder);
        }
        // The second read uses the retained bytes of the first.
        drop(decoder);
        let fewer = usize::try_from(BATCH_BYTES / row_bytes).unwrap_or(batch_rows);
        self.read_with(fewer.clamp(1, batch_rows), &pages).await
    }

    async fn read_with(
        &self,
        batch_rows: usize,
        pages: &RowGroupPages,
    ) -> Result<Option<ParquetRecordBatchReader>> {
        let ParquetFile {
            source,
            limits,
            metadata,
            ..
        } = &self.file;
        let reader = RangeReader::for_pages(Arc::clone(source), limits, pages.clone());
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata.clone())
            .with_projection(self.projection.clone())
            .with_row_groups(vec![self.index])
            .with_batch_size(batch_rows);
        if let Some(selection) = &self.selection {
            builder = builder.with_row_selection(selection.clone());
        }
        if let Some(limit) = self.limit {
            builder = builder.with_limit(limit);
        }
        builder.build()?.next_row_group().await
    }
}

/// Ranges of the object and their bytes.
#[derive(Debug, Default)]
struct RetainedPages {
    ranges: Vec<Range<u64>>,
    bytes: Vec<Bytes>,
}

/// Checks the pages of a row group. Clones share the counters and the retained pages.
#[derive(Debug, Clone)]
pub(super) struct RowGroupPages {
    metadata: Arc<ParquetMetaData>,
    row_group: usize,
    /// Maximum size of a decompressed page.
    max_page_bytes: u64,
    /// Maximum size of the pages decompressed at a time (a dictionary and another page of each column), unless the footer
    /// declares more.
    max_held_bytes: u64,
    /// Rows of at most this size need no smaller record batches.
    row_budget_bytes: u64,
    /// Upper bound of the dictionary values of one row, set once the dictionaries are read.
    max_row_bytes: Arc<AtomicU64>,
    /// The pages of the last read, if rows exceed the budget.
    retained: Arc<Mutex<RetainedPages>>,
}

impl RowGroupPages {
    /// Takes the retained pages, if they are the pages of these ranges.
    pub(super) fn take_retained(&self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let mut retained = self.retained.lock();
        (!ranges.is_empty() && retained.ranges == ranges).then(|| std::mem::take(&mut *retained).bytes)
    }

    /// Checks the pages in these ranges, and returns them in the form that the decoder can read.
    pub(super) fn check(&self, ranges: &[Range<u64>], mut parts: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let group = self.metadata.row_group(self.row_group);
        let spans = column_spans(group)?;
        let (mut columns, mut dictionaries) = (HashMap::<usize, DataPages>::new(), Vec::new());
        for (range, part) in ranges.iter().zip(&mut parts) {
            let pages = inspect_pages(part, self.max_page_bytes).map_err(external)?;
            let next_span = spans.partition_point(|(span, _)| span.start <= range.start);
            let span = next_span.checked_sub(1).and_then(|index| spans.get(index));
            let Some((_, column)) = span.filter(|(span, _)| range.start < span.end) else {
                return Err(external(Error::undecodable(
                    "malformed Parquet: expected pages within a column chunk, found pages outside of all of them",
                )));
            };
            if group.column(*column).compression() == Compression::LZ4 {
                *part = merge_lz4_chunks(part).map_err(external)?;
            }
            let data = columns.entry(*column).or_default();
            data.values = data.values.saturating_add(pages.values);
            data.largest_bytes = data.largest_bytes.max(pages.largest_bytes);
            dictionaries.extend(pages.dictionaries.into_iter().map(|dictionary| DictionaryPage {
                column: *column,
                bytes: part.slice(dictionary.range),
                uncompressed_bytes: dictionary.uncompressed_bytes,
            }));
        }
        self.check_held_bytes(group, &columns, &dictionaries)
            .map_err(external)?;
        let dictionaries: Vec<_> = dictionaries
            .into_iter()
            .map(|page| page.into_dictionary(group, &columns))
            .collect();
        let row_bytes = dictionary::max_row_bytes(&dictionaries, self.row_budget_bytes)?;
        self.max_row_bytes.fetch_max(row_bytes, Relaxed);
        if row_bytes > self.row_budget_bytes {
            *self.retained.lock() = RetainedPages {
                ranges: ranges.to_vec(),
                bytes: parts.clone(),
            };
        }
        Ok(parts)
    }

    /// Checks the size of the pages that the decoder holds decompressed at the same time.
    fn check_held_bytes(
        &self,
        group: &RowGroupMetaData,
        columns: &HashMap<usize, DataPages>,
        dictionaries: &[DictionaryPage],
    ) -> pushdown_core::Result<()> {
        let declared =
            |column: &usize| u64::try_from(group.column(*column).uncompressed_size()).unwrap_or_default();
        let declared = columns.keys().map(declared).fold(0, u64::saturating_add);
        let dictionaries = dictionaries.iter().map(|page| page.uncompressed_bytes);
        let data = columns.values().map(|data| data.largest_bytes);
        let held = dictionaries.chain(data).fold(0, u64::saturating_add);
        let limit = self.max_held_bytes.max(declared);
        if held > limit {
            return Err(Error::too_large(format!(
                "Parquet pages too large: expected at most {limit} bytes decompressed at a time, found {held}"
            )));
        }
        Ok(())
    }
}

/// The data pages of a column.
#[derive(Debug, Default)]
struct DataPages {
    values: u64,
    /// Decompressed size of the largest page.
    largest_bytes: u64,
}

/// A dictionary page of a column.
struct DictionaryPage {
    column: usize,
    /// The stored page, with its header.
    bytes: Bytes,
    uncompressed_bytes: u64,
}

impl DictionaryPage {
    fn into_dictionary<'a>(
        self,
        group: &'a RowGroupMetaData,
        columns: &HashMap<usize, DataPages>,
    ) -> Dictionary<'a> {
        let rows = u64::try_from(group.num_rows()).unwrap_or_default().max(1);
        let chunk = group.column(self.column);
        let declared = u64::try_from(chunk.num_values()).unwrap_or_default();
        let counted = columns.get(&self.column).map_or(0, |data| data.values);
        let is_list = chunk.column_descr().max_rep_level() > 0;
        Dictionary {
            page: self.bytes,
            uncompressed_bytes: self.uncompressed_bytes,
            chunk,
            values_per_row: if is_list {
                declared.max(counted).div_ceil(rows).max(1)
            } else {
                1
            },
        }
    }
}

/// The byte range of each column of a row group and the index of the column, in the order of the file.
fn column_spans(group: &RowGroupMetaData) -> Result<Vec<(Range<u64>, usize)>> {
    let span = |(column, chunk): (usize, &ColumnChunkMetaData)| {
        let (start, length) = chunk.byte_range();
        (start..start.saturating_add(length), column)
    };
    let spans = group.columns().iter().enumerate().map(span);
    let mut spans: Vec<_> = spans.filter(|(span, _)| !span.is_empty()).collect();
    spans.sort_unstable_by_key(|(span, column)| (span.start, *column));
    if spans
        .array_windows()
        .any(|[(span, _), (next, _)]| next.start < span.end)
    {
        return Err(external(Error::undecodable(
            "malformed Parquet: expected separate column chunks, found two that overlap",
        )));
    }
    Ok(spans)
}
