//! Reads an epoch of objects or members: its units are batches.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{BatchJob, BatchRoutes, Session, ShardStreams};
use crate::{
    batch::Batch,
    epoch::{
        Charge, Deliveries, PacedRead, ReadPlan, Units,
        order::{EpochOrder, SampleOrder, SampleRef},
        read_units,
    },
    error::Result,
    planning::EXPLORATION_BATCHES,
    stats::add,
};

/// The batches of an epoch.
#[derive(Debug)]
struct EpochBatches {
    session: Arc<Session>,
    plan: ReadPlan,
    order: Arc<EpochOrder>,
    /// Set in shard order.
    shard_streams: Option<Arc<ShardStreams>>,
}

/// A batch before it is read.
#[derive(Debug)]
struct BatchRequest {
    number: usize,
    samples: Vec<SampleRef>,
    routes: BatchRoutes,
}

/// Reads the batches of an epoch from the first poll on.
pub(super) fn read_epoch(runtime: &Handle, session: &Arc<Session>, plan: ReadPlan) -> Deliveries<Batch> {
    read_units(runtime, &plan, EpochBatches::prepare(Arc::clone(session), plan))
}

impl EpochBatches {
    /// Computes the order of the epoch.
    async fn prepare(session: Arc<Session>, plan: ReadPlan) -> Result<Self> {
        let objects = session.objects.clone();
        let ReadPlan {
            shuffle_seed: seed,
            order,
            epoch,
            ..
        } = plan;
        let share = plan.share(objects.len());
        let order = session
            .cpu
            .run(move || match order {
                SampleOrder::Global => EpochOrder::new(share, seed, epoch),
                SampleOrder::Shards { buffer } => {
                    let shards = (0..objects.len()).map(|index| objects.shard_number(index));
                    EpochOrder::by_shards(shards, buffer, share, seed, epoch)
                }
            })
            .await?;
        let order = Arc::new(order);
        let shard_streams = ShardStreams::of_epoch(&session, &plan, &order).await?;
        let skipped = plan.start.saturating_mul(plan.batch_size).min(order.len());
        add(&session.counters.skipped, skipped as u64);
        Ok(Self {
            session,
            plan,
            order,
            shard_streams,
        })
    }

    /// Number of the sample after those of a batch, among the samples of this reader's rank.
    fn end(&self, number: usize) -> usize {
        let first = number * self.plan.batch_size;
        self.order.len().min(first + self.plan.batch_size)
    }
}

impl Units for EpochBatches {
    type Request = BatchRequest;
    type Arrived = Batch;

    fn numbers(&self) -> impl Iterator<Item = usize> + Send {
        self.plan.reader_share(self.session.objects.len()).batch_numbers()
    }

    async fn until_planned(&self, number: usize) {
        if let Some(adapter) = &self.session.adapter
            && number >= self.plan.start + EXPLORATION_BATCHES * self.plan.worker.count
        {
            adapter.wait_for_plan().await;
        }
    }

    fn request(&self, number: usize) -> BatchRequest {
        let first = number * self.plan.batch_size;
        let samples: Vec<_> = (first..self.end(number))
            .map(|nth| self.order.sample(nth))
            .collect();
        let has_arrived = |sample: &SampleRef| {
            let streams = self.shard_streams.as_ref();
            streams.is_some_and(|streams| streams.have_sample(&self.session.objects, number, sample.index))
        };
        BatchRequest {
            routes: self.session.routes(&samples, has_arrived),
            number,
            samples,
        }
    }

    fn expected_bytes(&self, request: &BatchRequest) -> u64 {
        self.session.expected_bytes(&request.samples, &request.routes)
    }

    fn read(
        self: Arc<Self>,
        request: BatchRequest,
        paced: PacedRead,
        charge: Arc<Charge>,
    ) -> impl Future<Output = Result<Batch>> + Send + 'static {
        let BatchRequest {
            number,
            samples,
            routes,
        } = request;
        let job = BatchJob {
            number,
            samples_left: self.order.len() - self.end(number),
            samples,
            epoch: self.plan.epoch,
            routes,
            charge: Some(charge),
            shard_streams: self.shard_streams.clone(),
            progress: Arc::clone(paced.progress()),
        };
        async move {
            let read = self.session.read(&job).await;
            drop(paced);
            read
        }
    }
}
