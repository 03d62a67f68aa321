//! Feeds the planner: what is seen while samples are read becomes the plan for the next batches.

mod assignment;
mod classes;
pub(crate) mod cpus;
mod look;
mod on_the_way;
mod planned;
mod since;
mod unable;
mod unlisted;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use pushdown::{
    Pipeline, StepTiming,
    plan::{LoadingCost, Plan, Replanner, Rules, SetupCosts},
    step::model::Model,
    wire::{CpuTime, Split},
};
use tokio::sync::watch;

pub(crate) use assignment::Assignment;
use assignment::Ground;
use classes::classes;
pub(crate) use on_the_way::Awaited;
pub use planned::Planned;
use since::Since;
pub(crate) use unable::behind_models;
use unlisted::Unlisted;

pub(crate) use crate::profile::float;
use crate::{
    meter::Meter,
    models::{of_steps, prepare},
    stats::Traffic,
    store::Object,
};

/// Batches that go both ways, before there is a plan.
pub(crate) const EXPLORING: usize = 2;

/// What a reader in [`Mode::Auto`](crate::Mode::Auto) knows.
#[derive(Debug)]
pub(crate) struct Adapter {
    pipeline: Pipeline,
    models: Vec<Arc<Model>>,
    ground: Arc<Ground>,
    /// Whether the size of every object was known beforehand.
    listed: bool,
    /// Objects of an epoch.
    samples: usize,
    /// And of a batch.
    batch_size: usize,
    /// What names the CPUs that steps run on here.
    cpus: Option<String>,
    state: Mutex<State>,
    planned: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    replanner: Replanner,
    host_cores: f64,
    assignment: Arc<Assignment>,
    /// Of the objects where not all are listed.
    unlisted: Unlisted,
    meter: Meter,
    batches: usize,
    changes: u64,
    /// Weights that were lacking have been sent for.
    fetching: bool,
    /// Batches that were asked for and are not here.
    under_way: usize,
    /// Samples of batches that have begun and are not done.
    begun: usize,
    /// Since when it is told what happens in a time, and what had happened by then; from the first object that was asked
    /// for.
    since: Option<Since>,
    /// What the gateway's CPUs have done, as it told last.
    gateway_cpu: Option<CpuTime>,
}

/// A value that the gateway sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) stage: u8,
    pub(crate) bytes: u64,
    /// That the steps took.
    pub(crate) seconds: f32,
}

impl Adapter {
    /// Nothing is known yet. `None` where nothing of the pipeline could be pushed down.
    pub(crate) fn new(
        pipeline: &Pipeline,
        objects: &[Object],
        batch_size: usize,
        threads: usize,
        max_expand: f64,
    ) -> Option<Self> {
        let classes = classes(objects);
        let bounds = classes.iter().map(|class| class.up_to).collect();
        let ground = Arc::new(Ground::new(pipeline, bounds, max_expand)?);
        let samples: Vec<_> = classes.iter().map(|class| (class.share, class.bytes)).collect();
        let unlisted = Unlisted::default();
        Some(Self {
            models: of_steps(pipeline.steps()),
            pipeline: pipeline.clone(),
            samples: objects.len(),
            batch_size,
            cpus: cpus::name(threads),
            listed: objects.iter().all(|object| object.bytes.is_some()),
            planned: watch::Sender::new(false),
            state: Mutex::new(State {
                replanner: Replanner::new(pipeline, &samples, float(threads as u64)),
                host_cores: float(threads as u64),
                assignment: Arc::new(Assignment::unknown(Arc::clone(&ground), unlisted.least())),
                unlisted,
                meter: Meter::default(),
                batches: 0,
                changes: 0,
                fetching: false,
                under_way: 0,
                begun: 0,
                since: None,
                gateway_cpu: None,
            }),
            ground,
        })
    }

    /// An epoch has so many samples: this reader's part of the objects.
    pub(crate) fn with_samples(self, samples: usize) -> Self {
        Self { samples, ..self }
    }

    /// Waits until there is a plan, or until none can be made.
    pub(crate) async fn planned(&self) {
        // The sender lives as long as this.
        drop(self.planned.subscribe().wait_for(|planned| *planned).await);
    }

    /// The ways of the objects, as the plan in force has them.
    pub(crate) fn assignment(&self) -> Arc<Assignment> {
        Arc::clone(&self.state.lock().assignment)
    }

    /// The plan in force, once there is one.
    pub(crate) fn decision(&self) -> Option<Planned> {
        let state = self.state.lock();
        Some(Planned {
            pipeline: self.pipeline.clone(),
            decision: state.replanner.decision()?.clone(),
            up_to: self.ground.bounds.clone(),
            changes: state.changes,
        })
    }

    /// Steps of a sample ran here.
    pub(crate) fn host(&self, stored: Option<u64>, ran: &[StepTiming]) {
        let class = self.ground.class(stored);
        let mut state = self.state.lock();
        for StepTiming { steps, time } in ran {
            state
                .replanner
                .observe_host_seconds(class, steps.start, steps.len(), time.as_secs_f64());
        }
        if let Some(stored) = stored.filter(|_| !self.listed) {
            state.found(class, stored);
        }
    }

