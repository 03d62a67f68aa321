//! The route of each sample of a batch: decided when the batch is admitted, and changed only by
//! [`Session::push_all`] and [`Session::limit_routes`].

use std::sync::Arc;

use pushdown::{
    plan::Stage,
    wire::{Features, Split},
};
use pushdown_exec::sync::Mutex;

use super::{BatchJob, Mode, Session, intake::Intake};
use crate::{
    epoch::order::SampleRef,
    planning::{Adapter, Assignment},
};

/// The route of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleRoute {
    /// The steps that the gateway runs. [`Mode::Auto`](super::Mode::Auto) reads the object plainly if there are none, unless it is cropped.
    pub(crate) split: Split,
    /// Whether the gateway sends the object without the blocks that no step reads. It runs no steps then.
    pub(crate) is_cropped: bool,
    /// The most bytes of the value, if a plan limits them and its size is not known in advance.
    pub(crate) max_bytes: Option<u64>,
}

impl SampleRoute {
    /// Plain reading.
    pub(super) const PLAIN: Self = Self {
        split: Split::At(0),
        is_cropped: false,
        max_bytes: None,
    };
    /// A cropped JPEG.
    const CROPPED: Self = Self {
        is_cropped: true,
        ..Self::PLAIN
    };

    /// Whether the object is read plainly.
    pub(super) fn is_plain(&self) -> bool {
        self.split == Split::At(0) && !self.is_cropped
    }

    /// The stage at which a sample of a pipeline with `steps` steps is requested.
    pub(super) fn stage(&self, steps: usize) -> Stage {
        match self.split {
            Split::At(_) if self.is_cropped => Stage::CroppedJpeg,
            Split::At(stage) => Stage::after(stage.into()),
            Split::Full | Split::Smallest => Stage::after(steps),
        }
    }
}

/// The routes of a batch's samples, by slot.
#[derive(Debug, Default)]
pub(crate) struct BatchRoutes {
    /// The plan that was in force, in [`Mode::Auto`](super::Mode::Auto). `None` while the gateway does not serve.
    assignment: Option<Arc<Assignment>>,
    by_slot: Mutex<Vec<SampleRoute>>,
}

impl BatchRoutes {
    /// The route of the sample in a slot.
    pub(super) fn get(&self, slot: usize) -> SampleRoute {
        self.by_slot.lock()[slot]
    }

    /// Sets the route of the sample in a slot.
    pub(super) fn set(&self, slot: usize, route: SampleRoute) {
        self.by_slot.lock()[slot] = route;
    }

    /// The splits of all samples.
    pub(super) fn splits(&self) -> Vec<Split> {
        self.by_slot.lock().iter().map(|route| route.split).collect()
    }

    /// The stages at which all samples are requested, of a pipeline with `steps` steps.
    pub(super) fn stages(&self, steps: usize) -> Vec<Stage> {
        let by_slot = self.by_slot.lock();
        by_slot.iter().map(|route| route.stage(steps)).collect()
    }

    /// The number of first steps on which the values of these slots may depend, of a pipeline with `steps` steps. A cropped JPEG depends on
    /// `crop_steps`, which this host runs.
    pub(super) fn last_stage(&self, slots: &[usize], steps: usize, crop_steps: Option<usize>) -> usize {
        let by_slot = self.by_slot.lock();
        let stages = slots.iter().map(|slot| match by_slot[*slot].stage(steps) {
            Stage::CroppedJpeg => crop_steps.unwrap_or(steps),
            stage => stage.steps(),
        });
        stages.max().unwrap_or_default()
    }

    /// Whether the batch tries both routes, because nothing is known yet.
    pub(super) fn is_exploring(&self) -> bool {
        self.assignment
            .as_ref()
            .is_some_and(|assignment| assignment.is_unknown())
    }
}

impl Session {
    /// The routes of these samples under the plan that is in force. Those that have arrived already are read plainly.
    pub(crate) fn routes(
        &self,
        samples: &[SampleRef],
        has_arrived: impl Fn(&SampleRef) -> bool,
    ) -> BatchRoutes {
        // No batch tries both routes while there is one.
        let adapter = self.adapter.as_ref().filter(|_| !self.is_gateway_lost());
        let may_crop = self.crop_steps().is_some();
        if let Some(adapter) = adapter {
            adapter.allow_crops(may_crop);
        }
        let assignment = adapter.map(Adapter::assignment);
        let route = |sample: &SampleRef| match self.route_of(*sample, assignment.as_deref(), may_crop) {
            route if route == SampleRoute::PLAIN || !has_arrived(sample) => route,
            _ => SampleRoute::PLAIN,
        };
        let routes = samples.iter().map(route);
        BatchRoutes {
            by_slot: Mutex::new(routes.collect()),
            assignment,
        }
    }

    /// Changes the routes of these slots in a batch that is exploring: their samples are pushed down if their values fit.
    pub(super) fn push_all(&self, routes: &BatchRoutes, samples: &[SampleRef], slots: &[usize]) {
        let Some(assignment) = routes.assignment.as_deref().and_then(Assignment::with_all_pushed) else {
            return;
        };
        let may_crop = self.crop_steps().is_some();
        let mut by_slot = routes.by_slot.lock();
        for slot in slots {
            by_slot[*slot] = self.route_of(samples[*slot], Some(&assignment), may_crop);
        }
    }

