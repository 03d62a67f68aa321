//! The samples of an epoch, in batches: [`PushdownReader`], its settings, and what it reports.
//!
//! ```no_run
//! use futures::TryStreamExt as _;
//! use pushdown_client::reader::{Mode, PushdownReader, Tail};
//!
//! # async fn read() -> pushdown_client::Result<()> {
//! let mut reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .bucket("photos")
//!     .prefix("train/")
//!     .pipeline("decode | resize(short=256) | center_crop(224) | to_float")
//!     .mode(Mode::Auto)
//!     .batch_size(64)
//!     .tail(Tail::Drop)
//!     .build()
//!     .await?;
//! println!("{} samples in {} batches", reader.len(), reader.batches());
//! while let Some(batch) = reader.try_next().await? {
//!     let images = batch.stack()?;
//! }
//! if let Some(plan) = reader.plan() {
//!     println!("{plan}");
//! }
//! # Ok(())
//! # }
//! ```

mod builder;
mod driver;
mod monitor;
mod rank;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;
use pushdown::Pipeline;
use tokio::{runtime::Handle, time::Instant};

pub use crate::{
    batch::{Batch, Row, StackLayout, Stacked},
    error_policy::OnError,
    order::{ReaderShare, SampleOrder, Share, Tail, TailCounts},
    planning::{Observations, PlanReport, PlannedSamples},
    session::Mode,
    stats::Stats,
    value_cache::NotCached,
};
pub use builder::{PushdownReaderBuilder, ReaderSpec};
use driver::{Delivery, Driver};
pub use monitor::ReaderMonitor;
pub use pushdown::wire::{Compression, RowError, Split};
pub use rank::{Rank, Worker};

use crate::{
    error::{Error, Result},
    objects::Objects,
    order::{CheckedRank, SampleRef},
    planning::{BatchProgress, Event},
    session::{BatchJob, Session},
    stats::add,
};

/// Reads the samples of a data set in the order of an epoch, each exactly once, and runs the end of the pipeline on this
/// host.
///
/// It is a [`Stream`] of batches. Batches are prefetched, within the prefetch budget, from the first poll on. Dropping the
/// reader cancels everything in flight. After an error the stream ends; a reader built with
/// [`start_at`](PushdownReaderBuilder::start_at) resumes where it ended.
#[derive(Debug)]
pub struct PushdownReader {
    session: Arc<Session>,
    plan: ReadPlan,
    runtime: Handle,
    state: State,
    waiting_since: Option<Instant>,
    /// When the last batch was handed over, and its number of samples.
    handed_over: Option<(Instant, usize)>,
}

/// Which batches to read, of samples or rows, and how far to prefetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPlan {
    pub(crate) batch_size: usize,
    pub(crate) rank: CheckedRank,
    pub(crate) shuffle_seed: Option<u64>,
    pub(crate) order: SampleOrder,
    pub(crate) epoch: u32,
    /// Position of the first sample in the order of the epoch over all ranks.
    pub(crate) start_position: usize,
    pub(crate) tail: Tail,
    /// Number of the first batch.
    pub(crate) start: usize,
    /// Which of the batches from `start` on are read.
    pub(crate) worker: Worker,
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

impl ReadPlan {
    /// What this reader's rank reads of an epoch of `total` samples.
    pub(crate) const fn share(&self, total: usize) -> Share {
        Share {
            total,
            rank: self.rank,
            start: self.start_position,
            batch_size: self.batch_size,
            tail: self.tail,
            limit: self.limit,
        }
    }

    /// What this reader reads of an epoch of `total` samples.
    pub(crate) const fn reader_share(&self, total: usize) -> ReaderShare {
        ReaderShare {
            rank: self.share(total),
            first_batch: self.start,
            worker: self.worker,
        }
    }

    /// In shard order, the number of samples in the shuffle buffer: 1 without a seed, since nothing is shuffled then.
    pub(crate) fn shuffle_buffer(&self) -> Option<usize> {
        match self.order {
            SampleOrder::Global => None,
            SampleOrder::Shards { buffer } => Some(if self.shuffle_seed.is_some() { buffer } else { 1 }),
        }
    }
}

