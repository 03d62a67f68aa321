//! Chooses the split of each row group: rows are the samples of a planner, and splits are its stages.

mod spans;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arrow_array::RecordBatch;
use http::HeaderMap;
use pushdown::{
    Step, Table,
    plan::{Decision, Replanner, Rules, SetupCosts, StepCost},
};
use pushdown_exec::sync::Mutex;

use self::spans::StepSpans;
use super::{host_times::InnerTime, splits::RowSplit};
use crate::{
    models::models_of,
    planning::{GatewayCpus, ServerTiming, SplitBytes, cpus, float},
    store::RateSamples,
};

/// Before the first plan, one of this many row groups is read plainly,
const EXPLORATION_PERIOD: usize = 4;
/// among the first ones of an epoch.
const EXPLORED_GROUPS: usize = 12;
/// At most one of this many row groups tries another split than most.
const TRIAL_PERIOD: u64 = 16;
/// At least this fraction of row groups does. Otherwise a link that became fast would never be measured again.
const MIN_TRIAL_FRACTION: f64 = 1.0 / 1024.0;
/// Multiples of it, without their whole part, are spread evenly.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// What is known of the costs of rows, and the plan that follows from it.
#[derive(Debug)]
pub(super) struct RowPlanner {
    /// The splits that are possible, by stage of the planner. The first one is plain reading.
    splits: Vec<usize>,
    spans: StepSpans,
    /// Name of the first step.
    first_step: &'static str,
    /// The stage with the fewest bytes.
    smallest: usize,
    /// The text of the pipeline.
    pipeline: String,
    size: ReaderSize,
    /// Identifies the CPUs that run steps on this host.
    cpus: Option<String>,
    /// Ranks that share the gateway: each reads its rows at the same time.
    ranks: f64,
    /// Row groups that were read at a split of a plan, over all epochs.
    planned_groups: AtomicU64,
    replanner: Mutex<Replanner>,
}

/// What the planner of a reader of rows has observed, and the plan made from it.
///
/// A reader that [continues](crate::reader::PushdownReaderBuilder::row_observations) with it begins with this plan, instead of trying plain reading
/// again.
#[derive(Debug, Clone)]
pub struct RowObservations(Arc<RowPlanner>);

/// What a reader of rows runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReaderSize {
    /// Threads that run steps on this host.
    pub(super) threads: usize,
    /// Ranks that read the data set together.
    pub(super) ranks: usize,
}

/// What it cost to read rows.
#[derive(Debug)]
pub(super) enum ReadCost {
    /// CPU time of this host for stored columns, and the rate at which they arrived.
    Host { time: Duration, rate: RateSamples },
    /// What the gateway's answer states.
    Gateway(HeaderMap),
}

impl RowPlanner {
    /// A planner without observations, of the splits that satisfy `is_possible`. `smallest` is the one with the fewest bytes.
    ///
    /// `None` if the bytes of stored columns are unknown, or if this host would have to download a model.
    pub(super) fn new(
        splits: &[RowSplit],
        is_possible: impl Fn(usize) -> bool,
        smallest: usize,
        bytes: &SplitBytes,
        size: ReaderSize,
    ) -> Option<Self> {
        let ReaderSize { threads, ranks } = size;
        let pipeline = &splits.first()?.pipeline;
        if models_of(pipeline.steps()).iter().any(|model| !model.is_local()) {
            return None;
        }
        let row_bytes = |split: usize| bytes.row_bytes.get(split).copied().flatten();
        let stored_bytes = row_bytes(0)?;
        let splits_of_stages: Vec<usize> = (0..splits.len())
            .filter(|split| *split == 0 || is_possible(*split))
            .collect();
        let cost = |split: &usize| StepCost {
            output_bytes: row_bytes(*split),
            macs: 0,
            needs_model: false,
        };
        let steps: Vec<_> = splits_of_stages.iter().skip(1).map(cost).collect();
        let classes = [(1.0, float(stored_bytes))];
        let stages = splits_of_stages.iter().map(|split| splits[*split].stage);
        Some(Self {
            spans: StepSpans::new(pipeline, stages.collect()),
            first_step: pipeline.steps().first().map_or("", Step::name),
            smallest: splits_of_stages.iter().position(|split| *split == smallest)?,
            splits: splits_of_stages,
            pipeline: pipeline.to_string(),
            size,
            cpus: cpus::name(threads),
            ranks: float(ranks.max(1) as u64),
            planned_groups: AtomicU64::new(0),
            replanner: Mutex::new(Replanner::new(&steps, &classes, float(threads as u64))),
        })
    }

    /// The planner of an earlier reader, if it plans the same, or this one.
    pub(super) fn continuing(self, known: Option<RowObservations>) -> Arc<Self> {
        let is_same = |known: &Arc<Self>| {
            let steps = known.pipeline == self.pipeline && known.splits == self.splits;
            steps && known.smallest == self.smallest && known.size == self.size
        };
        let known = known.map(|known| known.0).filter(is_same);
        known.unwrap_or_else(|| Arc::new(self))
    }

    /// What is known so far; `None` before the first plan.
    pub(super) fn observations(self: &Arc<Self>) -> Option<RowObservations> {
        self.replanner.lock().decision()?;
        Some(RowObservations(Arc::clone(self)))
    }

