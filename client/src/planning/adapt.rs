//! Feeds the planner of objects and members: observations made while they are read become the plan for the next batches.

mod arriving_answer;
mod assignment;
mod event;
mod in_flight;
mod interval;
mod known_objects;
mod model_support;
mod observe;
mod plan_context;
mod probe;
mod replan;
mod sensors;
mod size_classes;
mod unlisted_sizes;

use std::sync::{Arc, atomic::AtomicBool};

use pushdown::{Pipeline, pipeline::NamedModel, wire::CpuTime};
use pushdown_exec::sync::Mutex;
use tokio::{sync::watch, time::Instant};

pub(crate) use arriving_answer::ArrivingAnswer;
pub(crate) use assignment::Assignment;
use event::Moment;
pub(crate) use event::{Event, ReceivedValue, SamplesLeft};
pub(crate) use in_flight::{InFlight, PendingRead};
use interval::IntervalStart;
pub(super) use known_objects::KnownObjects;
pub(crate) use model_support::stages_after_models;
use plan_context::PlanContext;
pub(crate) use probe::ProbeRequest;
use size_classes::size_classes;
use unlisted_sizes::UnlistedSizes;

use super::{PlanReport, PlannedSamples, planner::Planner};
use crate::{
    measure::{PathMeters, float},
    objects::Objects,
    stats::Traffic,
    weights::models_of,
};

/// The state of a reader in [`Mode::Auto`](crate::reader::Mode::Auto).
#[derive(Debug)]
pub(crate) struct Adapter {
    pipeline: Pipeline,
    models: Vec<Arc<dyn NamedModel>>,
    context: Arc<PlanContext>,
    /// Whether the size of every object was known when the reader was built.
    has_all_sizes: bool,
    /// Samples of an epoch.
    epoch_samples: usize,
    /// Samples of a batch.
    batch_size: usize,
    /// When this was made.
    began: Instant,
    traffic: Arc<Traffic>,
    /// The part of it that is with a gateway beside the store.
    gateway_traffic: Option<Arc<Traffic>>,
    /// Whether an object has been requested.
    is_reading: AtomicBool,
    state: Mutex<State>,
    has_plan: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    planner: Planner,
    assignment: Arc<Assignment>,
    /// Sizes of the objects seen so far, if not all are known from a listing.
    unlisted: UnlistedSizes,
    meters: PathMeters,
    batches: usize,
    /// Whether the download of missing weights has begun.
    is_fetching_weights: bool,
    /// The demand under the plan in force, once it is asked for.
    demand_cores: Option<f64>,
    /// Batch requests in flight.
    pending_batches: usize,
    /// Samples of batches that have begun and have not ended.
    begun_samples: usize,
    /// Start of the current measuring interval; `None` until the first object is requested.
    interval: Option<IntervalStart>,
    /// CPU time that the gateway stated last.
    gateway_cpu: Option<CpuTime>,
    /// The latest time and count of an event.
    latest: Moment,
    /// All events so far.
    #[cfg(test)]
    trace: Vec<Event>,
}

impl Adapter {
    /// An adapter without observations. `None` if no step of the pipeline could run at the gateway.
    pub(crate) fn new(
        pipeline: &Pipeline,
        objects: &Objects,
        batch_size: usize,
        threads: usize,
        max_expand: f64,
    ) -> Option<Self> {
        let classes = size_classes(objects);
        let bounds = classes.iter().map(|class| class.max_bytes).collect();
        let context = Arc::new(PlanContext::new(pipeline, bounds, max_expand)?);
        let samples: Vec<_> = classes
            .iter()
            .map(|class| (class.fraction, class.mean_bytes))
            .collect();
        let unlisted = UnlistedSizes::default();
        Some(Self {
            models: models_of(pipeline.steps()),
            pipeline: pipeline.clone(),
            epoch_samples: objects.len(),
            batch_size,
            has_all_sizes: objects.iter().all(|object| object.bytes.is_some()),
            began: Instant::now(),
            traffic: Arc::default(),
            gateway_traffic: None,
            is_reading: AtomicBool::new(false),
            has_plan: watch::Sender::new(false),
            state: Mutex::new(State {
                planner: Planner::new(&pipeline.step_costs(), &samples, threads),
                assignment: Arc::new(Assignment::unknown(Arc::clone(&context), unlisted.min_bytes())),
                unlisted,
                meters: PathMeters::default(),
                batches: 0,
                is_fetching_weights: false,
                demand_cores: None,
                pending_batches: 0,
                begun_samples: 0,
                interval: None,
                gateway_cpu: None,
                latest: Moment::default(),
                #[cfg(test)]
                trace: Vec::new(),
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

    /// Sets the counters of the bytes that arrive, and of those that a gateway beside the store sends: there are two paths then.
    pub(crate) fn with_traffic(self, traffic: Arc<Traffic>, gateway_traffic: Option<Arc<Traffic>>) -> Self {
        let mut state = self.state.into_inner();
        if gateway_traffic.is_some() {
            state.planner = state.planner.with_two_paths();
        }
        Self {
            traffic,
            gateway_traffic,
            state: Mutex::new(state),
            ..self
        }
    }

    /// Why none of these objects is ever pushed down: no plan is made before one was tried at the gateway. `None` if one may be, or if
    /// the size of one is unknown.
    pub(crate) fn reason_to_read_plainly(&self, objects: &Objects) -> Option<String> {
        if self.has_plan() || objects.is_empty() {
            return None;
        }
        let mut sizes = objects.iter().map(|object| object.bytes);
        let largest = sizes.try_fold(0, |largest, bytes| bytes.map(|bytes| bytes.max(largest)))?;
        let may_crop = self.state.lock().assignment.may_crop;
        self.context.reason_against_trials(largest, may_crop)
    }

    /// The number of first steps that fix the region of cropped JPEGs; `None` if nothing is ever cropped.
    pub(crate) fn crop_steps(&self) -> Option<usize> {
        self.context.cropped.map(|cropped| cropped.steps)
    }

    /// Sets whether objects may be requested as cropped JPEGs. Plans count on it from the next one on.
    pub(crate) fn allow_crops(&self, is_allowed: bool) {
        let is_allowed = is_allowed && self.crop_steps().is_some();
        if self.assignment().may_crop != is_allowed {
            self.observe(Event::CropsAllowed(is_allowed));
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

    /// Cores of the gateway that this reader could use; `None` before the first plan.
    pub(crate) fn demand_cores(&self) -> Option<f64> {
        let mut state = self.state.lock();
        let decision = state.planner.decision()?;
        let cores = state.demand_cores.unwrap_or_else(|| decision.demand_cores());
        state.demand_cores = Some(cores);
        Some(cores)
    }

    /// The plan in force, if there is one.
    pub(crate) fn plan_report(&self) -> Option<PlanReport> {
        let state = self.state.lock();
        Some(PlanReport {
            pipeline: self.pipeline.clone(),
            decision: state.planner.decision()?.clone(),
            samples: PlannedSamples::Objects {
                max_bytes: self.context.bounds.clone(),
            },
            changes: state.planner.changes(),
        })
    }
}

#[cfg(test)]
mod tests;
