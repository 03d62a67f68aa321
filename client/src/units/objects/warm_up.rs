//! Values that the gateway computes and caches, and does not deliver.

use std::num::NonZeroU32;

use pushdown::{
    Pipeline,
    wire::{Pin, Split},
};
use serde::{Deserialize, Serialize};

/// How the result cache of the gateway is warmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarmUp {
    /// How long the gateway keeps the values at least, in seconds, up to 30 days: a lease, which another warm-up renews. Without one they stay
    /// as others do.
    pub keep_seconds: Option<NonZeroU32>,
}

impl WarmUp {
    /// The lease that requests ask for.
    pub(super) fn pin(self) -> Option<Pin> {
        let keep_seconds = self.keep_seconds?.get();
        Some(Pin { keep_seconds })
    }

    /// The steps whose values are cached: those of a stage that is set, or all before the first random step.
    pub(crate) fn steps(pipeline: &Pipeline, split: Split) -> usize {
        let first_random = pipeline.steps().iter().position(pushdown::Step::is_random);
        let steady = first_random.unwrap_or(pipeline.len());
        match split {
            Split::At(stage) => usize::from(stage).min(steady),
            Split::Full | Split::Smallest => steady,
        }
    }
}
