//! Micro-batches: runs model layers on several samples of any requests at once.

mod release;
mod run;

use std::{
    collections::{HashMap, hash_map::Entry},
    iter,
    ops::Range,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use pushdown::{
    Pipeline, Tensor,
    step::model::{Boundary, Concurrency, LayerRange, ModelStep, Provider},
};
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, timeout, timeout_at},
};

pub use super::batch_size::BatchMembers;
use super::{
    CpuPool, Ledger, QueuePosition, Tenant,
    batch_size::BatchSizeTuner,
    fair_queue::{FairQueue, QueueEntry},
    thread_budget::ThreadBudget,
};
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::Metrics,
};
use release::release_memory;
pub(super) use run::ModelOutput;
use run::run_batch;

/// How long the first sample of a batch waits for others.
const MAX_BATCH_WAIT: Duration = Duration::from_millis(2);
/// Lifetime of an empty queue.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Collects samples for the same layers into micro-batches, fairly between tenants. Clones share it.
#[derive(Debug, Clone)]
pub struct MicroBatcher {
    cpu: CpuPool,
    ledger: Ledger,
    /// Shared by the runs of all models.
    threads: ThreadBudget,
    metrics: Metrics,
    queues: Arc<Mutex<HashMap<LayersKey, LayersQueue>>>,
    memory_released_at: Arc<Mutex<Instant>>,
}

/// The digest of a model, the start and the end of its layers, and who may be in a batch.
type LayersKey = (String, Boundary, usize, BatchMembers);

/// The samples that wait for the same layers. Their number is bounded by the memory that they reserve.
#[derive(Debug, Clone)]
struct LayersQueue {
    samples: FairQueue<WaitingSample>,
    arrived: Arc<Notify>,
    size_tuner: Arc<Mutex<BatchSizeTuner>>,
}

/// A sample, and the channel of its result.
#[derive(Debug)]
struct WaitingSample {
    position: QueuePosition,
    value: Tensor,
    done: oneshot::Sender<pushdown::Result<ModelOutput>>,
}

