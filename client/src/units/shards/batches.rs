//! Makes batches: draws samples from the shuffle buffer, and runs the pipeline on them.

use std::{slice, sync::Arc};

use tokio::runtime::Handle;

use super::{
    ShardSession,
    place::ReaderPlace,
    row::{BatchContext, PendingRow, ROW_BYTES},
    sample::StoredSample,
    sequence::{Next, ShardSequence},
    shuffle::ShuffleBuffer,
    state::{Checkpoint, Progress, SampleId, ShardTask},
};
use crate::{
    batch::Batch,
    epoch::{
        Budget, Deliveries, DeliverySender, ReadPlan,
        order::{BufferDraws, shard_order},
    },
    error::{Error, Result},
    shards::{warn_of_left_out, warn_of_skipped},
};

/// What is read of an epoch.
#[derive(Debug)]
pub(super) struct EpochRead {
    pub(super) session: Arc<ShardSession>,
    pub(super) plan: ReadPlan,
    pub(super) place: ReaderPlace,
    /// The most samples in the shuffle buffer.
    pub(super) buffer: usize,
    pub(super) checkpoint: Checkpoint,
}

/// A batch, and how far the reader is after it.
#[derive(Debug)]
pub(super) struct DeliveredBatch {
    pub(super) batch: Batch,
    pub(super) progress: Progress,
}

impl EpochRead {
    /// Starts reading. Batches are prefetched; dropping the stream cancels everything in flight.
    pub(super) fn start(self, runtime: &Handle) -> Deliveries<DeliveredBatch> {
        Deliveries::start(runtime, |deliveries| self.drive(deliveries))
    }

    /// Starts batches until the last one, or until nobody takes them.
    async fn drive(self, deliveries: DeliverySender<DeliveredBatch>) -> Result<()> {
        let Self { session, plan, .. } = &self;
        let (place, epoch, seed) = (self.place, plan.epoch, plan.shuffle_seed);
        let is_whole = self.is_whole_epoch();
        let progress = self.checkpoint.progress.clone();
        let checkpoint = self.checkpoint.clone();
        let shards = u32::try_from(session.shards.len()).unwrap_or(u32::MAX);
        let (order, tasks) = session
            .cpu
            .run(move || {
                let tasks: Vec<ShardTask> = checkpoint.tasks(place).collect();
                (shard_order(shards, seed, epoch), tasks)
            })
            .await?;
        // The budget is for both: samples that arrive before they are taken, and batches.
        let ahead_bytes = plan.prefetch_bytes / 4;
        let budget = Budget::new(plan.prefetch_bytes - ahead_bytes);
        // There are at most 2^20 readers.
        let reader = u32::try_from(place.number()).unwrap_or(u32::MAX);
        let draws = BufferDraws::new(seed, epoch, reader, progress.words);
        let mut samples = Shuffled {
            buffer: ShuffleBuffer::new(self.buffer, draws, progress),
            sequence: ShardSequence::new(
                Arc::clone(session),
                order.clone(),
                tasks,
                (plan.requests, ahead_bytes),
            ),
        };
        let mut left = plan.limit.unwrap_or(usize::MAX);
        for number in 0.. {
            let position = samples.buffer.samples();
            let drawn = samples.draw(plan.batch_size.min(left)).await?;
            if drawn.is_empty() {
                break;
            }
            left -= drawn.len();
            // The state after the last batch says that nothing is left. An error belongs to the next batch.
            let mut progress = samples.buffer.progress();
            let has_more = samples.has_more().await;
            if matches!(has_more, Ok(false)) {
                progress = samples.buffer.progress();
            }
            let charge = Arc::new(budget.admit(number, session.expected_bytes(&drawn)).await);
            let batch = BatchContext {
                session,
                number,
                epoch,
                charge: &charge,
            };
            let rows = (position..).zip(drawn).map(|(position, (id, sample))| {
                let index = order.get(id.position as usize).copied().unwrap_or_default();
                PendingRow::start(&batch, position, index as usize, sample)
            });
            let rows: Vec<PendingRow> = rows.collect();
            if !deliveries.send(charge, finish(number, rows, progress)) {
                return Ok(());
            }
            has_more?;
        }
        session.check_groups(&samples, is_whole)
    }

