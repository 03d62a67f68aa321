//! Simulates the tiers as queues in a row, in virtual time, to get the duration of an epoch.

mod epoch;
mod queues;
mod replicas;

use std::num::NonZeroUsize;

use super::{Class, MIN_SAMPLES_PER_REPLICA, Plan, Tiers};
use epoch::Epoch;
pub use replicas::Replicas;

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

/// A split of a class, and the number of samples that it lacks to have its fraction.
#[derive(Debug, Clone, Copy)]
struct SplitDeficit {
    cost: SampleCost,
    fraction: f64,
    deficit_samples: f64,
}

/// The costs of the first `count` samples of a plan, with the splits of all classes spread evenly, and so the cache hits of each
/// split.
pub fn sample_costs(classes: &[Class], plan: &Plan, count: usize) -> Vec<SampleCost> {
    let candidates = classes
        .iter()
        .zip(&plan.fractions)
        .flat_map(|(class, fractions)| class.candidates.iter().zip(fractions));
    // The samples of a split that are cached, and those that are not.
    let parts = candidates.flat_map(|(candidate, fraction)| {
        let hits = candidate.hits;
        [
            (1.0 - hits.ratio, candidate.gateway_seconds),
            (hits.ratio, hits.seconds),
        ]
        .map(|(ratio, gateway_seconds)| (candidate, ratio * fraction, gateway_seconds))
    });
    let mut splits: Vec<SplitDeficit> = parts
        .filter(|(_, fraction, _)| *fraction > 0.0)
        .map(|(candidate, fraction, gateway_seconds)| SplitDeficit {
            cost: SampleCost {
                is_plain: candidate.stage.is_plain(),
                gateway_seconds,
                bytes: candidate.bytes,
                host_seconds: candidate.host_seconds,
            },
            fraction,
            deficit_samples: 0.0,
        })
        .collect();
    // The split with the largest deficit is next.
    (0..count)
        .filter_map(|_| {
            for split in &mut splits {
                split.deficit_samples += split.fraction;
            }
            let next = splits
                .iter_mut()
                .max_by(|a, b| a.deficit_samples.total_cmp(&b.deficit_samples))?;
            next.deficit_samples -= 1.0;
            Some(next.cost)
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
    /// While fewer samples are in flight, the next batch is requested before half of the previous one has arrived. 0 with one gateway.
    pub min_samples_in_flight: u64,
}

impl ReadAhead {
    /// Default of `batches_in_flight`.
    pub const DEFAULT_BATCHES_IN_FLIGHT: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    /// Default of `concurrent_gets`.
    pub const DEFAULT_CONCURRENT_GETS: NonZeroUsize = NonZeroUsize::new(32).unwrap();
    /// A split that delivers at least one in this number of samples of a batch is part of the plan: the next batch may begin once
    /// the split has delivered all of them. Trials deliver fewer.
    pub const MIN_FRACTION_DENOMINATOR: usize = 8;

    /// The defaults, for batches of `batch_samples`.
    pub const fn for_batch(batch_samples: NonZeroUsize) -> Self {
        Self {
            batch_samples,
            batches_in_flight: Self::DEFAULT_BATCHES_IN_FLIGHT,
            concurrent_gets: Self::DEFAULT_CONCURRENT_GETS,
            min_samples_in_flight: 0,
        }
    }

    /// The defaults, for batches of `batch_samples` from this number of replicas: each of them should have
    /// [`MIN_SAMPLES_PER_REPLICA`] in flight.
    pub const fn for_replicas(batch_samples: NonZeroUsize, replicas: usize) -> Self {
        Self {
            min_samples_in_flight: if replicas > 1 {
                MIN_SAMPLES_PER_REPLICA.saturating_mul(replicas as u64)
            } else {
                0
            },
            ..Self::for_batch(batch_samples)
        }
    }

    /// Upper bound of the samples in flight.
    pub const fn max_samples_in_flight(&self) -> u64 {
        let batch_samples = self.batch_samples.get() as u64;
        batch_samples.saturating_mul(self.batches_in_flight.get() as u64)
    }
}

/// What happened in an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedEpoch {
    /// Seconds from the first sample to the last.
    pub seconds: f64,
    /// The ratio of the values that the first choice among the replicas computed; 1 without values.
    pub first_choice_ratio: f64,
}

/// Seconds from the first sample to the last. Gateway, paths and link serve samples in order of arrival; the host serves the oldest
/// batch first. The reader requests a batch once half of the previous one has arrived, or all of its samples at one split, or if too few
/// samples are in flight. The trainer takes complete batches in order.
pub fn epoch_seconds(tiers: &Tiers, samples: &[SampleCost], read_ahead: ReadAhead) -> f64 {
    let one = Replicas::with_cores(&[tiers.gateway_cores]);
    epoch_with_replicas(tiers, &one, samples, read_ahead).seconds
}

/// The same epoch with a gateway of several replicas, whose cores replace those of `tiers`. They share the path from the gateway. The
/// reader places the values of each batch by what is in flight at each replica; stored objects that pass the gateway pass
/// their first choice.
pub fn epoch_with_replicas(
    tiers: &Tiers,
    replicas: &Replicas,
    samples: &[SampleCost],
    read_ahead: ReadAhead,
) -> SimulatedEpoch {
    Epoch::new(tiers, replicas, samples, read_ahead).run()
}

#[cfg(test)]
mod tests;
