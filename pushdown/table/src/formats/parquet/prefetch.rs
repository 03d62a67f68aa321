//! Prefetch of row groups: the next ones are read while the rows of the current one are decoded.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use arrow_array::RecordBatch;
use futures::{Stream, StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use parquet::{arrow::arrow_reader::ParquetRecordBatchReader, errors::Result as ReadResult};

use super::fault;
use pushdown_core::Result;

/// Bytes to read ahead of the row group being decoded: 30 ms of a link of 1 Gbit/s, so that the link stays busy during
/// round trips and while rows are decoded.
const PREFETCH_BYTES: u64 = 4 << 20;
/// Maximum number of row groups to read ahead, even if they are small.
const MAX_ROW_GROUPS_AHEAD: usize = 8;

/// Number of row groups to read ahead of the one being decoded, given the bytes to read of each row group. Zero with a
/// `limit`, since the query may end before it needs them.
///
/// The largest row group decides: nine large ones among a thousand small ones would be in memory at the same time.
pub(crate) fn row_groups_ahead(row_group_bytes: &[u64], limit: Option<usize>) -> usize {
    if limit.is_some() {
        return 0;
    }
    let largest = row_group_bytes.iter().copied().max().unwrap_or_default();
    usize::try_from(PREFETCH_BYTES / largest.max(1)).map_or(MAX_ROW_GROUPS_AHEAD, |groups| {
        groups.clamp(1, MAX_ROW_GROUPS_AHEAD)
    })
}

/// A read of a row group. It resolves to a decoder of its rows, or to `None` if no row is selected.
pub(super) type PendingRowGroup = BoxFuture<'static, ReadResult<Option<ParquetRecordBatchReader>>>;

/// The record batches of row groups, in the order of the row groups.
pub(super) struct Prefetch<G> {
    groups: G,
    max_ahead: usize,
    /// The row group being decoded.
    current: Option<ParquetRecordBatchReader>,
    in_flight: FuturesOrdered<PendingRowGroup>,
    /// Row groups whose bytes have been read.
    ready: VecDeque<ReadResult<Option<ParquetRecordBatchReader>>>,
}

impl<G: Iterator<Item = PendingRowGroup>> Prefetch<G> {
    /// Reads `groups`. At most `max_ahead` of them are in memory in addition to the one being decoded.
    pub(super) fn new(groups: G, max_ahead: usize) -> Self {
        Self {
            groups,
            max_ahead,
            current: None,
            in_flight: FuturesOrdered::new(),
            ready: VecDeque::new(),
        }
    }

    /// Starts and polls reads of the next row groups, without waiting.
    fn advance(&mut self, task: &mut Context<'_>) {
        let max_groups = self.max_ahead + usize::from(self.current.is_none());
        loop {
            while self.in_flight.len() + self.ready.len() < max_groups
                && let Some(group) = self.groups.next()
            {
                self.in_flight.push_back(group);
            }
            match self.in_flight.poll_next_unpin(task) {
                Poll::Ready(Some(group)) => self.ready.push_back(group),
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }
}

impl<G: Iterator<Item = PendingRowGroup> + Unpin> Stream for Prefetch<G> {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(current) = &mut self.current {
                match current.next() {
                    Some(batch) => {
                        self.advance(task);
                        return Poll::Ready(Some(batch.map_err(|error| fault::parquet(error.into()))));
                    }
                    None => self.current = None,
                }
            }
            self.advance(task);
            match self.ready.pop_front() {
                Some(Ok(rows)) => {
                    self.current = rows;
                    // Reads start before decoding does, so that the link is busy during decoding.
                    self.advance(task);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(fault::parquet(error)))),
                None if self.in_flight.is_empty() => return Poll::Ready(None),
                None => return Poll::Pending,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_row_group_bounds_the_prefetch() {
        assert_eq!(row_groups_ahead(&[100], None), MAX_ROW_GROUPS_AHEAD);
        assert_eq!(row_groups_ahead(&[PREFETCH_BYTES / 3; 50], None), 3);
        assert_eq!(row_groups_ahead(&[512 << 20], None), 1);
        let mixed = [vec![1000; 10_000], vec![512 << 20; 9]].concat();
        assert_eq!(row_groups_ahead(&mixed, None), 1);
        assert_eq!(row_groups_ahead(&[100], Some(5)), 0);
        assert_eq!(row_groups_ahead(&[], None), MAX_ROW_GROUPS_AHEAD);
    }
}
