//! Rows of Parquet objects as samples: record batches in the order of the epoch.

mod batches;
mod build;
mod order;
mod outgrown;
mod read;
mod space;

use std::{
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    budget::Budget,
    error::Result,
    reader::Plan,
    stats::{Stats, add},
    store::Object,
};
use batches::Started;
pub(crate) use build::Settings;
use order::{EpochOrder, Stretch};
use read::Rows;
pub(crate) use read::Source;

/// Reads rows of Parquet objects in the order of an epoch, each exactly once, as Arrow record batches.
///
/// The samples are the rows of all objects that fulfil the condition of the pipeline's `select`, which is found out once, when
/// the reader is built: every rank has the same counts. With a seed, row groups come in a shuffled order, and the rows of each
/// one are shuffled; each rank has a stretch of that order, so that a row group is read by one rank, at the ends by two.
///
/// It is a [`Stream`] of batches; row groups are fetched ahead, within the prefetch budget. After an error it ends; a reader
/// built with [`start_at`](crate::PushdownReaderBuilder::start_at) goes on where it ended.
#[derive(Debug)]
pub struct TableReader {
    rows: Arc<Rows>,
    plan: Plan,
    state: State,
    waiting_since: Option<Instant>,
}

enum State {
    Idle,
    Reading(BoxStream<'static, Result<TableBatch>>),
    Ended,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Reading(_) => "Reading",
            Self::Ended => "Ended",
        })
    }
}

/// Rows that follow each other in the order of the epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct TableBatch {
    /// Number of the batch among those of this shard, from 0: what `start_at` takes to resume.
    pub number: usize,
    /// The rows, after the whole pipeline.
    pub rows: RecordBatch,
    /// Where each row comes from.
    pub ids: Vec<RowId>,
}

/// Where a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId {
    /// Index of the object in the data set: [`TableReader::objects`] has its key.
    pub object: usize,
    /// The row's place in the object, from 0.
    pub row: u64,
}

// === impl TableReader ===

impl TableReader {
    /// Rows of an epoch that fall to this reader's shard, at most the [limit](crate::PushdownReaderBuilder::limit).
    pub fn len(&self) -> u64 {
        let share = self.share();
        share.end - share.start
    }

    /// The positions that this reader reads, in the order of the rows of all shards.
    fn share(&self) -> Range<u64> {
        let shard = self.plan.shard.stretch_of(self.rows.space.len());
        let limit = self.plan.limit.map_or(u64::MAX, |limit| limit as u64);
        shard.start..shard.end.min(shard.start.saturating_add(limit))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Batches of an epoch for this shard; the last one may be short.
    pub fn batches(&self) -> u64 {
        self.len().div_ceil(self.plan.batch_size as u64)
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.rows.schema
    }

    /// The whole data set, all shards'.
    pub fn objects(&self) -> &[Object] {
        &self.rows.source.objects
    }

    /// How many steps the gateway runs; 0 where the columns are read as they are stored, and everything runs here.
    pub fn stage(&self) -> usize {
        self.rows.stage
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        self.rows
            .source
            .counters
            .snapshot(self.rows.source.store.traffic())
    }

    /// Starts another epoch from its first batch. What was fetched ahead is dropped.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        self.plan.start = 0;
        self.state = State::Idle;
    }

    fn start(&self) -> BoxStream<'static, Result<TableBatch>> {
        let Plan {
            batch_size,
            shuffle_seed,
            epoch,
            start: first,
            prefetch_bytes,
            requests,
            ..
        } = self.plan;
        let order = EpochOrder::new(shuffle_seed, epoch);
        let mut share = self.share();
        let passed = (first as u64).saturating_mul(batch_size as u64);
        let skipped = share.start.saturating_add(passed).min(share.end);
        add(&self.rows.source.counters.skipped, skipped - share.start);
        share.start = skipped;
        let stretches = order.stretches(&self.rows.space, share);
        let budget = Budget::new(prefetch_bytes);
        let rows = Arc::clone(&self.rows);
        let start = move |(number, stretch): (usize, Stretch)| {
            let (budget, rows) = (Arc::clone(&budget), Arc::clone(&rows));
            async move {
                let charge = budget.admit(number, rows.space.bytes_of(stretch.unit)).await;
                let reading = async move { rows.read(&stretch, order, epoch).await };
                Started::new(AbortOnDropHandle::new(tokio::spawn(reading)), charge)
            }
        };
        let started = stream::iter(stretches.into_iter().enumerate()).then(start);
        let parts = started.map(Started::part).buffered(requests).boxed();
        batches::of(parts, SchemaRef::clone(&self.rows.schema), batch_size, first)
    }
}

impl Stream for TableReader {
    type Item = Result<TableBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if matches!(this.state, State::Idle) {
            this.state = State::Reading(this.start());
        }
        let State::Reading(batches) = &mut this.state else {
            return Poll::Ready(None);
        };
        let polled = batches.poll_next_unpin(context);
        match &polled {
            Poll::Pending => {
                this.waiting_since.get_or_insert_with(Instant::now);
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(batch))) => add(&this.rows.source.counters.samples, batch.ids.len() as u64),
            Poll::Ready(Some(Err(_)) | None) => this.state = State::Ended,
        }
        if let Some(since) = this.waiting_since.take() {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            add(&this.rows.source.counters.waiting_nanos, nanos);
        }
        polled
    }
}
