//! Layers of models over many samples at once, whichever requests they belong to.

mod run;

use std::{
    collections::{HashMap, hash_map::Entry},
    iter,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use pushdown::{
    Tensor,
    step::model::{Boundary, Concurrency, LayerRange, ModelStep, Provider, trim_heap},
};
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, timeout, timeout_at},
};

use super::{
    CpuPool, Ledger, Standing, Tenant,
    batching::{self, Batching},
    fair,
    threads::Threads,
};
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::Metrics,
};
pub(super) use run::Ran;
use run::run_at_once;

/// How long the first of them waits for others.
const PATIENCE: Duration = Duration::from_millis(2);
/// How often memory that runs have left is given back: seldom enough that taking it anew costs nothing to speak of.
const TIDY: Duration = Duration::from_millis(100);
/// How long a queue without samples stays.
const IDLE: Duration = Duration::from_secs(30);

/// Collects samples for the same layers into batches, fairly between tenants. Clones share it.
#[derive(Debug, Clone)]
pub struct Layers {
    cpu: CpuPool,
    ledger: Ledger,
    /// What runs of all models have together.
    threads: Threads,
    metrics: Metrics,
    queues: Arc<Mutex<HashMap<Key, Queue>>>,
    tidied: Arc<Mutex<Instant>>,
}

/// A model by its digest, from where to where.
type Key = (String, Boundary, usize);

/// The samples that wait for the same layers. They hold memory, which bounds them.
#[derive(Debug, Clone)]
struct Queue {
    samples: fair::FairQueue<Waiting>,
    arrived: Arc<Notify>,
    batching: Arc<Mutex<Batching>>,
}

/// A sample, and who waits for it.
#[derive(Debug)]
struct Waiting {
    standing: Standing,
    value: Tensor,
    done: oneshot::Sender<pushdown::Result<Ran>>,
}

