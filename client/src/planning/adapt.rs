//! Feeds the planner: observations made while samples are read become the plan for the next batches.

mod assignment;
pub(crate) mod cpus;
mod in_flight;
mod interval;
mod model_support;
mod plan_report;
mod probe;
mod size_classes;
mod unlisted_sizes;

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
use assignment::PlanContext;
pub(crate) use in_flight::InFlight;
use interval::IntervalStart;
pub(crate) use model_support::stages_after_models;
pub use plan_report::PlanReport;
pub(crate) use probe::ProbeRequest;
use size_classes::size_classes;
use unlisted_sizes::UnlistedSizes;

use super::{link_meter::LinkMeter, profile::float};
use crate::{
    models::{models_of, preload},
    stats::Traffic,
    store::Object,
};

/// Batches that try both routes before the first plan.
pub(crate) const EXPLORATION_BATCHES: usize = 2;

/// The state of a reader in [`Mode::Auto`](crate::Mode::Auto).
#[derive(Debug)]
pub(crate) struct Adapter {
    pipeline: Pipeline,
    models: Vec<Arc<Model>>,
    context: Arc<PlanContext>,
    /// Whether the size of every object was known when the reader was built.
    has_all_sizes: bool,
    /// Samples of an epoch.
    epoch_samples: usize,
    /// Samples of a batch.
    batch_size: usize,
    /// Identifies the CPUs that run steps on this host.
    cpus: Option<String>,
    state: Mutex<State>,
    has_plan: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    replanner: Replanner,
    host_cores: f64,
    assignment: Arc<Assignment>,
    /// Sizes of the objects seen so far, if not all are known from a listing.
    unlisted: UnlistedSizes,
    meter: LinkMeter,
    batches: usize,
    changes: u64,
    /// Whether the download of missing weights has begun.
    is_fetching_weights: bool,
    /// Batch requests in flight.
    pending_batches: usize,
    /// Samples of batches that have begun and have not ended.
    begun_samples: usize,
    /// Start of the current measuring interval; `None` until the first object is requested.
    interval: Option<IntervalStart>,
    /// CPU time that the gateway stated last.
    gateway_cpu: Option<CpuTime>,
}

/// A value received from the gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedValue {
    pub(crate) stage: u8,
    pub(crate) bytes: u64,
    /// CPU time of the gateway's steps.
    pub(crate) seconds: f32,
}

impl Adapter {
    /// An adapter without observations. `None` if no step of the pipeline could run at the gateway.
    pub(crate) fn new(
        pipeline: &Pipeline,
        objects: &[Object],
        batch_size: usize,
        threads: usize,
        max_expand: f64,
    ) -> Option<Self> {
        let classes = size_classes(objects);
        let bounds = classes.iter().map(|class| class.max_bytes).collect();
        let context = Arc::new(PlanContext::new(pipeline, bounds, max_expand)?);
        let samples: Vec<_> = classes
            .iter()
            .map(|class| (class.share, class.mean_bytes))
            .collect();
        let unlisted = UnlistedSizes::default();
        Some(Self {
            models: models_of(pipeline.steps()),
            pipeline: pipeline.clone(),
            epoch_samples: objects.len(),
            batch_size,
            cpus: cpus::name(threads),
            has_all_sizes: objects.iter().all(|object| object.bytes.is_some()),
            has_plan: watch::Sender::new(false),
            state: Mutex::new(State {
                replanner: Replanner::new(pipeline, &samples, float(threads as u64)),
                host_cores: float(threads as u64),
                assignment: Arc::new(Assignment::unknown(Arc::clone(&context), unlisted.min_bytes())),
                unlisted,
                meter: LinkMeter::default(),
                batches: 0,
                changes: 0,
                is_fetching_weights: false,
                pending_batches: 0,
                begun_samples: 0,
                interval: None,
                gateway_cpu: None,
            }),
            context,
        })
    }

    /// Sets the number of samples of an epoch: this reader's part of the objects.
    pub(crate) fn with_epoch_samples(self, epoch_samples: usize) -> Self {
        Self {
            epoch_samples,
            ..self
        }
    }

    /// Waits until the first plan was attempted, even if it failed.
    pub(crate) async fn wait_for_plan(&self) {
        // The sender lives as long as `self`.
        drop(self.has_plan.subscribe().wait_for(|has_plan| *has_plan).await);
    }

    /// The routes of the objects under the plan in force.
    pub(crate) fn assignment(&self) -> Arc<Assignment> {
        Arc::clone(&self.state.lock().assignment)
    }

    /// The plan in force, if there is one.
    pub(crate) fn plan_report(&self) -> Option<PlanReport> {
        let state = self.state.lock();
        Some(PlanReport {
            pipeline: self.pipeline.clone(),
            decision: state.replanner.decision()?.clone(),
            max_object_bytes: self.context.bounds.clone(),
            changes: state.changes,
        })
    }

    /// Records steps of a sample that ran on this host.
    pub(crate) fn observe_host_steps(&self, stored: Option<u64>, ran: &[StepTiming]) {
        let class = self.context.class(stored);
        let mut state = self.state.lock();
        for StepTiming { steps, time } in ran {
            state
                .replanner
                .observe_host_seconds(class, steps.start, steps.len(), time.as_secs_f64());
        }
        if let Some(stored) = stored.filter(|_| !self.has_all_sizes) {
            state.observe_size(class, stored);
        }
    }

