//! Plans from what was observed.

use std::sync::Arc;

use pushdown::plan::{LaterEpochs, Plan, Rules, SetupCosts};

use super::{Adapter, SamplesLeft, State, float};
use crate::{planning::planner::NewPlan, weights::preload};

impl Adapter {
    /// Plans the samples of the epoch that are left and have not begun, and later epochs.
    pub(super) fn plan(&self, state: &mut State, left: SamplesLeft, setup: SetupCosts) {
        let epoch_samples = self.epoch_samples;
        // After the last batch, plan for the next epoch.
        let (samples_left, later_epochs) = match left.samples.saturating_sub(state.begun_samples) {
            0 => (epoch_samples, left.later_epochs.saturating_sub(1)),
            samples => (samples, left.later_epochs),
        };
        let rules = Rules {
            samples_left: float(samples_left as u64),
            batch_size: float(self.batch_size as u64),
            max_expand: state.unlisted.max_expand(self.context.max_expand),
            weights_in_flight: state.is_fetching_weights,
            later: LaterEpochs {
                count: later_epochs.into(),
                samples: float(epoch_samples as u64),
            },
            ..Rules::default()
        };
        if let Some(NewPlan {
            decision,
            has_changed,
        }) = state.planner.plan(setup, &rules)
        {
            state.demand_cores = None;
            let before = &state.assignment;
            let assign = |plan: &Plan| before.with_plan(decision, plan);
            let planned = assign(&decision.plan);
            if has_changed {
                preload(&self.pipeline.steps()[planned.first_stage()..]);
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
