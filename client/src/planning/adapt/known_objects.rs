//! What a planner of objects hands on to the next reader of the same data.

use std::sync::Arc;

use pushdown_exec::sync::Mutex;

use super::{
    Adapter, State, assignment::Assignment, float, plan_context::PlanContext, unlisted_sizes::UnlistedSizes,
};
use crate::planning::{Observations, observations::KnownSamples};

/// What is known of objects besides costs.
#[derive(Debug, Clone)]
pub(in crate::planning) struct KnownObjects {
    assignment: Arc<Assignment>,
    context: Arc<PlanContext>,
    unlisted: UnlistedSizes,
    batches: usize,
}

impl Adapter {
    /// What is known so far; `None` before the first plan.
    pub(crate) fn observations(&self) -> Option<Observations> {
        let state = self.state.lock();
        let known = KnownObjects {
            assignment: Arc::clone(&state.assignment),
            context: Arc::clone(&self.context),
            unlisted: state.unlisted,
            batches: state.batches,
        };
        Observations::new(&self.pipeline, &state.planner, KnownSamples::Objects(known))
    }

    /// Begins with what an earlier reader has observed, if it had the same pipeline, and as many threads and paths.
    pub(crate) fn with_observations(self, known: Observations) -> Self {
        let mut state = self.state.into_inner();
        let known = known.for_reader(&self.pipeline, &state.planner);
        let Some((mut planner, KnownSamples::Objects(known))) = known else {
            return Self {
                state: Mutex::new(state),
                ..self
            };
        };
        self.has_plan.send_replace(true);
        planner.replanner.next_epoch(float(self.epoch_samples as u64));
        state = State {
            planner,
            assignment: known.assignment,
            unlisted: known.unlisted,
            batches: known.batches,
            ..state
        };
        Self {
            context: known.context,
            state: Mutex::new(state),
            ..self
        }
    }

    /// Whether there is a plan.
    pub(super) fn has_plan(&self) -> bool {
        *self.has_plan.borrow()
    }
}
