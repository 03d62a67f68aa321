//! Reads batches: fetches values, at any stage, and runs the rest of the pipeline on them.
//!
//! All modes meet in [`Intake`]: a value that arrives at stage k, k = 0 for a plain object, runs through `[k, n)` on the
//! CPU pool.

mod cached;
mod epoch;
mod gateway_loss;
mod get_permits;
mod intake;
mod job;
mod plain;
mod pushed;
mod reader;
mod replicas;
mod routes;
mod shard_streams;
mod steps;
mod warm_up;

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use pushdown::{
    Engine, Limits, Pipeline,
    wire::{Compression, Split},
};

use crate::{
    batch::{Batch, Row},
    cpu::CpuPool,
    epoch::{Promises, SavedState, order::SampleRef},
    error::{Error, Result},
    error_policy::ErrorPolicy,
    monitor::Monitored,
    objects::Objects,
    planning::{Adapter, Mode, Observations, PlanReport, SamplesLeft},
    sign::check_members,
    stats::Counters,
    store::Store,
    value_cache::ValueCache,
};
use cached::Lookups;
pub(crate) use get_permits::GetPermits;
use intake::Intake;
use job::BatchJob;
use plain::PlainQueue;
pub use reader::PushdownReader;
pub(crate) use replicas::ReplicaUse;
use routes::{BatchRoutes, SampleRoute};
use shard_streams::ShardStreams;
pub use warm_up::WarmUp;

/// What a reader of objects or members promises.
pub(crate) const PROMISES: Promises = Promises {
    is_counted: true,
    state: SavedState::StartPosition,
};
/// Plain reads that a batch has in flight while nothing is known.
const EXPLORATION_GETS: usize = 2;

/// Everything needed to read a batch, the same for all batches.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) store: Store,
    pub(crate) objects: Objects,
    pub(crate) pipeline: Pipeline,
    pub(crate) split: Split,
    /// The first usable stage in [`Mode::Auto`]: this host cannot run models after an earlier one.
    pub(crate) first_stage: usize,
    pub(crate) compression: Compression,
    pub(crate) mode: Mode,
    /// Set in [`Mode::Auto`].
    pub(crate) adapter: Option<Adapter>,
    pub(crate) value_cache: Option<ValueCache>,
    pub(crate) error_policy: ErrorPolicy,
    pub(crate) seed: Option<u64>,
    /// The first epoch.
    pub(crate) first_epoch: u32,
    /// Epochs that are read, including the first one.
    pub(crate) epochs: NonZeroU32,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) gets: GetPermits,
    pub(crate) counters: Counters,
    pub(crate) replica_use: ReplicaUse,
    /// Set if the gateway caches the values and does not deliver them.
    pub(crate) warm: Option<WarmUp>,
    /// The engine of this host: all families, and the model runtime if this host may run models.
    pub(crate) engine: Engine,
    /// The most steps that the gateway may run: `usize::MAX` at first, fewer than all once its engine turns out to differ from
    /// this host's, 0 if everything is to be read plainly. It only decreases.
    pub(crate) max_stage: AtomicUsize,
    /// Whether the gateway had no time for a batch despite all retries, and has computed none since. Until it does, a plan that may read
    /// plainly does not retry.
    pub(crate) is_overloaded: AtomicBool,
    /// Whether samples of the last batch failed at the gateway through all retries: those of the next one are read plainly at once.
    pub(crate) has_failing_rows: AtomicBool,
    /// Whether it was logged that the gateway lives, and batches at it fail.
    pub(crate) loss_warning_logged: AtomicBool,
    /// Whether the log has the warning that the gateway's models round differently.
    pub(crate) rounding_warning_logged: AtomicBool,
}

/// Slots of a batch by the route of their samples.
struct RoutedSlots {
    pushed: Vec<usize>,
    plain: Vec<usize>,
}

impl Monitored for Session {
    fn store(&self) -> &Store {
        &self.store
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn mode(&self) -> Mode {
        self.mode()
    }

    fn plan(&self) -> Option<PlanReport> {
        self.adapter.as_ref()?.plan_report()
    }

    fn observations(&self) -> Option<Observations> {
        self.adapter.as_ref()?.observations()
    }
}

impl Session {
    /// The mode in force: plain after the gateway turned out to have another engine.
    fn mode(&self) -> Mode {
        if self.max_stage() == 0 {
            Mode::Plain
        } else {
            self.mode
        }
    }

    /// The most steps that the gateway may run.
    pub(crate) fn max_stage(&self) -> usize {
        self.max_stage.load(Relaxed)
    }

    /// Whether the gateway may not run all steps.
    fn is_limited(&self) -> bool {
        self.max_stage() != usize::MAX
    }

    /// Lets the gateway run only the first `stage` steps from now on. Logged once.
    fn limit_stage(&self, stage: usize, why: &str) {
        let before = self.max_stage.fetch_min(stage, Relaxed);
        if before <= stage {
            return;
        }
        if stage == 0 {
            tracing::warn!(
                why,
                "falling back to plain reading: the whole pipeline runs on this host"
            );
        } else {
            tracing::warn!(
                why,
                stage,
                "the gateway runs only the first steps: this host runs the rest"
            );
        }
    }

    /// Epochs that are still to be read, including `epoch`; at least 1.
    pub(crate) fn epochs_left(&self, epoch: u32) -> u32 {
        let done = epoch.saturating_sub(self.first_epoch);
        self.epochs.get().saturating_sub(done).max(1)
    }

