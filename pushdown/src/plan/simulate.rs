//! Simulates the tiers as queues in a row, in virtual time, to get the duration of an epoch.

mod epoch;
mod queues;

use std::num::NonZeroUsize;

use super::{Class, Plan, Tiers};
use epoch::Epoch;

/// The cost of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleCost {
    /// Whether the sample is read as a stored object, with a request of its own.
    pub is_plain: bool,
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// Bytes on the link.
    pub bytes: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
}

/// The costs of the first `count` samples of a plan, with the splits of all classes spread evenly.
pub fn sample_costs(classes: &[Class], plan: &Plan, count: usize) -> Vec<SampleCost> {
    // Cost, share and accumulated deficit of each split.
    let mut splits = Vec::new();
    for (class, shares) in classes.iter().zip(&plan.shares) {
        for (candidate, share) in class
            .candidates
            .iter()
            .zip(shares)
            .filter(|(_, share)| **share > 0.0)
        {
            let cost = SampleCost {
                is_plain: candidate.stage == 0,
                gateway_seconds: candidate.gateway_seconds,
                bytes: candidate.bytes,
                host_seconds: candidate.host_seconds,
            };
            splits.push((cost, *share, 0.0));
        }
    }
    // The split with the largest deficit is next.
    (0..count)
        .filter_map(|_| {
            for (_, share, deficit) in &mut splits {
                *deficit += *share;
            }
            let next = splits.iter_mut().max_by(|a, b| a.2.total_cmp(&b.2))?;
            next.2 -= 1.0;
            Some(next.0)
        })
        .collect()
}

/// How far a reader requests samples ahead of the trainer. The client's reader has the same defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAhead {
    /// Samples per batch.
    pub batch_samples: NonZeroUsize,
    /// Upper bound of the batches in flight.
    pub batches_in_flight: NonZeroUsize,
    /// Upper bound of the stored objects read at a time, over all batches.
    pub concurrent_gets: NonZeroUsize,
}

impl ReadAhead {
    /// Default of `batches_in_flight`.
    pub const DEFAULT_BATCHES_IN_FLIGHT: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    /// Default of `concurrent_gets`.
    pub const DEFAULT_CONCURRENT_GETS: NonZeroUsize = NonZeroUsize::new(32).unwrap();
    /// A split that delivers at least one in this number of samples of a batch is part of the plan: the next batch may begin once
    /// the split has delivered all of them. Trials deliver fewer.
    pub const MIN_SHARE_DENOMINATOR: usize = 8;

    /// The defaults, for batches of `batch_samples`.
    pub const fn for_batch(batch_samples: NonZeroUsize) -> Self {
        Self {
            batch_samples,
            batches_in_flight: Self::DEFAULT_BATCHES_IN_FLIGHT,
            concurrent_gets: Self::DEFAULT_CONCURRENT_GETS,
        }
    }
}

/// Seconds from the first sample to the last. Gateway and link serve samples in order of arrival; the host serves the oldest
/// batch first. The reader requests a batch once half of the previous one has arrived, or all of its samples at one split. The
/// trainer takes complete batches in order.
pub fn epoch_seconds(tiers: &Tiers, samples: &[SampleCost], read_ahead: ReadAhead) -> f64 {
    Epoch::new(tiers, samples, read_ahead).seconds()
}

#[cfg(test)]
mod tests;
