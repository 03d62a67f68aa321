//! Row groups one after the other, the next one read while rows of the one before are taken.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use arrow_array::RecordBatch;
use futures::{FutureExt as _, Stream, future::BoxFuture};
use parquet::{
    arrow::{arrow_reader::ParquetRecordBatchReader, async_reader::ParquetRecordBatchStream},
    errors::{ParquetError, Result as ReadResult},
};

use super::{fault, reader::Ranges};
use crate::Result;

type Groups = Box<ParquetRecordBatchStream<Ranges>>;

/// The record batches of a file. Of row groups no more than two are held.
pub(super) struct Ahead {
    rows: Option<ParquetRecordBatchReader>,
    next: Next,
    /// Whether to read ahead at all.
    eager: bool,
}

enum Next {
    Idle(Groups),
    Reading(BoxFuture<'static, (Groups, ReadResult<Option<ParquetRecordBatchReader>>)>),
    /// It is there, and waits for the rows before it.
    Read(Groups, ParquetRecordBatchReader),
    /// It cannot be read, which is told behind the rows before it.
    Failed(ParquetError),
    Ended,
}

impl Ahead {
    /// Reads what `groups` has; ahead only where all of it is wanted, as far as is known.
    pub(super) fn new(groups: ParquetRecordBatchStream<Ranges>, eager: bool) -> Self {
        Self {
            rows: None,
            next: Next::Idle(Box::new(groups)),
            eager,
        }
    }

    /// Goes on with the next row group, as far as it comes without waiting.
    fn advance(&mut self, task: &mut Context<'_>) {
        loop {
            self.next = match std::mem::replace(&mut self.next, Next::Ended) {
                Next::Idle(mut groups) => Next::Reading(
                    async move {
                        let rows = groups.next_row_group().await;
                        (groups, rows)
                    }
                    .boxed(),
                ),
                Next::Reading(mut reading) => match reading.poll_unpin(task) {
                    Poll::Pending => {
                        self.next = Next::Reading(reading);
                        return;
                    }
                    Poll::Ready((groups, Ok(Some(rows)))) => Next::Read(groups, rows),
                    Poll::Ready((_, Ok(None))) => Next::Ended,
                    Poll::Ready((_, Err(error))) => Next::Failed(error),
                },
                there @ (Next::Read(..) | Next::Failed(_) | Next::Ended) => {
                    self.next = there;
                    return;
                }
            };
        }
    }
}

impl Stream for Ahead {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(rows) = &mut self.rows {
                match rows.next() {
                    Some(batch) => {
                        if self.eager {
                            self.advance(task);
                        }
                        return Poll::Ready(Some(batch.map_err(|error| fault::parquet(error.into()))));
                    }
                    None => self.rows = None,
                }
            }
            self.advance(task);
            match std::mem::replace(&mut self.next, Next::Ended) {
                Next::Read(groups, rows) => {
                    self.rows = Some(rows);
                    self.next = Next::Idle(groups);
                    // Before any of these rows is decoded: nothing is on its way now.
                    if self.eager {
                        self.advance(task);
                    }
                }
                Next::Failed(error) => return Poll::Ready(Some(Err(fault::parquet(error)))),
                Next::Ended => return Poll::Ready(None),
                pending => {
                    self.next = pending;
                    return Poll::Pending;
                }
            }
        }
    }
}