    /// Records a value that the gateway sent for a sample requested up to a stage.
    pub(crate) fn observe_gateway_value(
        &self,
        stored: Option<u64>,
        requested: Split,
        received: ReceivedValue,
    ) {
        let class = self.context.class(stored);
        // The gateway sends the object itself if the value would be too large.
        let is_object = received.stage == 0;
        let stage = match requested {
            Split::At(requested) if is_object => requested,
            _ => received.stage,
        };
        let (stage, bytes) = (usize::from(stage), float(received.bytes));
        let mut state = self.state.lock();
        // If no step ran, the cost of the steps is unknown.
        if received.seconds > 0.0 {
            state
                .replanner
                .observe_gateway_seconds(class, stage, received.seconds.into());
        }
        state
            .replanner
            .observe_value_bytes(class, stage, bytes, is_object);
    }

    /// Records how many cores the gateway has for this reader's tenant, and how many batches share them.
    pub(crate) fn observe_gateway_cores(&self, cores: f64, batches: Option<f64>) {
        let mut state = self.state.lock();
        let own = float(state.pending_batches.max(1) as u64);
        let part = batches.map_or(1.0, |all| own / all.max(own));
        state.replanner.set_gateway_cores(cores * part);
    }

    /// Records the CPU time that the gateway states.
    pub(crate) fn observe_gateway_cpu_time(&self, time: CpuTime) {
        let mut state = self.state.lock();
        state.gateway_cpu = Some(time);
        if let Some(interval) = &mut state.interval {
            interval.gateway_cpu.get_or_insert(time);
        }
    }

    /// Records which CPUs the gateway runs on, if it names them. If they are those of this host, the two do not add up.
    pub(crate) fn observe_gateway_cpus(&self, name: Option<&str>) {
        let shared = name.is_some() && name == self.cpus.as_deref();
        self.state.lock().replanner.set_shared(shared);
    }

    /// Records how long the consumer took for a batch.
    pub(crate) fn observe_trainer(&self, time: Duration, samples: usize) {
        if samples > 0 {
            let seconds = time.as_secs_f64() / float(samples as u64);
            self.state.lock().replanner.observe_trainer_seconds(seconds);
        }
    }

    /// Records the end of a batch with `samples_left` samples of the epoch after it, and plans again for those of them that
    /// have not begun.
    pub(crate) fn observe_batch_end(&self, samples_left: usize, traffic: &Traffic) {
        let mut state = self.state.lock();
        state.observe_interval(traffic);
        state.batches += 1;
        if state.batches >= EXPLORATION_BATCHES || samples_left == 0 {
            self.plan(&mut state, samples_left);
        }
    }

    fn plan(&self, state: &mut State, samples_left: usize) {
        let missing = self.models.iter().filter(|model| !model.is_local());
        let weights: f64 = missing.map(|model| float(model.description().bytes)).sum();
        // Loading layers is assumed to take as long at the gateway as on this host.
        let all = self.pipeline.len();
        let loading = (0..=all).map(|stage| LoadingCost {
            gateway_seconds: self.pipeline.loading_time(0..stage).as_secs_f64(),
            host_seconds: self.pipeline.loading_time(stage..all).as_secs_f64(),
        });
        let lacking = SetupCosts {
            weights_bytes: weights,
            loading: loading.collect(),
        };
        // After the last batch, plan for the next epoch.
        let samples_left = match samples_left.saturating_sub(state.begun_samples) {
            0 => self.epoch_samples,
            left => left,
        };
        let rules = Rules {
            samples_left: float(samples_left as u64),
            batch_size: float(self.batch_size as u64),
            max_expand: state.unlisted.max_expand(self.context.max_expand),
            weights_in_flight: state.is_fetching_weights,
            ..Rules::default()
        };
        let before = state
            .replanner
            .decision()
            .map(|decision| decision.plan.shares.clone());
        let unlisted_bytes = state.unlisted.min_bytes();
        if let Some(decision) = state.replanner.next_batch(lacking, &rules) {
            let assign =
                |plan: &Plan| Assignment::planned(Arc::clone(&self.context), unlisted_bytes, decision, plan);
            let planned = assign(&decision.plan);
            if before.as_ref() != Some(&decision.plan.shares) {
                tracing::info!(
                    samples_per_second = 1.0 / decision.plan.load.seconds(),
                    bound = ?decision.plan.load.bound(),
                    tiers = ?decision.tiers,
                    assignment = ?planned,
                    "planned"
                );
                preload(&self.pipeline.steps()[planned.first_stage()..]);
                state.changes += u64::from(before.is_some());
            }
            // Samples that need weights not yet downloaded would wait for them, and so would all later samples.
            let needs_weights = decision.needs_weights();
            let interim = needs_weights.then(|| decision.plan_without_weights()).flatten();
            state.assignment = Arc::new(interim.map_or(planned, |plan| assign(&plan)));
            state.is_fetching_weights |= needs_weights;
        }
        self.has_plan.send_replace(true);
    }
}

impl State {
    /// Records the stored size of an object without a listed size. Earlier assignments keep their routes.
    fn observe_size(&mut self, class: usize, stored: u64) {
        self.unlisted.observe(stored);
        self.replanner.set_object_bytes(class, self.unlisted.mean_bytes());
        let min_bytes = self.unlisted.min_bytes();
        if self.assignment.unlisted_bytes != min_bytes {
            Arc::make_mut(&mut self.assignment).unlisted_bytes = min_bytes;
        }
    }
}

#[cfg(test)]
mod tests;
