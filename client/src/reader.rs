//! The reader: a stream of batches in the order of the epoch.

mod builder;
mod driver;
mod pace;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;
use pushdown::Pipeline;
use tokio::{runtime::Handle, time::Instant};

pub use builder::PushdownReaderBuilder;
use driver::{Delivery, Driver};

use crate::{
    adapt::{Adapter, Planned},
    batch::Batch,
    error::{Error, Result},
    order::{Place, Shard},
    session::{Job, Mode, Progress, Session},
    stats::{Stats, add},
    store::Object,
};

/// Reads the samples of a data set in the order of an epoch, each exactly once, the end of the pipeline run
/// here.
///
/// It is a [`Stream`] of batches. Batches are fetched ahead, within the prefetch budget, from the first time that
/// it is polled; dropping it ends all that is under way. After an error the stream ends; a reader built with
/// [`start_at`](PushdownReaderBuilder::start_at) goes on where it ended.
#[derive(Debug)]
pub struct PushdownReader {
    session: Arc<Session>,
    plan: Plan,
    runtime: Handle,
    state: State,
    waiting_since: Option<Instant>,
    /// When the last batch was handed over, and how many samples it had.
    handed_over: Option<(Instant, usize)>,
}

/// Which batches to read, of samples of either kind, and how far ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) batch_size: usize,
    pub(crate) shard: Shard,
    pub(crate) shuffle_seed: Option<u64>,
    pub(crate) epoch: u32,
    /// Number of the first batch.
    pub(crate) start: usize,
    /// The most samples of an epoch.
    pub(crate) limit: Option<usize>,
    pub(crate) prefetch_bytes: u64,
    pub(crate) requests: usize,
}

#[derive(Debug)]
enum State {
    Idle,
    Reading(Driver, Option<Delivery>),
    Ended,
}

impl Plan {
    /// How many of a shard's samples are read in an epoch.
    pub(crate) fn limited(&self, shard: usize) -> usize {
        self.limit.map_or(shard, |limit| shard.min(limit))
    }
}

impl PushdownReader {
    /// Settings with their defaults.
    pub fn builder() -> PushdownReaderBuilder {
        PushdownReaderBuilder::default()
    }

    /// Samples of an epoch that fall to this reader's shard, at most the [limit](PushdownReaderBuilder::limit).
    pub fn len(&self) -> usize {
        self.plan
            .limited(self.plan.shard.len_of(self.session.objects.len()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Batches of an epoch for this shard; the last one may be short.
    pub fn batches(&self) -> usize {
        self.len().div_ceil(self.plan.batch_size)
    }

    /// The whole data set, all shards', in the order of sample indices.
    pub fn objects(&self) -> &[Object] {
        &self.session.objects
    }

    /// The pipeline, its models cut where a plan has them cut: what the stages of rows count.
    pub fn pipeline(&self) -> &Pipeline {
        &self.session.pipeline
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        self.session.counters.snapshot(self.session.store.traffic())
    }

    /// The mode in force: plain, too, after the gateway turned out to compute with another engine.
    pub fn mode(&self) -> Mode {
        self.session.mode()
    }

    /// The plan in force and what it was made from, in [`Mode::Auto`]; `None` while too little is known.
    pub fn plan(&self) -> Option<Planned> {
        self.session.adapter.as_ref().and_then(Adapter::decision)
    }

    /// Starts another epoch from its first batch. What was fetched ahead is dropped.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        self.plan.start = 0;
        self.state = State::Idle;
    }

    /// The samples with these indices, in this order, as one batch: those that are asked for twice are there
    /// twice. The epoch's random draws, not its order, apply.
    ///
    /// Where `StreamExt` is in scope, its own `take` is found first: write `PushdownReader::take(&reader, ..)`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an index beyond the data set; otherwise as the stream.
    pub async fn take(&self, indices: &[usize]) -> Result<Batch> {
        let count = self.session.objects.len();
        if let Some(index) = indices.iter().find(|index| **index >= count) {
            return Err(Error::config(format!(
                "there is no sample {index}: the data set has {count}"
            )));
        }
        let place = |(position, index): (usize, &usize)| Place {
            position: position as u64,
            index: *index,
        };
        let places = indices.iter().enumerate().map(place).collect();
        let job = Job {
            number: 0,
            places,
            epoch: self.plan.epoch,
            left: self.len(),
            assignment: self.session.assignment(),
            charge: None,
            progress: Arc::new(Progress::new()),
        };
        self.session.hand_over(self.session.read(&job).await?)
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        loop {
            match &mut self.state {
                State::Idle => {
                    let driver = Driver::start(&self.runtime, Arc::clone(&self.session), self.plan);
                    self.state = State::Reading(driver, None);
                }
                State::Ended => return Poll::Ready(None),
                State::Reading(driver, current @ None) => {
                    *current = ready!(driver.poll_next(context));
                    if current.is_none() {
                        self.state = State::Ended;
                    }
                }
                State::Reading(_, current @ Some(_)) => {
                    let Some(delivery) = current else { continue };
                    let done = ready!(Pin::new(delivery).poll(context));
                    *current = None;
                    let failed =
                        |error| Err(Error::internal("the task of a batch failed").with_source(error));
                    let batch = done
                        .unwrap_or_else(failed)
                        .and_then(|batch| self.session.hand_over(batch));
                    if batch.is_err() {
                        self.state = State::Ended;
                    }
                    return Poll::Ready(Some(batch));
                }
            }
        }
    }
}

impl Stream for PushdownReader {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        let this = &mut *self;
        if let (Some((since, samples)), Some(adapter)) = (this.handed_over.take(), &this.session.adapter) {
            adapter.trainer(since.elapsed(), samples);
        }
        let polled = this.poll_batch(context);
        if polled.is_pending() {
            this.waiting_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = this.waiting_since.take() {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            add(&this.session.counters.waiting_nanos, nanos);
        }
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            this.handed_over = Some((Instant::now(), batch.len()));
        }
        polled
    }
}