    /// The gateway was asked for a sample up to a stage, and this came.
    pub(crate) fn gateway(&self, stored: Option<u64>, asked: Split, came: Came) {
        let class = self.ground.class(stored);
        // In place of a value that would be too large.
        let stored_instead = came.stage == 0;
        let stage = match asked {
            Split::At(asked) if stored_instead => asked,
            _ => came.stage,
        };
        let (stage, bytes) = (usize::from(stage), float(came.bytes));
        let mut state = self.state.lock();
        // Where nothing ran, nothing is known of what it takes.
        if came.seconds > 0.0 {
            state
                .replanner
                .observe_gateway_seconds(class, stage, came.seconds.into());
        }
        state
            .replanner
            .observe_value_bytes(class, stage, bytes, stored_instead);
    }

    /// The gateway says how many cores it has for this reader's tenant, and how many batches share them.
    pub(crate) fn gateway_cores(&self, cores: f64, batches: Option<f64>) {
        let mut state = self.state.lock();
        let own = float(state.under_way.max(1) as u64);
        let part = batches.map_or(1.0, |all| own / all.max(own));
        state.replanner.set_gateway_cores(cores * part);
    }

    /// The gateway says what its CPUs have done.
    pub(crate) fn gateway_cpu(&self, time: CpuTime) {
        let mut state = self.state.lock();
        state.gateway_cpu = Some(time);
        if let Some(since) = &mut state.since {
            since.gateway_cpu.get_or_insert(time);
        }
    }

    /// The gateway names its CPUs, if it does: those of this host add nothing to the same ones.
    pub(crate) fn gateway_cpus(&self, name: Option<&str>) {
        let shared = name.is_some() && name == self.cpus.as_deref();
        self.state.lock().replanner.set_shared(shared);
    }

    /// The consumer took so long for a batch.
    pub(crate) fn trainer(&self, time: Duration, samples: usize) {
        if samples > 0 {
            let seconds = time.as_secs_f64() / float(samples as u64);
            self.state.lock().replanner.observe_trainer_seconds(seconds);
        }
    }

    /// A batch is done, with so many samples of the epoch behind it: plans again, for those of them that have not begun.
    pub(crate) fn batch_done(&self, left: usize, traffic: &Traffic) {
        let mut state = self.state.lock();
        state.elapsed(traffic);
        state.batches += 1;
        if state.batches >= EXPLORING || left == 0 {
            self.plan(&mut state, left);
        }
    }

    fn plan(&self, state: &mut State, left: usize) {
        let far = self.models.iter().filter(|model| !model.is_local());
        let weights: f64 = far.map(|model| float(model.description().bytes)).sum();
        // A side takes as long to load layers as this host took.
        let all = self.pipeline.len();
        let loading = (0..=all).map(|stage| LoadingCost {
            gateway_seconds: self.pipeline.loading_time(0..stage).as_secs_f64(),
            host_seconds: self.pipeline.loading_time(stage..all).as_secs_f64(),
        });
        let lacking = SetupCosts {
            weights_bytes: weights,
            loading: loading.collect(),
        };
        // Behind the last batch the plan is one for the next epoch.
        let left = match left.saturating_sub(state.begun) {
            0 => self.samples,
            left => left,
        };
        let rules = Rules {
            samples_left: float(left as u64),
            batch_size: float(self.batch_size as u64),
            max_expand: state.unlisted.max_expand(self.ground.max_expand),
            weights_in_flight: state.fetching,
            ..Rules::default()
        };
        let before = state
            .replanner
            .decision()
            .map(|decision| decision.plan.shares.clone());
        let unlisted = state.unlisted.least();
        if let Some(decision) = state.replanner.next_batch(lacking, &rules) {
            let begin = |plan: &Plan| Assignment::planned(Arc::clone(&self.ground), unlisted, decision, plan);
            let planned = begin(&decision.plan);
            if before.as_ref() != Some(&decision.plan.shares) {
                tracing::info!(
                    samples_per_second = 1.0 / decision.plan.load.seconds(),
                    bound = ?decision.plan.load.bound(),
                    tiers = ?decision.tiers,
                    assignment = ?planned,
                    "planned"
                );
                prepare(&self.pipeline.steps()[planned.first_stage()..]);
                state.changes += u64::from(before.is_some());
            }
            // Samples that need weights which are still to come would wait for them, and all behind them in the order.
            let waits = decision.needs_weights();
            let meanwhile = waits.then(|| decision.plan_without_weights()).flatten();
            state.assignment = Arc::new(meanwhile.map_or(planned, |plan| begin(&plan)));
            state.fetching |= waits;
        }
        self.planned.send_replace(true);
    }
}

impl State {
    /// An object has so many bytes stored, which no listing told. What was asked for before stays as it is.
    fn found(&mut self, class: usize, stored: u64) {
        self.unlisted.seen(stored);
        self.replanner.set_object_bytes(class, self.unlisted.mean());
        let least = self.unlisted.least();
        if self.assignment.unlisted != least {
            Arc::make_mut(&mut self.assignment).unlisted = least;
        }
    }
}

#[cfg(test)]
mod tests;
