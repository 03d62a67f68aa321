//! The rows of an object between two places.

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

use crate::{
    Result,
    pipeline::{FromValue, Value},
};

/// The places of the first row and of the one behind the last, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Between {
    start: u64,
    end: u64,
}

impl FromValue for Between {
    fn from_value(value: &Value) -> Result<Self, String> {
        let place = |value: &Value| match value {
            Value::Int(place) => u64::try_from(*place).ok(),
            _ => None,
        };
        let places = match value {
            Value::List(places) => places.as_slice(),
            _ => &[],
        };
        match places {
            [start, end] => match (place(start), place(end)) {
                (Some(start), Some(end)) if start <= end => Some(Self { start, end }),
                _ => None,
            },
            _ => None,
        }
        .ok_or_else(|| "two places that ascend, [from, to]".to_owned())
    }
}

impl From<Range<u64>> for Between {
    fn from(rows: Range<u64>) -> Self {
        Self {
            start: rows.start,
            end: rows.end.max(rows.start),
        }
    }
}

impl Between {
    /// What stands for it in a pipeline.
    pub(super) fn value(self) -> Value {
        let place = |place| Value::Int(i64::try_from(place).unwrap_or(i64::MAX));
        Value::List(vec![place(self.start), place(self.end)])
    }

    /// The place of the first row.
    pub(super) const fn start(self) -> u64 {
        self.start
    }

    /// What of a file's row groups lies between.
    pub(super) fn access(self, groups: &[RowGroupMetaData]) -> ParquetAccessPlan {
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
                RowGroupAccess::Selection(selection(&rows, &kept))
            }
        });
        ParquetAccessPlan::new(access.collect())
    }

    /// What of rows that come in order lies between; what comes behind is not read.
    pub(super) fn cut(
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
                    let batch = batch.slice(count(rows.start..kept.start), count(kept));
                    return Ok(Some((batch, (batches, first))));
                }
            }
            Ok(None)
        };
        stream::try_unfold((batches, 0), next).boxed()
    }
}

fn selection(rows: &Range<u64>, kept: &Range<u64>) -> RowSelection {
    RowSelection::from(vec![
        RowSelector::skip(count(rows.start..kept.start)),
        RowSelector::select(count(kept.clone())),
        RowSelector::skip(count(kept.end..rows.end)),
    ])
}

fn count(rows: Range<u64>) -> usize {
    usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX)
}
