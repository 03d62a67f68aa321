//! Parquet files, read by range: first the footer, then only the requested pages of the requested columns and row groups.

mod columns;
mod dictionary;
mod footer;
mod intervals;
mod lz4;
mod pages;
mod prefetch;
mod reader;
mod row_group;
mod statistics;
mod structures;
mod thrift;

use std::{ops::Range, sync::Arc};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, RowSelection},
    async_reader::AsyncFileReader as _,
};

use crate::fault;
use arrow_array::RecordBatch;
use prefetch::Prefetch;
pub(crate) use prefetch::row_groups_ahead;
use pushdown_core::{
    Result, Source, Suffix,
    limits::{BATCH_BYTES, BATCH_ROWS, TableLimits},
};
use reader::RangeReader;
pub(crate) use reader::coalesce;
use row_group::RowGroupReader;

/// A Parquet file whose footer has been read.
#[derive(Debug, Clone)]
pub(crate) struct ParquetFile {
    source: Arc<dyn Source>,
    object_bytes: u64,
    metadata: ArrowReaderMetadata,
    /// The columns of the table. Some are decoded as other types first (`intervals`).
    schema: SchemaRef,
    limits: TableLimits,
}

/// The part of a file that a query reads.
#[derive(Debug, Clone)]
pub(crate) struct ParquetScan {
    /// Indexes of the columns, ascending.
    pub(crate) columns: Vec<usize>,
    /// Indexes of the row groups, ascending.
    pub(crate) row_groups: Vec<usize>,
    /// The rows of these row groups to read. `None` reads all of them.
    pub(crate) selection: Option<RowSelection>,
    /// Maximum number of rows.
    pub(crate) limit: Option<usize>,
    /// Number of row groups in memory in addition to the one being decoded.
    pub(crate) row_groups_ahead: usize,
}

impl ParquetFile {
    /// Opens an object whose last bytes, `end`, have been read: reads the rest of its footer.
    pub(crate) async fn open(source: Arc<dyn Source>, end: Suffix, limits: &TableLimits) -> Result<Self> {
        let (metadata, schema) = footer::read(source.as_ref(), end.clone(), limits).await?;
        Ok(Self {
            source,
            object_bytes: end.total,
            metadata,
            schema,
            limits: *limits,
        })
    }

    /// The columns.
    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The decoded footer.
    pub(crate) const fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// The limits that apply to reads of the file.
    pub(crate) const fn limits(&self) -> &TableLimits {
        &self.limits
    }

    /// Size of the object in bytes.
    pub(crate) const fn object_bytes(&self) -> u64 {
        self.object_bytes
    }

    /// The same file with its page index (bounds and offsets of pages), if it has one.
    pub(crate) async fn with_page_index(self) -> Result<Self> {
        let metadata = footer::page_index(
            self.source.as_ref(),
            self.object_bytes,
            self.metadata.clone(),
            &self.limits,
        )
        .await?;
        Ok(Self { metadata, ..self })
    }

    /// Reads ranges of bytes, in any order.
    pub(crate) async fn read_ranges(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        let mut reader = RangeReader::new(Arc::clone(&self.source), &self.limits);
        reader.get_byte_ranges(ranges).await.map_err(fault::parquet)
    }

    /// The leaf columns of `columns`.
    pub(crate) fn projection(&self, columns: &[usize]) -> ProjectionMask {
        ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied())
    }

    /// Number of rows in a record batch of `columns`: fewer if values are large.
    pub(crate) fn batch_rows(&self, columns: &[usize]) -> usize {
        let mask = self.projection(columns);
        let groups = self.metadata.metadata().row_groups();
        let (mut rows, mut bytes) = (0_u64, 0);
        for group in groups {
            let leaves = group.columns().iter().enumerate();
            let leaves = leaves.filter(|(leaf, _)| mask.leaf_included(*leaf));
            let sizes = leaves.map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or_default());
            bytes = sizes.fold(bytes, u64::saturating_add);
            rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or_default());
        }
        let row_bytes = (bytes / rows.max(1)).max(1);
        usize::try_from(BATCH_BYTES / row_bytes)
            .unwrap_or(BATCH_ROWS)
            .clamp(1, BATCH_ROWS)
    }

    /// Reads record batches of the columns of `scan`, in ascending order, one row group after the other.
    pub(crate) fn read(&self, scan: &ParquetScan) -> BoxStream<'static, Result<RecordBatch>> {
        let (file, batch_rows) = (self.clone(), self.batch_rows(&scan.columns));
        let projection = self.projection(&scan.columns);
        let (mut selection, mut rows_left) = (scan.selection.clone(), scan.limit);
        let groups = scan.row_groups.clone().into_iter().map_while(move |index| {
            let group_rows = file.metadata.metadata().row_group(index).num_rows();
            let group_rows = usize::try_from(group_rows).unwrap_or_default();
            let group_selection = selection.as_mut().map(|rest| rest.split_off(group_rows));
            let limit = rows_left;
            if let Some(rows_left) = &mut rows_left {
                let selected = group_selection
                    .as_ref()
                    .map_or(group_rows, RowSelection::row_count);
                (*rows_left > 0).then_some(())?;
                *rows_left = rows_left.saturating_sub(selected);
            }
            let reader = RowGroupReader {
                file: file.clone(),
                index,
                projection: projection.clone(),
                selection: group_selection,
                limit,
            };
            Some(reader.read(batch_rows).boxed())
        });
        let (schema, columns) = (SchemaRef::clone(&self.schema), scan.columns.clone());
        let batches = Prefetch::new(groups, scan.row_groups_ahead).map(move |batch| {
            intervals::restore_intervals(batch?, &schema, &columns)
                .map_err(|error| fault::parquet(error.into()))
        });
        batches.boxed()
    }
}
