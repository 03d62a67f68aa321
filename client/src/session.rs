//! Reads batches: fetches values, at any stage, and runs the rest of the pipeline on them.
//!
//! All modes meet in [`Intake`]: a value that arrives at stage k, k = 0 for a plain object, runs through `[k, n)` on the
//! CPU pool.

mod cached;
mod get_permits;
mod intake;
mod plain;
mod pushed;
mod steps;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use pushdown::{
    Engine, Limits, Pipeline,
    plan::simulate::ReadAhead,
    wire::{Compression, Split},
};

use crate::{
    batch::{Batch, Row},
    budget::Charge,
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    order::SampleRef,
    planning::{Adapter, Assignment, BatchProgress},
    stats::{Counters, add},
    store::{Object, Store},
    value_cache::ValueCache,
};
pub(crate) use get_permits::GetPermits;
use intake::Intake;
use plain::PlainQueue;

/// Plain reads that a batch has in flight while nothing is known.
const EXPLORATION_GETS: usize = 2;

/// Where the steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The prefix runs at the gateway, the suffix on this host.
    #[default]
    Pushdown,
    /// A plan chooses the split per object. The first batches try both routes and measure the costs on this host, at the
    /// gateway and on the link. The plan follows from them and changes with them. Plain reading is one possible plan.
    Auto,
    /// Everything runs on this host: objects are read directly, from a gateway or from any store.
    Plain,
}

/// How a reader treats a sample that cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// End the stream with an error that names the sample.
    #[default]
    Raise,
    /// Deliver a row at its position with the error in place of a value.
    SkipAndReport,
}

/// Everything needed to read a batch, the same for all batches.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) objects: Vec<Object>,
    pub(crate) pipeline: Pipeline,
    pub(crate) split: Split,
    /// The first usable stage in [`Mode::Auto`]: this host cannot run models after an earlier one.
    pub(crate) first_stage: usize,
    pub(crate) compression: Compression,
    pub(crate) mode: Mode,
    /// Set in [`Mode::Auto`].
    pub(crate) adapter: Option<Adapter>,
    pub(crate) value_cache: Option<ValueCache>,
    pub(crate) on_error: OnError,
    pub(crate) seed: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) gets: GetPermits,
    pub(crate) counters: Counters,
    /// The engine of this host.
    pub(crate) engine: Engine,
    /// Set when the gateway turns out to have another engine.
    pub(crate) fallen_back: AtomicBool,
    /// Whether the log has the warning that the gateway's models round differently.
    pub(crate) rounding_warning_logged: AtomicBool,
}

/// A batch to read.
#[derive(Debug)]
pub(crate) struct BatchJob {
    pub(crate) number: usize,
    pub(crate) samples: Vec<SampleRef>,
    pub(crate) epoch: u32,
    /// Samples of the epoch after this batch.
    pub(crate) samples_left: usize,
    /// The routes of the objects, in [`Mode::Auto`].
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// `None` for samples that the consumer requested directly.
    pub(crate) charge: Option<Arc<Charge>>,
    pub(crate) progress: Arc<BatchProgress>,
}

/// Slots of a batch by the route of their samples.
struct RoutedSlots {
    pushed: Vec<usize>,
    plain: Vec<usize>,
}

impl BatchJob {
    /// One of the two routes has delivered all its samples, of which there are `samples`.
    fn route_is_done(&self, samples: usize) {
        if samples * ReadAhead::MIN_SHARE_DENOMINATOR >= self.samples.len() {
            self.progress.mark_half();
        }
    }

    /// While nothing is known: the same batch with all remaining samples pushed down, for use once the gateway is done with
    /// its part.
    fn with_all_pushed(&self) -> Option<Self> {
        let assignment = self.assignment.as_ref()?.with_all_pushed()?;
        Some(Self {
            samples: self.samples.clone(),
            assignment: Some(Arc::new(assignment)),
            charge: self.charge.clone(),
            progress: Arc::clone(&self.progress),
            ..*self
        })
    }
}

impl Session {
    /// The mode in force: plain after the gateway turned out to have another engine.
    pub(crate) fn mode(&self) -> Mode {
        if self.fallen_back.load(Relaxed) {
            Mode::Plain
        } else {
            self.mode
        }
    }

    /// The split of a sample.
    pub(crate) fn split_of(&self, sample: SampleRef, assignment: Option<&Assignment>) -> Split {
        let stored = self.objects[sample.index].bytes;
        let split = assignment.map_or(self.split, |plan| Split::At(plan.stage(sample, stored)));
        self.clamp_to_cached_stage(sample.index, split)
    }

    /// The most bytes of a value requested with `split`, if they are not known in advance.
    pub(crate) fn max_value_bytes(
        &self,
        sample: SampleRef,
        split: Split,
        assignment: Option<&Assignment>,
    ) -> Option<u64> {
        let stored = self.objects[sample.index].bytes;
        match split {
            Split::At(stage) => assignment?.max_value_bytes(stage, stored),
            Split::Full | Split::Smallest => None,
        }
    }

    /// The routes of the objects under the plan in force, in [`Mode::Auto`].
    pub(crate) fn assignment(&self) -> Option<Arc<Assignment>> {
        self.adapter.as_ref().map(Adapter::assignment)
    }

