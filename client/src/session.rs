//! Reads batches: fetches values, at whatever stage, and takes them through the rest of the pipeline.
//!
//! Both modes meet in [`Intake`]: a value that arrives at stage k, k = 0 for a plain object, runs through
//! `[k, n)` on the CPU pool.

mod gets;
mod intake;
mod kept;
mod plain;
mod progress;
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
    adapt::{Adapter, Assignment},
    batch::{Batch, Row},
    budget::Charge,
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    keep::Keep,
    order::Place,
    stats::{Counters, add},
    store::{Object, Store},
};
pub(crate) use gets::Gets;
use intake::Intake;
use plain::Queue;
pub(crate) use progress::Progress;

/// Objects that a batch reads at a time as they are while nothing is known.
const FEW: usize = 2;

/// Where the steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The prefix at the gateway, the suffix here.
    #[default]
    Pushdown,
    /// Each object as a plan has it. The first batches go both ways and tell what samples cost here, at the gateway and
    /// on the way; the plan follows from that, and changes when conditions do. Reading plainly is one of the plans.
    Auto,
    /// Everything here: objects are read directly, from a gateway or from any store.
    Plain,
}

/// What becomes of a sample that cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends the stream with an error that names it.
    #[default]
    Raise,
    /// It keeps its position as a row that has an error for a value.
    SkipAndReport,
}

/// Everything that reading a batch takes, the same for all batches.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) objects: Vec<Object>,
    pub(crate) pipeline: Pipeline,
    pub(crate) split: Split,
    /// Values before it are of no use in [`Mode::Auto`]: this host cannot run the models behind them.
    pub(crate) first_stage: usize,
    pub(crate) compression: Compression,
    pub(crate) mode: Mode,
    /// In [`Mode::Auto`].
    pub(crate) adapter: Option<Adapter>,
    pub(crate) keep: Option<Keep>,
    pub(crate) on_error: OnError,
    pub(crate) seed: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) gets: Gets,
    pub(crate) counters: Counters,
    /// What computes here.
    pub(crate) engine: Engine,
    /// Set when the gateway turns out to compute with another engine.
    pub(crate) fallen_back: AtomicBool,
    /// It was said that the gateway's models run otherwise.
    pub(crate) told_of_rounding: AtomicBool,
}

/// What to read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) places: Vec<Place>,
    pub(crate) epoch: u32,
    /// Samples of the epoch that come after these.
    pub(crate) left: usize,
    /// The ways of the objects, in [`Mode::Auto`].
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// `None` for what the consumer asked for at once.
    pub(crate) charge: Option<Arc<Charge>>,
    /// How far it has come.
    pub(crate) progress: Arc<Progress>,
}

impl Job {
    /// One side has brought all it was to: these samples.
    fn side_is_done(&self, samples: usize) {
        if samples * ReadAhead::MIN_SHARE_DENOMINATOR >= self.places.len() {
            self.progress.half();
        }
    }

    /// What is left of it to begin once the gateway is done with its part, while nothing is known: the gateway's as well.
    fn pushing(&self) -> Option<Self> {
        let assignment = self.assignment.as_ref()?.pushing()?;
        Some(Self {
            places: self.places.clone(),
            assignment: Some(Arc::new(assignment)),
            charge: self.charge.clone(),
            progress: Arc::clone(&self.progress),
            ..*self
        })
    }
}

impl Session {
    /// The mode in force: plain after the gateway turned out to be another engine's.
    pub(crate) fn mode(&self) -> Mode {
        if self.fallen_back.load(Relaxed) {
            Mode::Plain
        } else {
            self.mode
        }
    }

    /// Where the gateway stops with an object.
    pub(crate) fn split_of(&self, place: Place, assignment: Option<&Assignment>) -> Split {
        let stored = self.objects[place.index].bytes;
        let split = assignment.map_or(self.split, |plan| Split::At(plan.stage(place, stored)));
        self.up_to_what_is_kept(place.index, split)
    }

    /// The most bytes of the value of an object that stops there, where they are not known beforehand.
    pub(crate) fn most(&self, place: Place, split: Split, assignment: Option<&Assignment>) -> Option<u64> {
        let stored = self.objects[place.index].bytes;
        match split {
            Split::At(stage) => assignment?.most(stage, stored),
            Split::Full | Split::Smallest => None,
        }
    }

