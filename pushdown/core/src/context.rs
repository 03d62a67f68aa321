//! Inputs of a run other than the value.

use std::sync::Arc;

use crate::{Cancellation, Limits, step::CellHost};

/// Inputs of a run other than the value.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Id of the sample: the percent-decoded key, followed by `\0` and the member for a sample of a shard.
    pub sample_id: &'a [u8],
    /// Seed of the random steps without a seed argument.
    pub seed: Option<u64>,
    /// Epoch, counted from 0.
    pub epoch: Option<u32>,
    /// Limits on pixels and bytes.
    pub limits: Limits,
    /// Ends the run early if nobody waits for its result.
    pub cancellation: Cancellation<'a>,
    /// What computes values from the cells of this object: cached values, memory, micro-batches. By default there is none of them.
    pub cells: Option<Arc<dyn CellHost>>,
}

impl<'a> Context<'a> {
    /// A context with the default limits, without seed and epoch.
    pub fn new(sample_id: &'a [u8]) -> Self {
        Self {
            sample_id,
            seed: None,
            epoch: None,
            limits: Limits::default(),
            cancellation: Cancellation::NEVER,
            cells: None,
        }
    }

    /// Sets the seed and the epoch.
    #[must_use]
    pub fn with_randomness(mut self, seed: u64, epoch: u32) -> Self {
        self.seed = Some(seed);
        self.epoch = Some(epoch);
        self
    }
}
