//! What the planner knows of the steps of a pipeline before any of them has run.

use pushdown_plan::StepCost;

use crate::{Kind, Pipeline, Step};

impl Pipeline {
    /// The costs of the steps, in order.
    pub fn step_costs(&self) -> Vec<StepCost> {
        let cost = |(step, output): (&Step, &Kind)| StepCost {
            output_bytes: output.bytes(),
            macs: step.macs(),
            needs_model: !step.models().is_empty(),
        };
        self.steps().iter().zip(&self.kinds()[1..]).map(cost).collect()
    }
}
