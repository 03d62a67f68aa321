//! A range of row numbers of an object.

use std::ops::Range;

use ::parquet::{
    arrow::arrow_reader::{RowSelection, RowSelector},
    file::metadata::RowGroupMetaData,
};
use arrow_array::RecordBatch;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use pushdown_core::{
    Result,
    language::{FromValue, Value},
};

/// Row numbers from 0: the first row, and the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowRange {
    start: u64,
    end: u64,
}

impl FromValue for RowRange {
    fn from_value(value: &Value) -> Result<Self, String> {
        let row = |value: &Value| match value {
            Value::Int(row) => u64::try_from(*row).ok(),
            _ => None,
        };
        let bounds = match value {
            Value::List(bounds) => bounds.as_slice(),
            _ => &[],
        };
        match bounds {
            [start, end] => match (row(start), row(end)) {
                (Some(start), Some(end)) if start <= end => Some(Self { start, end }),
                _ => None,
            },
            _ => None,
        }
        .ok_or_else(|| "two row numbers in ascending order, [from, to]".to_owned())
    }
}

impl From<Range<u64>> for RowRange {
    fn from(rows: Range<u64>) -> Self {
        Self {
            start: rows.start,
            end: rows.end.max(rows.start),
        }
    }
}

impl RowRange {
    /// The argument that `from_value` reads back.
    pub(crate) fn value(self) -> Value {
        let row = |row| Value::Int(i64::try_from(row).unwrap_or(i64::MAX));
        Value::List(vec![row(self.start), row(self.end)])
    }

    /// The number of the first row.
    pub(crate) const fn start(self) -> u64 {
        self.start
    }

    /// The part of each row group that the range covers.
    pub(crate) fn access_plan(self, groups: &[RowGroupMetaData]) -> ParquetAccessPlan {
        let mut first = 0;
        let access = groups.iter().map(|group| {
            let rows = first
                ..u64::try_from(group.num_rows())
                    .unwrap_or_default()
                    .saturating_add(first);
            first = rows.end;
            let kept = rows.start.max(self.start)..rows.end.min(self.end);
            if kept.is_empty() {
                RowGroupAccess::Skip
            } else if kept == rows {
                RowGroupAccess::Scan
            } else {
                RowGroupAccess::Selection(row_selection(&rows, &kept))
            }
        });
        ParquetAccessPlan::new(access.collect())
    }

    /// The rows of an ordered stream that the range covers. Reading stops at the end of the range.
    pub(crate) fn filter_stream(
        self,
        batches: BoxStream<'static, Result<RecordBatch>>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let next = move |(mut batches, mut first): (BoxStream<'static, Result<RecordBatch>>, u64)| async move {
            while first < self.end {
                let Some(batch) = batches.try_next().await? else {
                    break;
                };
                let rows = first..first.saturating_add(batch.num_rows() as u64);
                first = rows.end;
                let kept = rows.start.max(self.start)..rows.end.min(self.end);
                if !kept.is_empty() {
                    let batch = batch.slice(len(rows.start..kept.start), len(kept));
                    return Ok(Some((batch, (batches, first))));
                }
            }
            Ok(None)
        };
        stream::try_unfold((batches, 0), next).boxed()
    }
}

fn row_selection(rows: &Range<u64>, kept: &Range<u64>) -> RowSelection {
    RowSelection::from(vec![
        RowSelector::skip(len(rows.start..kept.start)),
        RowSelector::select(len(kept.clone())),
        RowSelector::skip(len(kept.end..rows.end)),
    ])
}

fn len(rows: Range<u64>) -> usize {
    usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX)
}
