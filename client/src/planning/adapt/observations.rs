//! What a planner knows, for the next reader of the same data.

use std::sync::Arc;

use pushdown::plan::Replanner;
use pushdown_exec::sync::Mutex;

use super::{
    Adapter, State, assignment::Assignment, float, plan_context::PlanContext, unlisted_sizes::UnlistedSizes,
};

/// What the planner of a reader has observed, and the plan made from it: the costs of steps, and the speed of machines and link.
///
/// A reader that [continues](crate::reader::PushdownReaderBuilder::observations) with it begins with this plan, instead of trying both routes
/// again.
#[derive(Debug, Clone)]
pub struct Observations {
    pipeline: String,
    host_cores: f64,
    replanner: Replanner,
    assignment: Arc<Assignment>,
    context: Arc<PlanContext>,
    unlisted: UnlistedSizes,
    batches: usize,
    changes: u64,
}

impl Adapter {
    /// What is known so far; `None` before the first plan.
    pub(crate) fn observations(&self) -> Option<Observations> {
        let state = self.state.lock();
        state.replanner.decision()?;
        Some(Observations {
            pipeline: self.pipeline.to_string(),
            host_cores: state.host_cores,
            replanner: state.replanner.without_in_flight(),
            assignment: Arc::clone(&state.assignment),
            context: Arc::clone(&self.context),
            unlisted: state.unlisted,
            batches: state.batches,
            changes: state.changes,
        })
    }

    /// Begins with what an earlier reader has observed, if it had the same pipeline and as many threads.
    pub(crate) fn with_observations(self, known: Observations) -> Self {
        let mut state = self.state.into_inner();
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        let is_same = known.pipeline == self.pipeline.to_string() && known.host_cores == state.host_cores;
        if !is_same {
            return Self {
                state: Mutex::new(state),
                ..self
            };
        }
        self.has_plan.send_replace(true);
        let mut replanner = known.replanner;
        replanner.next_epoch(float(self.epoch_samples as u64));
        state = State {
            replanner,
            assignment: known.assignment,
            unlisted: known.unlisted,
            batches: known.batches,
            changes: known.changes,
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