impl MicroBatcher {
    /// Runs batches on a CPU pool. Concurrent batches of the same layers are limited by the model, and those of all models
    /// by the number of threads.
    pub fn new(cpu: CpuPool, metrics: Metrics) -> Self {
        Self {
            ledger: cpu.ledger().clone(),
            threads: ThreadBudget::new(cpu.threads()),
            cpu,
            metrics,
            queues: Arc::default(),
            memory_released_at: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// The first steps in `stretch` that run in micro-batches: their range, and the layers of a model that they are together.
    pub fn first_layers(pipeline: &Pipeline, stretch: &Range<usize>) -> Option<(Range<usize>, ModelStep)> {
        pipeline.first_model(stretch.clone())
    }

    /// Runs `layers` on one sample, in a batch with these other samples that wait for the same layers, and charges the tenant for
    /// the sample's part of the time. Dropping the future before the batch starts removes the sample.
    ///
    /// # Errors
    /// Like [`Model::run`](pushdown::step::model::Model::run).
    pub async fn run(
        &self,
        position: &QueuePosition,
        layers: &ModelStep,
        value: Tensor,
        members: BatchMembers,
    ) -> Result<ModelOutput> {
        let (done, output) = oneshot::channel();
        let waiting = WaitingSample {
            position: position.clone(),
            value,
            done,
        };
        let _entry = self.enqueue(layers, waiting, members);
        let output = output
            .await
            .map_err(|_dropped| Error::new(ErrorKind::Internal, "a model panicked"))?;
        Ok(output?)
    }

    fn enqueue(
        &self,
        layers: &ModelStep,
        waiting: WaitingSample,
        members: BatchMembers,
    ) -> QueueEntry<WaitingSample> {
        let LayerRange { from, to: until } = layers.range();
        let digest = layers.model().description().digest.clone();
        let key = (digest, from, until, members);
        // Locked until the sample is queued, because an empty queue may be removed.
        let mut queues = self.queues.lock();
        let queue = match queues.entry(key) {
            Entry::Occupied(queue) => queue.into_mut(),
            Entry::Vacant(entry) => {
                let tuner = BatchSizeTuner::new(members.sizes(layers.model().provider()));
                let queue = LayersQueue {
                    samples: FairQueue::new(self.ledger.clone()),
                    arrived: Arc::default(),
                    size_tuner: Arc::new(Mutex::new(tuner)),
                };
                let (this, key) = (self.clone(), entry.key().clone());
                let (layers, served) = (layers.clone(), queue.clone());
                tokio::spawn(async move { this.serve(&layers, &served, &key).await });
                entry.insert(queue)
            }
        };
        let entry = queue.samples.push(&waiting.position.clone(), waiting);
        queue.arrived.notify_one();
        entry
    }

    /// Runs batches until the queue has been empty for a while.
    async fn serve(&self, layers: &ModelStep, queue: &LayersQueue, key: &LayersKey) {
        let LayerRange { from, to: until } = layers.range();
        let Concurrency { runs, threads } = layers.model().concurrency(from, until);
        let free = Arc::new(Semaphore::new(runs));
        // Samples that arrive while all runs are busy wait in the queue, and form the next batch.
        while let Ok(run) = Arc::clone(&free).acquire_owned().await {
            while queue.samples.len() == 0 {
                if timeout(IDLE_TIMEOUT, queue.arrived.notified()).await.is_err()
                    && self.remove_if_empty(queue, key)
                {
                    return;
                }
            }
            let max_samples = queue.size_tuner.lock().next_max_samples();
            let deadline = Instant::now() + MAX_BATCH_WAIT;
            while queue.samples.len() < max_samples
                && timeout_at(deadline, queue.arrived.notified()).await.is_ok()
            {}
            let batch: Vec<_> = iter::from_fn(|| queue.samples.pop()).take(max_samples).collect();
            let tuner = Arc::clone(&queue.size_tuner);
            self.start(layers.clone(), batch, threads, (run, tuner));
        }
    }

    /// Removes the queue if it is empty.
    fn remove_if_empty(&self, queue: &LayersQueue, key: &LayersKey) -> bool {
        let mut queues = self.queues.lock();
        queue.samples.len() == 0 && queues.remove(key).is_some()
    }

    /// Starts a batch on the CPU pool. If it panics, the channels of its samples close, and each sample fails.
    fn start(
        &self,
        layers: ModelStep,
        batch: Vec<WaitingSample>,
        threads: usize,
        (run, tuner): (OwnedSemaphorePermit, Arc<Mutex<BatchSizeTuner>>),
    ) {
        let positions = oldest_positions(&batch);
        let (ledger, metrics) = (self.ledger.clone(), self.metrics.clone());
        let (thread_budget, released_at) = (self.threads.clone(), Arc::clone(&self.memory_released_at));
        let work = move || {
            let batch = batch.into_iter().filter(|waiting| !waiting.done.is_closed());
            let (values, waiting): (Vec<_>, Vec<_>) = batch
                .map(|waiting| (waiting.value, (waiting.position, waiting.done)))
                .unzip();
            let samples = values.len();
            let (Ok(thread_count), Ok(count @ 1..)) = (u32::try_from(threads), u32::try_from(samples)) else {
                return;
            };
            metrics.micro_batches.inc();
            metrics.micro_batch_samples.inc_by(count.into());
            let load_started = std::time::Instant::now();
            let LayerRange { from, to: until } = layers.range();
            // The batch that loads the weights is charged for it, but the reported time per sample excludes it: plans use this
            // time.
            if let Err(error) = layers.model().load_layers(from, until) {
                tracing::debug!(%error, "cannot load the model; each sample of the batch gets this error");
            }
            let load_time = load_started.elapsed();
            // Not earlier: weights load on one thread, while other models run.
            let permit = thread_budget.acquire(threads);
            let (started, cpu) = (std::time::Instant::now(), cpu_time());
            let outputs = run_batch(&layers, values, thread_count);
            let run_time = started.elapsed();
            drop(permit);
            let busy = match (layers.model().provider(), thread_count) {
                // CPU time excludes background load on this core: it does not depend on the batch size.
                (Provider::Cpu, 1) => cpu_time().saturating_sub(cpu),
                _ => run_time * thread_count,
            };
            tuner.lock().record(samples, busy / count);
            let sample_time = (load_time + run_time) * thread_count / count;
            for (output, (position, done)) in outputs.into_iter().zip(waiting) {
                ledger.charge(position.tenant(), sample_time);
                // Fails if the request was dropped.
                drop(done.send(output));
            }
            drop(run);
            release_memory(&released_at);
        };
        self.cpu.run_shared(positions, work);
    }
}

/// The position of a batch in the queue of each of its tenants: that of the tenant's oldest sample.
fn oldest_positions(batch: &[WaitingSample]) -> Vec<QueuePosition> {
    let mut positions = HashMap::<&Tenant, &QueuePosition>::new();
    for WaitingSample { position, .. } in batch {
        let oldest = positions.entry(position.tenant()).or_insert(position);
        if position.enqueued_at() < oldest.enqueued_at() {
            *oldest = position;
        }
    }
    positions.into_values().cloned().collect()
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
