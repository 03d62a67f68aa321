//! Feeds the planner of rows: rows are its samples, and the places where they can be handed over, also inside of `each`, its stages. It
//! chooses the stage of each row group.

mod host_times;
mod step_spans;

use std::time::Duration;

use arrow_array::RecordBatch;
use http::HeaderMap;
use pushdown::{
    Pipeline, Step, Table,
    pipeline::RowStage,
    plan::{Decision, Path, Rules, SetupCosts, Stage, StepCost},
};
use pushdown_exec::sync::Mutex;

pub(crate) use self::host_times::HostTimes;
use self::{host_times::InnerTime, step_spans::StepSpans};
use super::{
    Observations, PlanReport, PlannedSamples, SplitBytes,
    exploration::{StageFractions, is_explored_group, is_group_trial},
    observations::KnownSamples,
    planner::Planner,
};
use crate::{
    measure::{GatewayCpus, RateSamples, ServerTiming, float},
    weights::models_of,
};

/// What is known of the costs of rows, and the plan that follows from it.
#[derive(Debug)]
pub(crate) struct RowPlanner {
    pipeline: Pipeline,
    /// The splits that are possible, by stage of the planner. The first one is plain reading.
    splits: Vec<usize>,
    /// Where they hand rows over.
    stages: Vec<RowStage>,
    spans: StepSpans,
    /// Name of the first step.
    first_step: &'static str,
    /// The stage with the fewest bytes.
    smallest: usize,
    /// Ranks that share the gateway: each reads its rows at the same time.
    ranks: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    planner: Planner,
    /// Row groups that were read at a split of a plan, over all epochs.
    planned_groups: u64,
}

/// What is known of rows besides costs.
#[derive(Debug, Clone)]
pub(super) struct KnownRows {
    splits: Vec<usize>,
    smallest: usize,
    ranks: usize,
    planned_groups: u64,
}

/// What a reader of rows runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReaderSize {
    /// Threads that run steps on this host.
    pub(crate) threads: usize,
    /// Ranks that read the data set together.
    pub(crate) ranks: usize,
}

/// What it cost to read rows.
#[derive(Debug)]
pub(crate) enum ReadCost {
    /// CPU time of this host for stored columns, and the rate at which they arrived.
    Host { time: Duration, rate: RateSamples },
    /// What the answer of a replica states. All of them have `cores_ratio` times its cores, and share the row groups.
    Gateway { headers: HeaderMap, cores_ratio: f64 },
}

impl RowPlanner {
    /// A planner without observations, of a pipeline whose rows can be handed over at the stages of `splits`, if they satisfy
    /// `is_possible`. `smallest` is the split with the fewest bytes.
    ///
    /// `None` if the bytes of stored columns are unknown, or if this host would have to download a model.
    pub(crate) fn new(
        pipeline: &Pipeline,
        splits: &[RowStage],
        is_possible: impl Fn(usize) -> bool,
        smallest: usize,
        bytes: &SplitBytes,
        size: ReaderSize,
    ) -> Option<Self> {
        if models_of(pipeline.steps()).iter().any(|model| !model.is_local()) {
            return None;
        }
        let row_bytes = |split: usize| bytes.row_bytes.get(split).copied().flatten();
        let stored_bytes = row_bytes(0)?;
        let possible: Vec<usize> = (0..splits.len())
            .filter(|split| *split == 0 || is_possible(*split))
            .collect();
        let cost = |split: &usize| StepCost {
            output_bytes: row_bytes(*split),
            macs: 0,
            needs_model: false,
        };
        let steps: Vec<_> = possible.iter().skip(1).map(cost).collect();
        let stages: Vec<_> = possible.iter().map(|split| splits[*split]).collect();
        let planner = Planner::new(&steps, &[(1.0, float(stored_bytes))], size.threads);
        Some(Self {
            pipeline: pipeline.clone(),
            spans: StepSpans::new(pipeline, stages.clone()),
            stages,
            first_step: pipeline.steps().first().map_or("", Step::name),
            smallest: possible.iter().position(|split| *split == smallest)?,
            splits: possible,
            ranks: size.ranks.max(1),
            state: Mutex::new(State {
                planner,
                planned_groups: 0,
            }),
        })
    }

    /// Begins with what an earlier reader has observed, if it planned the same.
    pub(crate) fn with_observations(self, known: Observations) -> Self {
        let mut state = self.state.into_inner();
        if let Some((planner, KnownSamples::Rows(known))) = known.for_reader(&self.pipeline, &state.planner)
            && known.splits == self.splits
            && (known.smallest, known.ranks) == (self.smallest, self.ranks)
        {
            state = State {
                planner,
                planned_groups: known.planned_groups,
            };
        }
        Self {
            state: Mutex::new(state),
            ..self
        }
    }

    /// What is known so far; `None` before the first plan.
    pub(crate) fn observations(&self) -> Option<Observations> {
        let state = self.state.lock();
        let known = KnownRows {
            splits: self.splits.clone(),
            smallest: self.smallest,
            ranks: self.ranks,
            planned_groups: state.planned_groups,
        };
        Observations::new(&self.pipeline, &state.planner, KnownSamples::Rows(known))
    }