    /// Reads one batch.
    pub(crate) async fn read(self: &Arc<Self>, job: &BatchJob) -> Result<Batch> {
        let intake = Intake::new(self, job);
        cached::fetch(self, job, &intake).await?;
        let RoutedSlots { pushed, plain } = self.route(job, intake.missing());
        let max_gets = self.gets.count();
        // Reads that have begun are not cancelled when the gateway turns out to be faster.
        let unknown = job
            .assignment
            .as_ref()
            .is_some_and(|assignment| assignment.is_unknown());
        let gets = if unknown && !pushed.is_empty() {
            max_gets.min(EXPLORATION_GETS)
        } else {
            max_gets
        };
        let (pushed_samples, plain_samples) = (pushed.len(), plain.len());
        let plain = PlainQueue::new(plain);
        let pushed_route = async {
            pushed::fetch(self, job, &intake, pushed).await?;
            match job.with_all_pushed().filter(|_| pushed_samples > 0) {
                Some(job) => {
                    let rest = self.route(&job, plain.take_all());
                    plain.put_back(rest.plain);
                    intake.reroute(&rest.pushed, &job);
                    pushed::fetch(self, &job, &intake, rest.pushed).await?;
                }
                None => job.route_is_done(pushed_samples),
            }
            Ok::<_, Error>(())
        };
        let plain_route = async {
            plain::fetch(self, job, &intake, &plain, gets).await?;
            job.route_is_done(plain_samples);
            Ok::<_, Error>(())
        };
        futures::try_join!(pushed_route, plain_route)?;
        // The samples that the gateway did not deliver: all of them if the engines differ.
        plain::fetch(self, job, &intake, &PlainQueue::new(intake.missing()), max_gets).await?;
        let finished = intake.finish().await;
        if let Some(adapter) = &self.adapter {
            adapter.observe(adapter.batch_end(job.samples_left));
        }
        if let Some(charge) = &job.charge {
            charge.settle();
        }
        let rows = finished
            .into_iter()
            .zip(&job.samples)
            .map(|((stage, value), sample)| Row {
                position: sample.position,
                index: sample.index,
                key: Arc::clone(&self.objects[sample.index].key),
                stage,
                value,
            });
        Ok(Batch::new(job.number, rows.collect()))
    }

    /// Divides slots by the route of their samples.
    fn route(&self, job: &BatchJob, slots: Vec<usize>) -> RoutedSlots {
        let (pushed, plain) = match self.mode() {
            Mode::Plain => (Vec::new(), slots),
            Mode::Pushdown => (slots, Vec::new()),
            Mode::Auto => slots.into_iter().partition(|slot| {
                let split = self.split_of(job.samples[*slot], job.assignment.as_deref());
                split != Split::At(0)
            }),
        };
        RoutedSlots { pushed, plain }
    }

    /// Counts a batch that is handed over, or returns its first error if [`OnError::Raise`] is set.
    pub(crate) fn hand_over(&self, batch: Batch) -> Result<Batch> {
        if let (OnError::Raise, Some((row, error))) = (self.on_error, batch.errors().next()) {
            add(&self.counters.errors, 1);
            let (bucket, key, position) = (&self.bucket, &row.key, row.position);
            let text = format!("s3://{bucket}/{key} (position {position}) cannot be delivered: {error}");
            return Err(Error::new(ErrorKind::Sample, text));
        }
        add(&self.counters.samples, batch.samples().count() as u64);
        add(&self.counters.errors, batch.errors().count() as u64);
        Ok(batch)
    }

    /// Bytes of a sample in memory: the maximum of its size on arrival and after the pipeline.
    pub(crate) fn expected_bytes(&self, sample: SampleRef, assignment: Option<&Assignment>) -> u64 {
        /// Assumed size of an object of unknown size: about the mean of a photo data set.
        const OBJECT_BYTES: u64 = 128 << 10;
        let stored = self.objects[sample.index].bytes.unwrap_or(OBJECT_BYTES);
        let kinds = self.pipeline.kinds();
        let arriving = match (self.mode(), self.split_of(sample, assignment)) {
            (Mode::Plain, _) | (_, Split::Smallest) => None,
            (_, Split::At(stage)) => kinds.get(usize::from(stage)),
            (_, Split::Full) => kinds.last(),
        };
        let bytes = |kind: Option<&pushdown::Kind>| kind.and_then(pushdown::Kind::bytes).unwrap_or(stored);
        bytes(arriving).max(bytes(kinds.last()))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_planned_route_that_is_done_lets_the_next_batch_begin_and_a_trial_does_not() {
        for (samples, begins) in [(0, false), (3, false), (4, true), (28, true)] {
            let sample = |index| SampleRef {
                index,
                position: index as u64,
            };
            let job = BatchJob {
                number: 0,
                samples: (0..32).map(sample).collect(),
                epoch: 0,
                samples_left: 0,
                assignment: None,
                charge: None,
                progress: Arc::new(BatchProgress::new()),
            };
            job.route_is_done(samples);
            let half = job.progress.wait_for_half().now_or_never();
            assert_eq!(half.is_some(), begins, "{samples} of 32");
        }
    }
}