    /// Whether this reader alone reads all samples of the epoch.
    fn is_whole_epoch(&self) -> bool {
        let shards = u32::try_from(self.session.shards.len()).unwrap_or(u32::MAX);
        let is_from_start = self.checkpoint == Checkpoint::of_epoch(shards);
        self.place.readers() == 1 && is_from_start && self.plan.limit.is_none()
    }
}

/// The samples of shards, shuffled.
#[derive(Debug)]
struct Shuffled {
    buffer: ShuffleBuffer<StoredSample>,
    sequence: ShardSequence,
}

impl Shuffled {
    /// The next `count` samples of the order, or those that are left.
    async fn draw(&mut self, count: usize) -> Result<Vec<(SampleId, StoredSample)>> {
        let mut drawn = Vec::new();
        while drawn.len() < count {
            self.fill().await?;
            match self.buffer.draw() {
                Some(sample) => drawn.push(sample),
                None => break,
            }
        }
        Ok(drawn)
    }

    /// Whether a sample is left. Waits for the next one only if the buffer is empty.
    async fn has_more(&mut self) -> Result<bool> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(!self.buffer.is_empty())
    }

    /// Fills the buffer, as far as there are samples.
    async fn fill(&mut self) -> Result<()> {
        while self.buffer.has_room() {
            match self.sequence.next().await? {
                Some(Next::Sample { task, arrived }) => {
                    if let Some(etag) = &arrived.etag {
                        self.buffer.set_etag(arrived.id.position, etag);
                    }
                    let bytes = arrived.sample.bytes();
                    self.buffer.add(task, arrived.id, bytes, arrived.sample);
                }
                Some(Next::EndOfShard { task }) => self.buffer.end_shard(task),
                None if self.buffer.is_missing_samples() => {
                    return Err(Error::internal(
                        "samples of the shuffle buffer did not arrive again",
                    ));
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

impl ShardSession {
    /// Bytes of samples in memory: of each the maximum of its size as it is stored and after the pipeline.
    fn expected_bytes(&self, samples: &[(SampleId, StoredSample)]) -> u64 {
        let value = self.pipeline.kinds().last().and_then(pushdown::Kind::bytes);
        let bytes = samples.iter().map(|(_, sample)| {
            let value = value.filter(|_| sample.value.is_ok()).unwrap_or_default();
            sample.bytes().max(value).saturating_add(ROW_BYTES)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// Logs what is no sample. Columns that no sample has are wrong, which is certain at the end of a whole epoch.
    fn check_groups(&self, samples: &Shuffled, is_whole: bool) -> Result<()> {
        let counts = samples.sequence.counts();
        let (bucket, values) = (self.shards.bucket(), self.columns.values());
        if samples.buffer.samples() == 0 && counts.skipped > 0 {
            return Err(counts.extensions.missing(bucket, values));
        }
        warn_of_skipped(bucket, counts.samples, counts.skipped, values);
        warn_of_left_out(bucket, &counts.left_out);
        let columns = self.columns.further().iter().zip(&counts.has_column);
        let missing = columns.filter(|(_, has)| !**has).map(|(column, _)| column);
        for column in missing.filter(|_| counts.samples > 0) {
            let error = counts.extensions.missing(bucket, slice::from_ref(column));
            if is_whole && counts.broken_shards == 0 {
                return Err(error);
            }
            tracing::warn!("of what this reader has read, {error}");
        }
        Ok(())
    }
}

/// Waits until the steps of all rows have run.
async fn finish(number: usize, pending: Vec<PendingRow>, progress: Progress) -> Result<DeliveredBatch> {
    let mut rows = Vec::with_capacity(pending.len());
    for row in pending {
        rows.push(row.finish().await);
    }
    let batch = Batch::new(number, rows);
    Ok(DeliveredBatch { batch, progress })
}
