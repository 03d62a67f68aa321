//! Fetches batches ahead: a task that starts one task per batch, in order, while there is room.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc},
    task::JoinError,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Plan, pace::Pace};
use crate::{
    adapt::EXPLORING,
    batch::Batch,
    budget::{Budget, Charge},
    error::Result,
    order::EpochOrder,
    session::{Job, Progress, Session},
    stats::add,
};

/// Batches on their way, in order. Dropping it ends them all.
#[derive(Debug)]
pub(super) struct Driver {
    deliveries: mpsc::UnboundedReceiver<Delivery>,
    _task: AbortOnDropHandle<()>,
}

/// A batch on its way. It counts against the budget until it is handed over.
#[derive(Debug)]
pub(super) struct Delivery {
    task: AbortOnDropHandle<Result<Batch>>,
    _charge: Arc<Charge>,
}

impl Driver {
    pub(super) fn start(runtime: &Handle, session: Arc<Session>, plan: Plan) -> Self {
        // As many entries as the budget admits.
        let (sender, deliveries) = mpsc::unbounded_channel();
        let task = AbortOnDropHandle::new(runtime.spawn(async move { drive(session, plan, sender).await }));
        Self {
            deliveries,
            _task: task,
        }
    }

    /// The next batch on its way; `None` after the last one.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.deliveries.poll_recv(context)
    }
}

impl Future for Delivery {
    type Output = Result<Result<Batch>, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context)
    }
}

async fn drive(session: Arc<Session>, plan: Plan, sender: mpsc::UnboundedSender<Delivery>) {
    let objects = session.objects.len();
    let Plan {
        shard,
        shuffle_seed,
        epoch,
        batch_size,
        ..
    } = plan;
    let shuffled = session
        .cpu
        .run(move || EpochOrder::new(objects, shard, shuffle_seed, epoch))
        .await;
    // Without an order there is nothing to hand over; it can fail only by a panic.
    let Ok(order) = shuffled else { return };
    let samples = plan.limited(order.len());
    add(
        &session.counters.skipped,
        plan.start.saturating_mul(batch_size).min(samples) as u64,
    );
    let budget = Budget::new(plan.prefetch_bytes);
    let requests = Arc::new(Semaphore::new(plan.requests));
    let pace = Arc::new(Pace::default());
    for number in plan.start..samples.div_ceil(batch_size) {
        if let Some(adapter) = &session.adapter
            && number >= plan.start + EXPLORING
        {
            adapter.planned().await;
        }
        let first = number * batch_size;
        let places: Vec<_> = (first..samples.min(first + batch_size))
            .map(|nth| order.place(nth))
            .collect();
        // In this order for every batch: a later batch never holds what an earlier one still needs.
        let Ok(request) = Arc::clone(&requests).acquire_owned().await else {
            return;
        };
        // By the plan that is in force now, not by the one when it began to wait.
        let assignment = session.assignment();
        let expected = places
            .iter()
            .map(|place| session.expected_bytes(*place, assignment.as_deref()))
            .sum();
        let charge = Arc::new(budget.admit(number, expected).await);
        let progress = Arc::new(Progress::new());
        let job = Job {
            number,
            left: samples.saturating_sub(first + places.len()),
            places,
            epoch,
            assignment,
            charge: Some(Arc::clone(&charge)),
            progress: Arc::clone(&progress),
        };
        let (session, pace_of_all) = (Arc::clone(&session), Arc::clone(&pace));
        let reading = progress.reading();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let read = session.read(&job).await;
            pace_of_all.came(&job.progress);
            drop((request, reading));
            read
        }));
        if sender
            .send(Delivery {
                task,
                _charge: charge,
            })
            .is_err()
        {
            return;
        }
        pace.next(&progress).await;
    }
}
