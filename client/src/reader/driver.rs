//! Prefetches batches: a task that starts one task per batch, in order, while the budget has room.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

use super::ReadPlan;
use crate::{
    batch::Batch,
    budget::{Budget, Charge},
    error::{Error, Result},
    order::{EpochOrder, SampleOrder, SampleRef},
    planning::{EXPLORATION_BATCHES, Pacer},
    session::{BatchJob, Session, ShardStreams},
    stats::add,
};

/// Batches in flight, in order. Dropping it cancels them.
#[derive(Debug)]
pub(super) struct Driver {
    deliveries: mpsc::UnboundedReceiver<Delivery>,
    task: AbortOnDropHandle<Result<()>>,
}

/// A batch in flight. It counts against the budget until it is handed over.
#[derive(Debug)]
pub(super) struct Delivery {
    task: AbortOnDropHandle<Result<Batch>>,
    _charge: Arc<Charge>,
}

impl Driver {
    pub(super) fn start(runtime: &Handle, session: Arc<Session>, plan: ReadPlan) -> Self {
        // The budget bounds the number of entries.
        let (sender, deliveries) = mpsc::unbounded_channel();
        let task = AbortOnDropHandle::new(runtime.spawn(async move { drive(session, plan, sender).await }));
        Self { deliveries, task }
    }

    /// The next batch in flight; `None` after the last one.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.deliveries.poll_recv(context)
    }

    /// Why there is no other batch in flight: the epoch is over, or preparing the next batch failed.
    pub(super) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let done = ready!(Pin::new(&mut self.task).poll(context));
        let failed = |error| Err(Error::internal("the task that starts batches failed").with_source(error));
        Poll::Ready(done.unwrap_or_else(failed))
    }
}

impl Future for Delivery {
    type Output = Result<Batch>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = ready!(Pin::new(&mut self.task).poll(context));
        let failed = |error| Err(Error::internal("the task of a batch failed").with_source(error));
        Poll::Ready(done.unwrap_or_else(failed))
    }
}

/// Starts batches until the last one, or until nobody takes them.
async fn drive(session: Arc<Session>, plan: ReadPlan, sender: mpsc::UnboundedSender<Delivery>) -> Result<()> {
    let objects = session.objects.clone();
    let ReadPlan {
        shuffle_seed: seed,
        order,
        epoch,
        batch_size,
        worker,
        ..
    } = plan;
    let reader_share = plan.reader_share(objects.len());
    let share = reader_share.rank();
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
    let samples = order.len();
    add(
        &session.counters.skipped,
        plan.start.saturating_mul(batch_size).min(samples) as u64,
    );
    let budget = Budget::new(plan.prefetch_bytes);
    let requests = Arc::new(Semaphore::new(plan.requests));
    let pacer = Arc::new(Pacer::default());
    for number in reader_share.batch_numbers() {
        if let Some(adapter) = &session.adapter
            && number >= plan.start + EXPLORATION_BATCHES * worker.count
        {
            adapter.wait_for_plan().await;
        }
        let first = number * batch_size;
        let batch_samples: Vec<_> = (first..samples.min(first + batch_size))
            .map(|nth| order.sample(nth))
            .collect();
        // The same order of acquisition for every batch: a later batch never holds what an earlier one still needs.
        let closed = |error| Error::internal("the permits of batches are closed").with_source(error);
        let request = Arc::clone(&requests).acquire_owned().await.map_err(closed)?;
        // Uses the plan that is in force after the wait.
        let has_arrived = |sample: &SampleRef| {
            let have =
                |streams: &Arc<ShardStreams>| streams.have_sample(&session.objects, number, sample.index);
            shard_streams.as_ref().is_some_and(have)
        };
        let routes = session.routes(&batch_samples, has_arrived);
        let expected = session.expected_bytes(&batch_samples, &routes);
        let charge = Arc::new(budget.admit(number, expected).await);
        let paced = pacer.begin();
        let job = BatchJob {
            number,
            samples_left: samples.saturating_sub(first + batch_samples.len()),
            samples: batch_samples,
            epoch,
            routes,
            charge: Some(Arc::clone(&charge)),
            shard_streams: shard_streams.clone(),
            progress: Arc::clone(paced.progress()),
        };
        let session = Arc::clone(&session);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let read = session.read(&job).await;
            drop((request, paced));
            read
        }));
        if sender
            .send(Delivery {
                task,
                _charge: charge,
            })
            .is_err()
        {
            return Ok(());
        }
        pacer.wait_for_next().await;
    }
    Ok(())
}