    /// Reads one batch.
    pub(crate) async fn read(self: &Arc<Self>, job: &BatchJob) -> Result<Batch> {
        let intake = Intake::new(self, job);
        for (slot, sample) in job.samples.iter().enumerate() {
            if let Err(error) = check_members(&self.objects, sample.index) {
                intake.failed(slot, error)?;
            }
        }
        let mut lookups = Lookups::new();
        loop {
            let slots = lookups.next_slots(self, job, &intake).await?;
            if slots.is_empty() {
                break;
            }
            self.fetch(job, &intake, slots).await?;
        }
        if let Some(streams) = &job.shard_streams {
            streams.end_batch(job.number);
        }
        let finished = intake.finish().await;
        if let Some(adapter) = &self.adapter {
            adapter.observe(adapter.batch_end(SamplesLeft {
                samples: job.samples_left,
                later_epochs: self.epochs_left(job.epoch) - 1,
            }));
        }
        let rows = finished.into_iter().zip(&job.samples).map(|(finished, sample)| {
            let object = self.objects.object(sample.index);
            Row {
                position: sample.position,
                index: sample.index,
                key: object.key.into(),
                member: object.member.map(|member| member.name.into()),
                is_padding: sample.is_padding,
                stage: finished.stage,
                value: finished.value,
                columns: finished.columns,
            }
        });
        Ok(Batch::new(job.number, rows.collect()))
    }

    /// Reads the values of these slots from the endpoint.
    async fn fetch(self: &Arc<Self>, job: &BatchJob, intake: &Intake<'_>, slots: Vec<usize>) -> Result<()> {
        let RoutedSlots { pushed, plain } = self.divide(job, slots.clone());
        let max_gets = self.gets.count();
        // Reads that have begun are not cancelled when the gateway turns out to be faster.
        let gets = if job.routes.is_exploring() && !pushed.is_empty() {
            max_gets.min(EXPLORATION_GETS)
        } else {
            max_gets
        };
        let (pushed_samples, plain_samples) = (pushed.len(), plain.len());
        let plain = PlainQueue::new(&self.objects, job, plain);
        let pushed_route = async {
            let is_served = pushed::fetch(self, job, intake, pushed).await?;
            if is_served && job.routes.is_exploring() && pushed_samples > 0 {
                let rest = self.reroute(job, intake, plain.take_all());
                plain.put_back(rest.plain);
                pushed::fetch(self, job, intake, rest.pushed).await?;
            } else {
                job.route_is_done(pushed_samples);
            }
            Ok::<_, Error>(())
        };
        let plain_route = async {
            plain::fetch(self, job, intake, &plain, gets).await?;
            job.route_is_done(plain_samples);
            Ok::<_, Error>(())
        };
        futures::try_join!(pushed_route, plain_route)?;
        // The samples that the gateway did not deliver: all of them if the engines differ from the first step on.
        let mut missing = intake.missing();
        missing.retain(|slot| slots.binary_search(slot).is_ok());
        let missing = PlainQueue::new(&self.objects, job, missing);
        plain::fetch(self, job, intake, &missing, max_gets).await
    }

    /// Divides slots by the route of their samples.
    fn divide(&self, job: &BatchJob, slots: Vec<usize>) -> RoutedSlots {
        let (pushed, plain) = match self.mode() {
            Mode::Plain => (Vec::new(), slots),
            Mode::Pushdown if !self.is_limited() => (slots, Vec::new()),
            Mode::Pushdown | Mode::Auto => slots
                .into_iter()
                .partition(|slot| !job.routes.get(*slot).is_plain()),
        };
        RoutedSlots { pushed, plain }
    }

    /// Once the gateway is done with its part of a batch that is exploring: pushes down the samples that have not begun.
    fn reroute(&self, job: &BatchJob, intake: &Intake<'_>, slots: Vec<usize>) -> RoutedSlots {
        self.push_all(&job.routes, &job.samples, &slots);
        let routed = self.divide(job, slots);
        for slot in &routed.pushed {
            intake.reroute(*slot);
        }
        routed
    }

    /// Bytes of samples with these routes in memory: of each the maximum of its size on arrival and after the pipeline.
    pub(crate) fn expected_bytes(&self, samples: &[SampleRef], routes: &BatchRoutes) -> u64 {
        let splits = routes.splits();
        let pairs = samples.iter().zip(splits);
        pairs
            .map(|(sample, split)| self.sample_bytes(*sample, split))
            .fold(0, u64::saturating_add)
    }

    /// The same of one sample, with its further columns.
    fn sample_bytes(&self, sample: SampleRef, split: Split) -> u64 {
        /// Assumed size of an object of unknown size: about the mean of a photo data set.
        const OBJECT_BYTES: u64 = 128 << 10;
        let stored = self.objects.bytes(sample.index).unwrap_or(OBJECT_BYTES);
        let kinds = self.pipeline.kinds();
        let arriving = match (self.mode(), split) {
            (Mode::Plain, _) | (_, Split::Smallest) => None,
            (_, Split::At(stage)) => kinds.get(usize::from(stage)),
            (_, Split::Full) => kinds.last(),
        };
        let bytes = |kind: Option<&pushdown::Kind>| kind.and_then(pushdown::Kind::bytes).unwrap_or(stored);
        let columns = 0..self.objects.columns().len();
        let columns = columns.filter_map(|column| self.objects.column_member(sample.index, column));
        let columns = columns.map(|column| column.range.size());
        columns.fold(bytes(arriving).max(bytes(kinds.last())), u64::saturating_add)
    }
}
