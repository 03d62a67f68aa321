//! What the planner knows of the steps of a pipeline before any of them has run.

use pushdown_plan::StepCost;

use crate::{Kind, Pipeline, Step};

impl Pipeline {
    /// The costs of the steps, in order.
    pub fn step_costs(&self) -> Vec<StepCost> {
        let cost = |(step, output): (&Step, &Kind)| StepCost {
            output_bytes: output.bytes(),
            macs: step.macs(),
            needs_model: step.needs_model(),
        };
        self.steps().iter().zip(&self.kinds()[1..]).map(cost).collect()
    }
}

impl Step {
    /// Whether the step runs a model, itself or in an inner pipeline.
    fn needs_model(&self) -> bool {
        #[cfg(feature = "models")]
        return self.models().next().is_some();
        #[cfg(not(feature = "models"))]
        return false;
    }
}