    /// The ways of the objects by the plan in force, in [`Mode::Auto`].
    pub(crate) fn assignment(&self) -> Option<Arc<Assignment>> {
        self.adapter.as_ref().map(Adapter::assignment)
    }

    /// Reads one batch.
    pub(crate) async fn read(self: &Arc<Self>, job: &Job) -> Result<Batch> {
        let intake = Intake::new(self, job);
        kept::fetch(self, job, &intake).await?;
        let (pushed, plain) = self.ways(job, intake.missing());
        let most = self.gets.count();
        // What has been begun is not taken back when the gateway turns out to be faster.
        let unknown = job.assignment.as_ref().is_some_and(|ways| ways.is_unknown());
        let few = if unknown && !pushed.is_empty() {
            most.min(FEW)
        } else {
            most
        };
        let (by_gateway, as_they_are) = (pushed.len(), plain.len());
        let plain = Queue::new(plain);
        let by_the_gateway = async {
            pushed::fetch(self, job, &intake, pushed).await?;
            match job.pushing().filter(|_| by_gateway > 0) {
                Some(job) => {
                    let (rest, left) = self.ways(&job, plain.take());
                    plain.put(left);
                    intake.go(&rest, &job);
                    pushed::fetch(self, &job, &intake, rest).await?;
                }
                None => job.side_is_done(by_gateway),
            }
            Ok::<_, Error>(())
        };
        let directly = async {
            plain::fetch(self, job, &intake, &plain, few).await?;
            job.side_is_done(as_they_are);
            Ok::<_, Error>(())
        };
        futures::try_join!(by_the_gateway, directly)?;
        // What the gateway left: all of it when the engines turned out to differ.
        plain::fetch(self, job, &intake, &Queue::new(intake.missing()), most).await?;
        let finished = intake.finish().await;
        if let Some(adapter) = &self.adapter {
            adapter.batch_done(job.left, self.store.traffic());
        }
        if let Some(charge) = &job.charge {
            charge.settle();
        }
        let rows = finished
            .into_iter()
            .zip(&job.places)
            .map(|((stage, value), place)| Row {
                position: place.position,
                index: place.index,
                key: Arc::clone(&self.objects[place.index].key),
                stage,
                value,
            });
        Ok(Batch::new(job.number, rows.collect()))
    }

    /// Of these slots those that go by the gateway, and those that are read as they are.
    fn ways(&self, job: &Job, slots: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        match self.mode() {
            Mode::Plain => (Vec::new(), slots),
            Mode::Pushdown => (slots, Vec::new()),
            Mode::Auto => slots.into_iter().partition(|slot| {
                let split = self.split_of(job.places[*slot], job.assignment.as_deref());
                split != Split::At(0)
            }),
        }
    }

    /// Counts a batch that is handed over, or raises its first error if that is asked for.
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

    /// What a sample will hold in memory: when it arrives and at the end, whichever is more.
    pub(crate) fn expected_bytes(&self, place: Place, assignment: Option<&Assignment>) -> u64 {
        /// For an object whose size is not known: about the mean of a photo data set.
        const OBJECT: u64 = 128 << 10;
        let stored = self.objects[place.index].bytes.unwrap_or(OBJECT);
        let kinds = self.pipeline.kinds();
        let arriving = match (self.mode(), self.split_of(place, assignment)) {
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
    fn a_side_with_a_part_in_the_plan_that_is_done_lets_the_next_batch_begin_and_a_trial_does_not() {
        for (samples, begins) in [(0, false), (3, false), (4, true), (28, true)] {
            let place = |index| Place {
                index,
                position: index as u64,
            };
            let job = Job {
                number: 0,
                places: (0..32).map(place).collect(),
                epoch: 0,
                left: 0,
                assignment: None,
                charge: None,
                progress: Arc::new(Progress::new()),
            };
            job.side_is_done(samples);
            let half = job.progress.past_half().now_or_never();
            assert_eq!(half.is_some(), begins, "{samples} of 32");
        }
    }
}