    /// The split of a row group, by its number in this epoch.
    pub(super) fn split(&self, number: usize) -> usize {
        let replanner = self.replanner.lock();
        let stage = match replanner.decision() {
            // Counted over all epochs, since one may have too few row groups for a trial.
            Some(decision) => {
                let number = self.planned_groups.fetch_add(1, Relaxed);
                planned_stage(decision, number, self.smallest)
            }
            None if number < EXPLORED_GROUPS && number % EXPLORATION_PERIOD == 1 => 0,
            None => self.smallest,
        };
        self.splits.get(stage).copied().unwrap_or_default()
    }

    /// The split of most row groups.
    pub(super) fn main_split(&self) -> usize {
        let replanner = self.replanner.lock();
        let stage = replanner
            .decision()
            .map_or(self.smallest, |decision| main_stage(decision, self.smallest));
        self.splits.get(stage).copied().unwrap_or_default()
    }

    /// Takes what it cost to read rows up to a split, and plans the next row groups.
    pub(super) fn observe_read(&self, split: usize, rows: &Table, cost: &ReadCost) {
        let Some(stage) = self.splits.iter().position(|known| *known == split) else {
            return;
        };
        let mut replanner = self.replanner.lock();
        match cost {
            ReadCost::Host { time, rate } => {
                if rows.rows() > 0 {
                    let seconds = time.as_secs_f64() / float(rows.rows());
                    replanner.observe_host_seconds(0, 0, 1, seconds);
                }
                if rate.count > 0 {
                    replanner.link_mut().observe_bandwidth(rate.max_bytes_per_second);
                }
            }
            ReadCost::Gateway(headers) => {
                // The answer begins with its first record batch, and so its head knows the time of that one.
                let first_rows = rows.batches().first().map_or(0, RecordBatch::num_rows);
                let phases = ServerTiming::from_headers(headers).phases();
                let phases = phases.filter(|(name, _)| [self.first_step, "model"].contains(name));
                let seconds: f64 = phases.map(|(_, seconds)| seconds).sum();
                if first_rows > 0 && seconds > 0.0 {
                    let row_seconds = seconds / float(first_rows as u64);
                    replanner.observe_gateway_seconds(0, stage, row_seconds);
                }
                let gateway = GatewayCpus::from_headers(headers);
                if let Some(cores) = gateway.cores {
                    replanner.set_gateway_cores(cores / self.ranks);
                }
                replanner.set_shared(gateway.fingerprint.is_some() && gateway.fingerprint == self.cpus);
            }
        }
        plan(&mut replanner);
    }

    /// Takes the times of the steps that this host ran on rows of a split.
    pub(super) fn observe_steps(&self, split: usize, rows: u64, times: &[InnerTime]) {
        let Some(stage) = self.splits.iter().position(|known| *known == split) else {
            return;
        };
        if rows == 0 {
            return;
        }
        let mut replanner = self.replanner.lock();
        for (steps, seconds) in self.spans.of_rest(stage.max(1), times) {
            let row_seconds = seconds / float(rows);
            replanner.observe_host_seconds(0, steps.start, steps.len(), row_seconds);
        }
    }
}

/// Plans again. Without a measured link there is no plan, since nothing is known about what pushdown saves.
fn plan(replanner: &mut Replanner) {
    if replanner.link_mut().bytes_per_second().is_none() {
        return;
    }
    let before = replanner
        .decision()
        .map(|decision| decision.plan.fractions.clone());
    if let Some(decision) = replanner.next_batch(SetupCosts::default(), &Rules::default())
        && before.as_ref() != Some(&decision.plan.fractions)
    {
        tracing::info!(
            rows_per_second = 1.0 / decision.plan.load.seconds(),
            bound = ?decision.plan.load.bound(),
            tiers = ?decision.tiers,
            fractions = ?decision.plan.fractions,
            "planned row groups"
        );
    }
}

/// The stages that a plan uses, with their fractions.
fn fractions(decision: &Decision) -> impl Iterator<Item = (usize, f64)> {
    let classes = decision.classes.iter().zip(&decision.plan.fractions);
    classes.flat_map(|(class, fractions)| {
        let taken = class.candidates.iter().zip(fractions);
        taken.map(|(candidate, fraction)| (candidate.stage, *fraction))
    })
}

fn main_stage(decision: &Decision, smallest: usize) -> usize {
    let main = fractions(decision).max_by(|(_, a), (_, b)| a.total_cmp(b));
    main.map_or(smallest, |(stage, _)| stage)
}

/// The stage of a row group by the fractions of a plan. Some row groups try plain reading, or the fewest bytes, so that changed costs
/// are noticed: as many as the plan has time for, and at least a few.
fn planned_stage(decision: &Decision, number: u64, smallest: usize) -> usize {
    let main = main_stage(decision, smallest);
    let trial = if main == 0 { smallest } else { 0 };
    let fraction = decision.trial_fraction(&decision.plan, trial);
    let fraction = fraction.clamp(MIN_TRIAL_FRACTION, 1.0 / float(TRIAL_PERIOD));
    // The row groups at which the number of trials so far goes up.
    let trials = |groups: u64| (float(groups) * fraction).floor();
    if trials(number + 1) > trials(number) {
        return trial;
    }
    let place = (float(number) * GOLDEN_RATIO).fract();
    let mut sum = 0.0;
    for (stage, fraction) in fractions(decision) {
        sum += fraction;
        if place < sum {
            return stage;
        }
    }
    main
}

#[cfg(test)]
mod tests;
