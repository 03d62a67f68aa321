//! Samples of tar shards without an index: whole shards, streamed in the order of the epoch.

mod batches;
mod group;
mod left;
mod place;
mod row;
mod sample;
mod sequence;
mod session;
mod shuffle;
mod source;
mod state;
mod unpack;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::Stream;
use pushdown::Pipeline;
use tokio::runtime::Handle;

use crate::{
    batch::Batch,
    epoch::{Deliveries, EpochStream, Promises, ReadPlan, SavedState, hand_over},
    error::Result,
    monitor::ReaderMonitor,
    objects::Objects,
    stats::Stats,
};
use batches::{DeliveredBatch, EpochRead};
use place::ReaderPlace;
pub(crate) use session::ShardSession;
use state::Checkpoint;
pub use state::ShardsRead;

/// What a reader of shards without an index promises.
pub(crate) const PROMISES: Promises = Promises {
    is_counted: false,
    state: SavedState::ShardsRead,
};

/// Reads the samples of tar shards in shard order, each exactly once, and runs the whole pipeline on this host. It needs no index, and
/// shards may be compressed: keys end in `.tar`, `.tar.gz`, `.tgz` or `.tar.zst`. What the first bytes of a shard say counts, if it is another
/// compression.
///
/// Each shard is read by one GET, and continued where it broke off. The members of a group must follow each other in the shard. Samples,
/// their values and their columns are those of an [index](crate::shards::ShardIndex::samples), and so are the draws of random steps. Members are
/// computed at a gateway only with an index, so the endpoint may be any store.
///
/// **Order.** With a seed, shards are shuffled as a whole, and samples by a buffer: it is [`SampleOrder::Shards`], for a single reader exactly
/// that of an indexed reader of the same shards (as long as the buffer has less than 1 GiB). Shards are dealt out one by one to ranks, and to
/// the [workers](crate::reader::PushdownReaderBuilder::worker) of a rank; each reader has one buffer. So readers have
/// different numbers of samples and batches, which nobody knows in advance, and there should be several shards for each.
///
/// **Rows.** [`Row::position`](crate::reader::Row::position) is the number of the sample among those of this reader in the epoch, also after a resume
/// in the same world. [`Row::index`](crate::reader::Row::index) is the index of its shard in [`shards`](Self::shards). A member that cannot be
/// read is a row with its name. A shard that cannot be read further is one row, without a member, for all samples that are left of it.
///
/// **Resume.** [`shards_read`](Self::shards_read) is the state after the last batch, from which this reader goes on in the same order, and any
/// other world with the samples that are left. See [`ShardsRead`].
///
/// **Memory.** Beside the prefetch budget and a batch, the samples in the buffer as they are stored: at most 1 GiB and one sample.
///
/// It is a [`Stream`] of batches. Shards and batches are prefetched, from the first poll on. After an error the stream ends. Dropping the
/// reader cancels everything in flight.
///
/// [`SampleOrder::Shards`]: crate::reader::SampleOrder::Shards
#[derive(Debug)]
pub struct ShardReader {
    session: Arc<ShardSession>,
    plan: ReadPlan,
    place: ReaderPlace,
    /// The most samples in the shuffle buffer.
    buffer: usize,
    /// After the last batch that was handed over.
    checkpoint: Checkpoint,
    runtime: Handle,
    stream: EpochStream<Deliveries<DeliveredBatch>>,
}

impl ShardReader {
    /// A reader that goes on from its state.
    pub(crate) fn new(session: ShardSession, plan: ReadPlan, state: ShardsRead) -> Self {
        let ShardsRead {
            place,
            buffer,
            checkpoint,
        } = state;
        if session.shards.len() < place.readers() {
            tracing::warn!(
                "{} shards are dealt out to {} readers, of which some have none",
                session.shards.len(),
                place.readers()
            );
        }
        Self {
            checkpoint,
            session: Arc::new(session),
            plan,
            place,
            buffer,
            runtime: Handle::current(),
            stream: EpochStream::new(),
        }
    }

    /// The shards of the data set, over all ranks.
    pub fn shards(&self) -> &Objects {
        &self.session.shards
    }

    /// Extensions of the further columns of [`Row::columns`](crate::reader::Row::columns), in lower case.
    pub fn columns(&self) -> &[String] {
        self.session.columns.further()
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.session.pipeline
    }

    /// What this reader has read of the epoch, up to the last batch that was handed over.
    pub fn shards_read(&self) -> ShardsRead {
        ShardsRead::new(self.place, self.buffer, self.checkpoint.clone())
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.monitor().stats()
    }

    /// Observes the reader while it reads, also from other threads.
    pub fn monitor(&self) -> ReaderMonitor {
        ReaderMonitor::new(Arc::<ShardSession>::clone(&self.session))
    }

    /// Starts another epoch from its first batch. Drops what was prefetched.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        let shards = u32::try_from(self.session.shards.len()).unwrap_or(u32::MAX);
        self.checkpoint = Checkpoint::of_epoch(shards);
        self.stream.restart();
    }

    /// Cancels everything in flight and waits until the reader's threads have ended; a step that runs is finished first.
    /// Dropping the reader does not wait.
    pub async fn close(self) {
        drop(self.stream);
        self.session.cpu.close().await;
    }

    fn start(&self) -> Deliveries<DeliveredBatch> {
        let read = EpochRead {
            session: Arc::clone(&self.session),
            plan: self.plan,
            place: self.place,
            buffer: self.buffer,
            checkpoint: self.checkpoint.clone(),
        };
        read.start(&self.runtime)
    }
}

impl Stream for ShardReader {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stream.is_idle() {
            let batches = self.start();
            self.stream.begin(batches);
        }
        let Self {
            session,
            stream,
            checkpoint,
            ..
        } = &mut *self;
        stream.poll_next(context, &session.counters, |delivered: DeliveredBatch| {
            let (policy, bucket) = (&session.error_policy, session.shards.bucket());
            let batch = hand_over(delivered.batch, policy, bucket, &session.counters)?;
            // The state after this batch.
            checkpoint.progress = delivered.progress;
            Ok(batch)
        })
    }
}

#[cfg(test)]
mod tests;
