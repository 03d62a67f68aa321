//! The route of each sample of a batch: decided when the batch is admitted, and changed only by [`Session::push_all`].

use std::sync::Arc;

use parking_lot::Mutex;
use pushdown::wire::Split;

use super::Session;
use crate::{
    order::SampleRef,
    planning::{Adapter, Assignment},
};

/// The route of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleRoute {
    /// The steps that the gateway runs. [`Mode::Auto`](super::Mode::Auto) reads the object plainly if there are none.
    pub(crate) split: Split,
    /// The most bytes of the value, if a plan limits them and its size is not known in advance.
    pub(crate) max_bytes: Option<u64>,
}

/// The routes of a batch's samples, by slot.
#[derive(Debug, Default)]
pub(crate) struct BatchRoutes {
    /// The plan that was in force, in [`Mode::Auto`](super::Mode::Auto).
    assignment: Option<Arc<Assignment>>,
    by_slot: Mutex<Vec<SampleRoute>>,
}

impl BatchRoutes {
    /// The route of the sample in a slot.
    pub(super) fn get(&self, slot: usize) -> SampleRoute {
        self.by_slot.lock()[slot]
    }

    /// The splits of all samples.
    pub(super) fn splits(&self) -> Vec<Split> {
        self.by_slot.lock().iter().map(|route| route.split).collect()
    }

    /// Whether the batch tries both routes, because nothing is known yet.
    pub(super) fn is_exploring(&self) -> bool {
        self.assignment
            .as_ref()
            .is_some_and(|assignment| assignment.is_unknown())
    }
}

impl Session {
    /// The routes of these samples under the plan that is in force.
    pub(crate) fn routes(&self, samples: &[SampleRef]) -> BatchRoutes {
        let assignment = self.adapter.as_ref().map(Adapter::assignment);
        let routes = samples
            .iter()
            .map(|sample| self.route_of(*sample, assignment.as_deref()));
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
        let mut by_slot = routes.by_slot.lock();
        for slot in slots {
            by_slot[*slot] = self.route_of(samples[*slot], Some(&assignment));
        }
    }

    fn route_of(&self, sample: SampleRef, assignment: Option<&Assignment>) -> SampleRoute {
        let stored = self.objects[sample.index].bytes;
        let split = assignment.map_or(self.split, |plan| Split::At(plan.stage(sample, stored)));
        let split = self.clamp_to_cached_stage(sample.index, split);
        let max_bytes = match split {
            Split::At(stage) => assignment.and_then(|plan| plan.max_value_bytes(stage, stored)),
            Split::Full | Split::Smallest => None,
        };
        SampleRoute { split, max_bytes }
    }
}
