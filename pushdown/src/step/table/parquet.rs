//! Parquet files, read by ranges: the footer first, then only the pages of the columns and row groups that are asked for.

mod ahead;
mod columns;
mod dictionary;
mod footer;
mod grammar;
mod group;
mod intervals;
mod lz4;
mod pages;
mod reader;
mod thrift;
mod trusted;

use std::{ops::Range, sync::Arc};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, RowSelection},
    async_reader::AsyncFileReader as _,
};

use super::fault;
use crate::{
    Result, Source, Suffix,
    limits::{BATCH_BYTES, BATCH_ROWS, TableLimits},
};
use ahead::Ahead;
pub(super) use ahead::ahead;
use arrow_array::RecordBatch;
use group::Group;
use reader::Ranges;
pub(in crate::step::table) use reader::joined;

/// A Parquet file whose footer has been read.
#[derive(Debug, Clone)]
pub(super) struct File {
    source: Arc<dyn Source>,
    total: u64,
    metadata: ArrowReaderMetadata,
    /// The columns, of which some are decoded as others.
    schema: SchemaRef,
    limits: TableLimits,
}

/// What is read of a file.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Columns, in ascending order.
    pub(super) columns: Vec<usize>,
    /// Row groups, in ascending order.
    pub(super) row_groups: Vec<usize>,
    /// Rows of these row groups, where not all of them.
    pub(super) rows: Option<RowSelection>,
    /// The most rows that are wanted.
    pub(super) limit: Option<usize>,
    /// Row groups that are held beside the one whose rows are taken.
    pub(super) ahead: usize,
}

impl File {
    /// Reads the footer of an object whose end is at hand.
    pub(super) async fn open(source: Arc<dyn Source>, end: Suffix, limits: &TableLimits) -> Result<Self> {
        let (metadata, schema) = footer::read(source.as_ref(), end.clone(), limits).await?;
        Ok(Self {
            source,
            total: end.total,
            metadata,
            schema,
            limits: *limits,
        })
    }

    /// The columns.
    pub(super) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the footer says.
    pub(super) const fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// The limits that it is read within.
    pub(super) const fn limits(&self) -> &TableLimits {
        &self.limits
    }

    /// Size of the object in bytes.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The same file, with what pages hold and where they are, if it tells.
    pub(super) async fn with_page_index(self) -> Result<Self> {
        let metadata = footer::page_index(
            self.source.as_ref(),
            self.total,
            self.metadata.clone(),
            &self.limits,
        )
        .await?;
        Ok(Self { metadata, ..self })
    }

    /// Reads some ranges, in any order.
    pub(super) async fn read_ranges(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        let mut reader = Ranges::new(Arc::clone(&self.source), &self.limits);
        reader.get_byte_ranges(ranges).await.map_err(fault::parquet)
    }

    /// The leaves of some columns.
    pub(super) fn leaves(&self, columns: &[usize]) -> ProjectionMask {
        ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied())
    }

    /// Rows of a record batch of some columns: fewer where values are large.
    pub(super) fn batch_rows(&self, columns: &[usize]) -> usize {
        let mask = self.leaves(columns);
        let groups = self.metadata.metadata().row_groups();
        let (mut rows, mut bytes) = (0_u64, 0);
        for group in groups {
            let leaves = group.columns().iter().enumerate();
            let leaves = leaves.filter(|(leaf, _)| mask.leaf_included(*leaf));
            let sizes = leaves.map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or_default());
            bytes = sizes.fold(bytes, u64::saturating_add);
            rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or_default());
        }
        let row = (bytes / rows.max(1)).max(1);
        usize::try_from(BATCH_BYTES / row)
            .unwrap_or(BATCH_ROWS)
            .clamp(1, BATCH_ROWS)
    }

    /// Reads a part: record batches of the columns in ascending order, one row group after the other.
    pub(super) fn read(&self, part: &Part) -> BoxStream<'static, Result<RecordBatch>> {
        let (file, batch_rows) = (self.clone(), self.batch_rows(&part.columns));
        let leaves = self.leaves(&part.columns);
        let (mut rows, mut left) = (part.rows.clone(), part.limit);
        let groups = part.row_groups.clone().into_iter().map_while(move |index| {
            let all = file.metadata.metadata().row_group(index).num_rows();
            let all = usize::try_from(all).unwrap_or_default();
            let selected = rows.as_mut().map(|rows| rows.split_off(all));
            let limit = left;
            if let Some(left) = &mut left {
                let taken = selected.as_ref().map_or(all, RowSelection::row_count);
                (*left > 0).then_some(())?;
                *left = left.saturating_sub(taken);
            }
            let group = Group {
                file: file.clone(),
                index,
                leaves: leaves.clone(),
                selected,
                limit,
            };
            Some(group.read(batch_rows).boxed())
        });
        let (schema, columns) = (SchemaRef::clone(&self.schema), part.columns.clone());
        let batches = Ahead::new(groups, part.ahead).map(move |batch| {
            let restored = intervals::restored(batch?, &schema, &columns);
            restored.map_err(|error| fault::parquet(error.into()))
        });
        batches.boxed()
    }
}
