//! The reader of objects and members.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::Stream;
use pushdown::Pipeline;
use tokio::{runtime::Handle, time::Instant};

use super::{BatchJob, Mode, Session, epoch::read_epoch};
use crate::{
    batch::Batch,
    epoch::{
        BatchProgress, Deliveries, EpochStream, ReadPlan, hand_over,
        order::{SampleRef, Share, TailCounts},
    },
    error::{Error, Result},
    monitor::ReaderMonitor,
    objects::Objects,
    planning::{Event, PlanReport},
    stats::Stats,
    weights::WeightDownload,
};

/// Reads the samples of a data set in the order of an epoch, each exactly once, and runs the end of the pipeline on this
/// host.
///
/// It is a [`Stream`] of batches. Batches are prefetched, within the prefetch budget, from the first poll on. Dropping the
/// reader cancels everything in flight. After an error the stream ends; a reader built with
/// [`start_at`](crate::reader::PushdownReaderBuilder::start_at) resumes where it ended.
#[derive(Debug)]
pub struct PushdownReader {
    session: Arc<Session>,
    plan: ReadPlan,
    runtime: Handle,
    stream: EpochStream<Deliveries<Batch>>,
    /// When the last batch was handed over, and its number of samples.
    handed_over: Option<(Instant, usize)>,
    /// Set in [`Mode::Auto`], if weights were missing that this host needs without the gateway.
    weight_download: Option<WeightDownload>,
}

impl PushdownReader {
    pub(crate) fn new(session: Session, plan: ReadPlan, weight_download: Option<WeightDownload>) -> Self {
        Self {
            session: Arc::new(session),
            plan,
            runtime: Handle::current(),
            stream: EpochStream::new(),
            handed_over: None,
            weight_download,
        }
    }

    /// Samples of an epoch for this reader's rank from [`start_position`](crate::reader::PushdownReaderBuilder::start_position) on, at most the
    /// [limit](crate::reader::PushdownReaderBuilder::limit), padding included.
    pub fn len(&self) -> usize {
        self.share().sample_count()
    }

    /// Whether the rank has no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the [tail policy](crate::reader::PushdownReaderBuilder::tail) drops or repeats in an epoch, over all ranks.
    pub fn tail_counts(&self) -> TailCounts {
        self.share().tail_counts()
    }

    /// Batches of an epoch for this rank; the last one may be short. Its [workers](crate::reader::PushdownReaderBuilder::worker) share them.
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
        ReaderMonitor::new(Arc::<Session>::clone(&self.session))
    }

    /// Starts another epoch from its first batch. Drops what was prefetched.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        self.plan.start = 0;
        self.plan.start_position = 0;
        self.stream.restart();
    }

    /// Cancels everything in flight and waits until the reader's threads have ended; a step that runs is finished first.
    /// Dropping the reader does not wait.
    pub async fn close(self) {
        drop(self.stream);
        if let Some(download) = self.weight_download {
            download.end().await;
        }
        self.session.cpu.close().await;
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
        let session = &self.session;
        let batch = session.read(&job).await?;
        hand_over(
            batch,
            &session.error_policy,
            session.objects.bucket(),
            &session.counters,
        )
    }
}

impl Stream for PushdownReader {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        let Self {
            session,
            plan,
            runtime,
            stream,
            handed_over,
            weight_download: _,
        } = &mut *self;
        if let (Some((since, samples)), Some(adapter)) = (handed_over.take(), &session.adapter) {
            adapter.observe(Event::BatchConsumed {
                time: since.elapsed(),
                samples,
            });
        }
        if stream.is_idle() {
            stream.begin(read_epoch(runtime, session, *plan));
        }
        let polled = stream.poll_next(context, &session.counters, |batch| {
            let (policy, bucket) = (&session.error_policy, session.objects.bucket());
            hand_over(batch, policy, bucket, &session.counters)
        });
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            *handed_over = Some((Instant::now(), batch.len()));
        }
        polled
    }
}