impl Layers {
    /// Runs on a CPU pool, as many batches of the same layers at a time as the model takes, and of all models as many as
    /// have threads of their own.
    pub fn new(cpu: CpuPool, metrics: Metrics) -> Self {
        Self {
            ledger: cpu.ledger().clone(),
            threads: Threads::new(cpu.threads()),
            cpu,
            metrics,
            queues: Arc::default(),
            tidied: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Runs `layers` on one sample, together with others that wait for the same, and charges its tenant for its share.
    /// Dropping the future before the batch starts takes the sample out of it.
    ///
    /// # Errors
    /// As [`Model::run`](pushdown::step::model::Model::run).
    pub async fn run(&self, standing: &Standing, layers: &ModelStep, value: Tensor) -> Result<Ran> {
        let (done, ran) = oneshot::channel();
        let waiting = Waiting {
            standing: standing.clone(),
            value,
            done,
        };
        let _place = self.queue(layers, waiting);
        let ran = ran
            .await
            .map_err(|_dropped| Error::new(ErrorKind::Internal, "layers panicked"))?;
        Ok(ran?)
    }

    fn queue(&self, layers: &ModelStep, waiting: Waiting) -> fair::Place<Waiting> {
        let LayerRange { from, to: until } = layers.range();
        let key = (layers.model().description().digest.clone(), from, until);
        // Held while the sample is queued: a queue ends only when it is empty.
        let mut queues = self.queues.lock();
        let queue = match queues.entry(key) {
            Entry::Occupied(queue) => queue.into_mut(),
            Entry::Vacant(entry) => {
                let batching = Batching::new(batching::sizes(layers.model().provider()));
                let queue = Queue {
                    samples: fair::FairQueue::new(self.ledger.clone()),
                    arrived: Arc::default(),
                    batching: Arc::new(Mutex::new(batching)),
                };
                let (this, key) = (self.clone(), entry.key().clone());
                let (layers, served) = (layers.clone(), queue.clone());
                tokio::spawn(async move { this.serve(&layers, &served, &key).await });
                entry.insert(queue)
            }
        };
        let place = queue.samples.push(&waiting.standing.clone(), waiting);
        queue.arrived.notify_one();
        place
    }

    /// Runs batches until no sample comes for a while.
    async fn serve(&self, layers: &ModelStep, queue: &Queue, key: &Key) {
        let LayerRange { from, to: until } = layers.range();
        let Concurrency { runs, threads } = layers.model().concurrency(from, until);
        let free = Arc::new(Semaphore::new(runs));
        // What comes while all runs are busy waits in the queue, and goes together.
        while let Ok(run) = Arc::clone(&free).acquire_owned().await {
            while queue.samples.len() == 0 {
                if timeout(IDLE, queue.arrived.notified()).await.is_err() && self.end(queue, key) {
                    return;
                }
            }
            let most = queue.batching.lock().most();
            let patience = Instant::now() + PATIENCE;
            while queue.samples.len() < most && timeout_at(patience, queue.arrived.notified()).await.is_ok() {
            }
            let batch: Vec<_> = iter::from_fn(|| queue.samples.pop()).take(most).collect();
            let batching = Arc::clone(&queue.batching);
            self.start(layers.clone(), batch, threads, (run, batching));
        }
    }

    /// Ends a queue without samples.
    fn end(&self, queue: &Queue, key: &Key) -> bool {
        let mut queues = self.queues.lock();
        queue.samples.len() == 0 && queues.remove(key).is_some()
    }

    /// Has a batch run on the CPU pool. One that panics closes the channels of those who wait, by which they hear of it.
    fn start(
        &self,
        layers: ModelStep,
        batch: Vec<Waiting>,
        threads: usize,
        (run, batching): (OwnedSemaphorePermit, Arc<Mutex<Batching>>),
    ) {
        let standings = oldest(&batch);
        let (ledger, metrics) = (self.ledger.clone(), self.metrics.clone());
        let (all_threads, tidied) = (self.threads.clone(), Arc::clone(&self.tidied));
        let work = move || {
            let batch = batch.into_iter().filter(|waiting| !waiting.done.is_closed());
            let (values, waiting): (Vec<_>, Vec<_>) = batch
                .map(|waiting| (waiting.value, (waiting.standing, waiting.done)))
                .unzip();
            let samples = values.len();
            let (Ok(on), Ok(count @ 1..)) = (u32::try_from(threads), u32::try_from(samples)) else {
                return;
            };
            metrics.layer_batches.inc();
            metrics.layer_samples.inc_by(count.into());
            let began = std::time::Instant::now();
            let LayerRange { from, to: until } = layers.range();
            // Weights that come first are paid for by those who have them come, but are no cost of a sample: plans go by those.
            if let Err(error) = layers.model().load_layers(from, until) {
                tracing::debug!(%error, "layers cannot be made ready, as those who wait for them are told");
            }
            let loading = began.elapsed();
            // Only now: weights come on one thread, while others run.
            let taken = all_threads.take(threads);
            let (started, cpu) = (std::time::Instant::now(), cpu_time());
            let ran = run_at_once(&layers, values, on);
            let running = started.elapsed();
            drop(taken);
            let busy = match (layers.model().provider(), on) {
                // What other threads had of the core meanwhile says nothing of the size.
                (Provider::Cpu, 1) => cpu_time().saturating_sub(cpu),
                _ => running * on,
            };
            batching.lock().took(samples, busy / count);
            let share = (loading + running) * on / count;
            for (ran, (standing, done)) in ran.into_iter().zip(waiting) {
                ledger.charge(standing.tenant(), share);
                // Whoever left does not want it.
                drop(done.send(ran));
            }
            drop(run);
            tidy(&tidied);
        };
        self.cpu.run_together(standings, work);
    }
}

/// Where a batch stands in the line of each of its tenants: in the place of its oldest sample.
fn oldest(batch: &[Waiting]) -> Vec<Standing> {
    let mut standings = HashMap::<&Tenant, &Standing>::new();
    for Waiting { standing, .. } in batch {
        let oldest = standings.entry(standing.tenant()).or_insert(standing);
        if standing.since() < oldest.since() {
            *oldest = standing;
        }
    }
    standings.into_values().cloned().collect()
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Gives memory back, where that was not done for a while. Whoever finds another at it need not.
fn tidy(tidied: &Mutex<Instant>) {
    if let Some(mut last) = tidied.try_lock()
        && last.elapsed() >= TIDY
    {
        trim_heap();
        *last = Instant::now();
    }
}

#[cfg(test)]
mod tests;