    /// Decides again for samples whose replica is lost: those that are read plainly under the plan that is in force now are removed.
    pub(super) fn plan_again(&self, job: &BatchJob, intake: &Intake<'_>, slots: &mut Vec<usize>) {
        let Some(adapter) = &self.adapter else { return };
        let (assignment, may_crop) = (adapter.assignment(), self.crop_steps().is_some());
        if assignment.is_unknown() {
            return;
        }
        let is_plain = |slot: &usize| {
            let route = self.route_of(job.samples[*slot], Some(&assignment), may_crop);
            route.is_plain()
        };
        let (mut plain, pushed): (Vec<usize>, Vec<usize>) = slots.drain(..).partition(is_plain);
        *slots = pushed;
        job.leave_to_host(intake, &mut plain);
    }

    /// Limits the routes of these slots to the steps that the gateway may run, and keeps the slots that it still serves.
    pub(super) fn limit_routes(&self, job: &BatchJob, intake: &Intake<'_>, slots: &mut Vec<usize>) {
        if self.is_gateway_lost() {
            return job.leave_to_host(intake, slots);
        }
        if self.crop_steps().is_none() {
            slots.retain(|slot| {
                let is_cropped = job.routes.get(*slot).is_cropped;
                if is_cropped {
                    job.routes.set(*slot, SampleRoute::PLAIN);
                    intake.reroute(*slot);
                }
                !is_cropped
            });
        }
        if !self.is_limited() {
            return;
        }
        let assignment = job.routes.assignment.as_deref();
        slots.retain(|slot| {
            let stored = self.objects.bytes(job.samples[*slot].index);
            let route = job.routes.get(*slot);
            let split = self.clamp_to_max_stage(route.split, |stage| {
                assignment.is_none_or(|plan| plan.fits(Stage::after(stage.into()), stored))
            });
            if split != route.split {
                let max_bytes = max_bytes(assignment, split, stored);
                let limited = SampleRoute {
                    split,
                    max_bytes,
                    ..SampleRoute::PLAIN
                };
                job.routes.set(*slot, limited);
                intake.reroute(*slot);
            }
            !job.routes.get(*slot).is_plain()
        });
    }

    /// Limits a split to the steps that the gateway may run. Plain reading if the value at that stage does not fit, or if the
    /// gateway was to choose the stage.
    fn clamp_to_max_stage(&self, split: Split, fits: impl Fn(u8) -> bool) -> Split {
        if !self.is_limited() {
            return split;
        }
        let max_stage = u8::try_from(self.max_stage()).unwrap_or_default();
        match split {
            Split::At(stage) if stage <= max_stage => split,
            Split::At(_) | Split::Full if fits(max_stage) => Split::At(max_stage),
            Split::At(_) | Split::Full | Split::Smallest => Split::At(0),
        }
    }

    /// The number of first steps that fix the region of cropped JPEGs. `None` if no object may be requested as one: the gateway has to
    /// make them, of the same region as this host, and no value may be cached that needs more of an object.
    fn crop_steps(&self) -> Option<usize> {
        let steps = self.adapter.as_ref()?.crop_steps()?;
        let cache = self.value_cache.as_ref();
        let is_possible = self.max_stage() >= steps
            && cache.is_none_or(|cache| !cache.may_have_stage_before(steps))
            && self.store.features().has(Features::CROPPED_JPEG);
        is_possible.then_some(steps)
    }

    /// Whether a sample is read plainly under this plan.
    pub(super) fn is_plain(&self, sample: SampleRef, assignment: Option<&Assignment>) -> bool {
        match self.mode() {
            Mode::Plain => true,
            Mode::Pushdown if !self.is_limited() => false,
            Mode::Pushdown | Mode::Auto => {
                let may_crop = self.crop_steps().is_some();
                self.route_of(sample, assignment, may_crop).is_plain()
            }
        }
    }

    fn route_of(&self, sample: SampleRef, assignment: Option<&Assignment>, may_crop: bool) -> SampleRoute {
        // Without a plan the gateway was lost when the batch began.
        if self.adapter.is_some() && assignment.is_none() || self.is_gateway_lost() {
            return SampleRoute::PLAIN;
        }
        let stored = self.objects.bytes(sample.index);
        let hash_fraction = || self.objects.hash_fraction(sample.index);
        let split = match assignment.map(|plan| plan.stage(sample, stored, hash_fraction)) {
            None => self.split,
            Some(Stage::CroppedJpeg) if may_crop => return SampleRoute::CROPPED,
            Some(Stage::CroppedJpeg) => return SampleRoute::PLAIN,
            Some(stage) => Split::At(u8::try_from(stage.steps()).unwrap_or(u8::MAX)),
        };
        let split = self.clamp_to_cached_stage(sample.index, split);
        let split = self.clamp_to_max_stage(split, |stage| {
            assignment.is_none_or(|plan| plan.fits(Stage::after(stage.into()), stored))
        });
        SampleRoute {
            split,
            max_bytes: max_bytes(assignment, split, stored),
            ..SampleRoute::PLAIN
        }
    }
}

/// The most bytes of the value of an object with `stored` bytes, if a plan limits them.
fn max_bytes(assignment: Option<&Assignment>, split: Split, stored: Option<u64>) -> Option<u64> {
    match split {
        Split::At(stage) => assignment.and_then(|plan| plan.max_value_bytes(stage, stored)),
        Split::Full | Split::Smallest => None,
    }
}
