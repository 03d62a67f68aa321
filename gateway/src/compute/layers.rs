//! Layers of networks over many samples at once, whichever requests they belong to.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pushdown::{
    Tensor,
    step::model::{Model, Place},
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

use super::CpuPool;
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::Metrics,
};

/// Samples that run at once, at most. More hardly save anything on a CPU, and each holds its memory while it waits.
const MOST: usize = 8;
/// How long the first of them waits for others.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a queue without samples stays.
const IDLE: Duration = Duration::from_secs(30);

/// Collects samples for the same layers into batches. Clones share it.
#[derive(Debug, Clone)]
pub struct Layers {
    cpu: CpuPool,
    metrics: Metrics,
    queues: Arc<Mutex<HashMap<Key, mpsc::Sender<Waiting>>>>,
}

/// A network by its digest, from where to where.
type Key = (String, Place, usize);

/// A sample, and who waits for it.
#[derive(Debug)]
struct Waiting {
    value: Tensor,
    done: oneshot::Sender<pushdown::Result<Ran>>,
}

/// What layers made of a sample.
#[derive(Debug)]
pub struct Ran {
    /// The value behind them.
    pub value: Tensor,
    /// Its share of the batch's time, on all the threads that worked on it.
    pub time: Duration,
}

impl Layers {
    /// Runs on a CPU pool, as many batches of the same layers at a time as the network takes.
    pub fn new(cpu: CpuPool, metrics: Metrics) -> Self {
        Self {
            cpu,
            metrics,
            queues: Arc::default(),
        }
    }

    /// Runs `layers` on one sample, together with others that wait for the same. Dropping the future before the batch
    /// starts takes the sample out of it.
    ///
    /// # Errors
    /// As [`Network::run`](pushdown::step::model::Network::run).
    pub async fn run(&self, layers: &Model, value: Tensor) -> Result<Ran> {
        let (done, ran) = oneshot::channel();
        let mut waiting = Waiting { value, done };
        loop {
            let queue = self.queue(layers);
            match queue.send(waiting).await {
                Ok(()) => break,
                // It ended for want of samples a moment ago; there will be another one.
                Err(mpsc::error::SendError(returned)) => waiting = returned,
            }
        }
        let ran = ran
            .await
            .map_err(|_dropped| Error::new(ErrorKind::Internal, "layers panicked"))?;
        Ok(ran?)
    }

    fn queue(&self, layers: &Model) -> mpsc::Sender<Waiting> {
        let (from, until) = layers.reach();
        let key = (layers.network().description().digest.clone(), from, until);
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(&key).filter(|queue| !queue.is_closed()) {
            return queue.clone();
        }
        let (sender, receiver) = mpsc::channel(MOST);
        queues.insert(key.clone(), sender.clone());
        let (this, layers) = (self.clone(), layers.clone());
        tokio::spawn(async move {
            this.serve(&layers, receiver).await;
            this.queues
                .lock()
                .retain(|known, queue| *known != key || !queue.is_closed());
        });
        sender
    }

    /// Runs batches until no sample comes for a while.
    async fn serve(&self, layers: &Model, mut queue: mpsc::Receiver<Waiting>) {
        let (runs, threads) = layers.network().concurrency(self.cpu.threads().get());
        let free = Arc::new(Semaphore::new(runs));
        loop {
            // What comes while all runs are busy waits in the queue, and goes together.
            let Ok(run) = Arc::clone(&free).acquire_owned().await else {
                break;
            };
            let Ok(Some(first)) = timeout(IDLE, queue.recv()).await else {
                break;
            };
            let mut batch = vec![first];
            let patience = Instant::now() + PATIENCE;
            while batch.len() < MOST
                && let Ok(Some(next)) = timeout_at(patience, queue.recv()).await
            {
                batch.push(next);
            }
            batch.retain(|waiting| !waiting.done.is_closed());
            let (this, layers) = (self.clone(), layers.clone());
            tokio::spawn(async move {
                this.run_batch(&layers, batch, threads).await;
                drop(run);
            });
        }
        // Whoever came in between is served; nobody comes any more.
        queue.close();
        while let Some(last) = queue.recv().await {
            self.run_batch(layers, vec![last], threads).await;
        }
    }

    async fn run_batch(&self, layers: &Model, batch: Vec<Waiting>, threads: usize) {
        if batch.is_empty() {
            return;
        }
        self.metrics.layer_batches.inc();
        self.metrics.layer_samples.inc_by(batch.len() as u64);
        let layers = layers.clone();
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        let work = move || {
            let (values, waiting): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|waiting| (waiting.value, waiting.done))
                .unzip();
            let ran = run(&layers, values, threads);
            for (ran, done) in ran.into_iter().zip(waiting) {
                // Whoever left does not want it.
                drop(done.send(ran));
            }
        };
        // A panic closes the channels, by which those who wait hear of it.
        drop(self.cpu.run(work).await);
    }
}

/// All at once, on so many threads; where that fails one by one, so that no sample fails for another.
fn run(layers: &Model, values: Vec<Tensor>, threads: u32) -> Vec<pushdown::Result<Ran>> {
    let (from, until) = layers.reach();
    let timed = |values: &[Tensor]| {
        let started = std::time::Instant::now();
        let outputs = layers.network().run(from, until, values)?;
        let count = u32::try_from(values.len().max(1)).unwrap_or(u32::MAX);
        let time = started.elapsed() * threads / count;
        Ok::<_, pushdown::Error>(outputs.into_iter().map(move |value| Ran { value, time }))
    };
    let alone = |value: Tensor| {
        let missing = || pushdown::Error::new(pushdown::ErrorKind::Internal, "layers gave no value");
        timed(&[value])?.next().ok_or_else(missing)
    };
    match timed(&values) {
        Ok(ran) if ran.len() == values.len() => ran.map(Ok).collect(),
        _ => values.into_iter().map(alone).collect(),
    }
}
