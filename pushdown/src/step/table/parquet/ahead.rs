//! Row groups one after the other, the next ones read while rows of the one before are taken.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use arrow_array::RecordBatch;
use futures::{Stream, StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use parquet::{arrow::arrow_reader::ParquetRecordBatchReader, errors::Result as ReadResult};

use super::fault;
use crate::Result;

/// Bytes that are read ahead of the row group whose rows are taken: on a link of 1 Gbit/s what passes in 30 ms, so that it has
/// something to carry while an answer is awaited and while rows are decoded.
const AHEAD_BYTES: u64 = 4 << 20;
/// The most row groups ahead, however small.
const MOST_AHEAD: usize = 8;

/// How many row groups are read ahead of the one whose rows are taken, by the bytes that are read of each. None where a limit
/// may end it all before they are wanted.
///
/// By the largest: nine large ones among a thousand small ones would be in memory together.
pub(in crate::step::table) fn ahead(groups: &[u64], limit: Option<usize>) -> usize {
    if limit.is_some() {
        return 0;
    }
    let largest = groups.iter().copied().max().unwrap_or_default();
    usize::try_from(AHEAD_BYTES / largest.max(1)).map_or(MOST_AHEAD, |ahead| ahead.clamp(1, MOST_AHEAD))
}

/// The rows of a row group, once what is read of it is here; none where nothing is.
pub(super) type Group = BoxFuture<'static, ReadResult<Option<ParquetRecordBatchReader>>>;

/// The record batches of row groups, in their order.
pub(super) struct Ahead<G> {
    groups: G,
    /// Row groups that are held beside the one whose rows are taken.
    most: usize,
    rows: Option<ParquetRecordBatchReader>,
    reading: FuturesOrdered<Group>,
    /// They are here, and wait for the rows before them.
    read: VecDeque<ReadResult<Option<ParquetRecordBatchReader>>>,
}

impl<G: Iterator<Item = Group>> Ahead<G> {
    /// Takes the rows of `groups`; at most so many are held beside the one whose rows are taken.
    pub(super) fn new(groups: G, most: usize) -> Self {
        Self {
            groups,
            most,
            rows: None,
            reading: FuturesOrdered::new(),
            read: VecDeque::new(),
        }
    }

    /// Goes on with the next row groups, as far as they come without waiting.
    fn advance(&mut self, task: &mut Context<'_>) {
        let most = self.most + usize::from(self.rows.is_none());
        loop {
            while self.reading.len() + self.read.len() < most
                && let Some(group) = self.groups.next()
            {
                self.reading.push_back(group);
            }
            match self.reading.poll_next_unpin(task) {
                Poll::Ready(Some(read)) => self.read.push_back(read),
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }
}

impl<G: Iterator<Item = Group> + Unpin> Stream for Ahead<G> {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(rows) = &mut self.rows {
                match rows.next() {
                    Some(batch) => {
                        self.advance(task);
                        return Poll::Ready(Some(batch.map_err(|error| fault::parquet(error.into()))));
                    }
                    None => self.rows = None,
                }
            }
            self.advance(task);
            match self.read.pop_front() {
                Some(Ok(rows)) => {
                    self.rows = rows;
                    // Before any of these rows is decoded: the link has something to carry meanwhile.
                    self.advance(task);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(fault::parquet(error)))),
                None if self.reading.is_empty() => return Poll::Ready(None),
                None => return Poll::Pending,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_is_bounded_by_the_largest_row_group() {
        assert_eq!(ahead(&[100], None), MOST_AHEAD);
        assert_eq!(ahead(&[AHEAD_BYTES / 3; 50], None), 3);
        assert_eq!(ahead(&[512 << 20], None), 1);
        let mixed = [vec![1000; 10_000], vec![512 << 20; 9]].concat();
        assert_eq!(ahead(&mixed, None), 1);
        assert_eq!(ahead(&[100], Some(5)), 0);
        assert_eq!(ahead(&[], None), MOST_AHEAD);
    }
}