    /// The plan in force, if there is one.
    pub(crate) fn plan_report(&self) -> Option<PlanReport> {
        let state = self.state.lock();
        Some(PlanReport {
            pipeline: self.pipeline.clone(),
            decision: state.planner.decision()?.clone(),
            samples: PlannedSamples::Rows {
                stages: self.stages.clone(),
            },
            changes: state.planner.changes(),
        })
    }

    /// The split of a row group, by its number in this epoch.
    pub(crate) fn split(&self, number: usize) -> usize {
        let mut state = self.state.lock();
        let stage = match state.planner.decision() {
            // Counted over all epochs, since one may have too few row groups for a trial.
            Some(decision) => {
                let stage = planned_stage(decision, state.planned_groups, self.smallest);
                state.planned_groups += 1;
                stage
            }
            None if is_explored_group(number) => 0,
            None => self.smallest,
        };
        self.split_of(stage)
    }

    /// The split of most row groups.
    pub(crate) fn main_split(&self) -> usize {
        let state = self.state.lock();
        let decision = state.planner.decision();
        self.split_of(decision.map_or(self.smallest, |decision| main_stage(decision, self.smallest)))
    }

    fn split_of(&self, stage: usize) -> usize {
        self.splits.get(stage).copied().unwrap_or_default()
    }

    /// Takes what it cost to read rows up to a split, and plans the next row groups.
    pub(crate) fn observe_read(&self, split: usize, rows: &Table, cost: &ReadCost) {
        let Some(stage) = self.splits.iter().position(|known| *known == split) else {
            return;
        };
        let planner = &mut self.state.lock().planner;
        match cost {
            ReadCost::Host { time, rate } => {
                if rows.rows() > 0 {
                    let seconds = time.as_secs_f64() / float(rows.rows());
                    planner.replanner.observe_host_seconds(0, 0, 1, seconds);
                }
                if rate.count > 0 {
                    let links = planner.replanner.links_mut();
                    links.observe_bandwidth(Path::Store, rate.max_bytes_per_second);
                }
            }
            ReadCost::Gateway { headers, cores_ratio } => {
                // The answer begins with its first record batch, and so its head knows the time of that one.
                let first_rows = rows.batches().first().map_or(0, RecordBatch::num_rows);
                let phases = ServerTiming::from_headers(headers).phases();
                let phases = phases.filter(|(name, _)| [self.first_step, "model"].contains(name));
                let seconds: f64 = phases.map(|(_, seconds)| seconds).sum();
                if first_rows > 0 && seconds > 0.0 {
                    let row_seconds = seconds / float(first_rows as u64);
                    planner.replanner.observe_gateway_seconds(0, stage, row_seconds);
                }
                let part = cores_ratio / float(self.ranks as u64);
                planner.observe_gateway_cpus(&GatewayCpus::from_headers(headers), part);
            }
        }
        // Without a measured link there is no plan, since nothing is known about what pushdown saves.
        if planner.replanner.links().is_measured() {
            planner.plan(SetupCosts::default(), &Rules::default());
        }
    }

    /// Takes the times of the steps that this host ran on rows of a split.
    pub(crate) fn observe_steps(&self, split: usize, rows: u64, times: &HostTimes) {
        self.observe_times(split, rows, &times.times());
    }

    fn observe_times(&self, split: usize, rows: u64, times: &[InnerTime]) {
        let Some(stage) = self.splits.iter().position(|known| *known == split) else {
            return;
        };
        if rows == 0 {
            return;
        }
        let planner = &mut self.state.lock().planner;
        for (steps, seconds) in self.spans.of_rest(stage.max(1), times) {
            let row_seconds = seconds / float(rows);
            planner
                .replanner
                .observe_host_seconds(0, steps.start, steps.len(), row_seconds);
        }
    }
}

/// The stages that a plan uses, with their fractions.
fn fractions(decision: &Decision) -> impl Iterator<Item = (Stage, f64)> {
    let classes = decision.classes.iter().zip(&decision.plan.fractions);
    let all = classes.flat_map(|(class, fractions)| {
        let taken = class.candidates.iter().zip(fractions);
        taken.map(|(candidate, fraction)| (candidate.stage, *fraction))
    });
    all.filter(|(_, fraction)| *fraction > 0.0)
}

fn main_stage(decision: &Decision, smallest: usize) -> usize {
    let main = fractions(decision).max_by(|(_, a), (_, b)| a.total_cmp(b));
    main.map_or(smallest, |(stage, _)| stage.steps())
}

/// The stage of a row group by the fractions of a plan. Some row groups try plain reading, or the fewest bytes, so that changed costs
/// are noticed: as many as the plan has time for, and at least a few.
fn planned_stage(decision: &Decision, number: u64, smallest: usize) -> usize {
    let trial = if main_stage(decision, smallest) == 0 {
        smallest
    } else {
        0
    };
    if is_group_trial(
        number,
        decision.trial_fraction(&decision.plan, Stage::after(trial)),
    ) {
        return trial;
    }
    StageFractions::new(fractions(decision)).stage(number).steps()
}

#[cfg(test)]
mod tests;