impl PushdownReader {
    /// Settings with their defaults.
    pub fn builder() -> PushdownReaderBuilder {
        PushdownReaderBuilder::default()
    }

    /// Samples of an epoch for this reader's rank from [`start_position`](PushdownReaderBuilder::start_position) on, at most the
    /// [limit](PushdownReaderBuilder::limit), padding included.
    pub fn len(&self) -> usize {
        self.share().sample_count()
    }

    /// Whether the rank has no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the [tail policy](PushdownReaderBuilder::tail) drops or repeats in an epoch, over all ranks.
    pub fn tail_counts(&self) -> TailCounts {
        self.share().tail_counts()
    }

    /// Batches of an epoch for this rank; the last one may be short. Its [workers](PushdownReaderBuilder::worker) share them.
    pub fn batches(&self) -> usize {
        self.share().batch_count()
    }

    fn share(&self) -> Share {
        self.plan.share(self.session.objects.len())
    }

    /// The whole data set, over all ranks, in the order of sample indices.
    pub fn objects(&self) -> &Objects {
        &self.session.objects
    }

    /// The pipeline, with its models cut as planned. Stages of rows refer to it.
    pub fn pipeline(&self) -> &Pipeline {
        &self.session.pipeline
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.monitor().stats()
    }

    /// The mode in force: plain as well after the gateway turned out to have another engine.
    pub fn mode(&self) -> Mode {
        self.session.mode()
    }

    /// The plan in force and what it was made from, in [`Mode::Auto`]; `None` before the first plan.
    pub fn plan(&self) -> Option<PlanReport> {
        self.monitor().plan()
    }

    /// Observes the reader while it reads, also from other threads.
    pub fn monitor(&self) -> ReaderMonitor {
        ReaderMonitor::new(Arc::clone(&self.session))
    }

    /// Starts another epoch from its first batch. Drops what was prefetched.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        self.plan.start = 0;
        self.plan.start_position = 0;
        self.state = State::Idle;
    }

    /// Cancels everything in flight and waits until the reader's threads have ended; a step that runs is finished first.
    /// Dropping the reader does not wait.
    #[expect(
        clippy::disallowed_methods,
        reason = "the CPU pool cannot wait for its own end"
    )]
    pub async fn close(self) {
        drop(self.state);
        let session = self.session;
        // Fails only if the runtime is shut down, and then nobody waits.
        drop(tokio::task::spawn_blocking(move || session.cpu.join()).await);
    }

    /// The samples with these indices, in this order, as one batch, with duplicates if an index is repeated. Random steps
    /// draw for the current epoch; its order does not matter.
    ///
    /// If `StreamExt` is in scope, its own `take` is found first: write `PushdownReader::take(&reader, ..)`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an index beyond the data set; otherwise as for the stream.
    pub async fn take(&self, indices: &[usize]) -> Result<Batch> {
        let count = self.session.objects.len();
        if let Some(index) = indices.iter().find(|index| **index >= count) {
            return Err(Error::config(format!(
                "found sample index {index}, expected less than {count}"
            )));
        }
        let sample = |(position, index): (usize, &usize)| SampleRef {
            position: position as u64,
            index: *index,
            is_padding: false,
        };
        let samples: Vec<_> = indices.iter().enumerate().map(sample).collect();
        let job = BatchJob {
            number: 0,
            epoch: self.plan.epoch,
            samples_left: self.len(),
            routes: self.session.routes(&samples, |_| false),
            samples,
            charge: None,
            shard_streams: None,
            progress: Arc::new(BatchProgress::new()),
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
                        let ended = ready!(driver.poll_end(context));
                        self.state = State::Ended;
                        if let Err(error) = ended {
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                State::Reading(_, current @ Some(_)) => {
                    let Some(delivery) = current else { continue };
                    let done = ready!(Pin::new(delivery).poll(context));
                    *current = None;
                    let batch = done.and_then(|batch| self.session.hand_over(batch));
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
            adapter.observe(Event::BatchConsumed {
                time: since.elapsed(),
                samples,
            });
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
