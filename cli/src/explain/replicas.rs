//! Replicas of a gateway, which are like the one that was measured or assumed.

use std::num::{NonZeroU16, NonZeroUsize};

use pushdown::plan::{MIN_SAMPLES_PER_REPLICA, Placement, simulate::ReadAhead};
use pushdown_client::store::ReplicaReport;
use serde_json::json;

/// How many replicas there are, and how many of them a reader uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Replicas {
    count: NonZeroU16,
    /// The replicas for which the batches in flight have enough samples.
    used: u16,
    /// The cores of each replica.
    cores: f64,
    read_ahead: ReadAhead,
}

impl Replicas {
    /// `count` replicas with this number of cores each, for batches of this size.
    pub(super) fn new(count: NonZeroU16, cores: f64, batch_samples: NonZeroUsize) -> Self {
        let read_ahead = ReadAhead::for_replicas(batch_samples, count.get().into());
        let ids: Vec<String> = (0..count.get()).map(|index| index.to_string()).collect();
        let placement = Placement::new(ids.iter().map(|id| (id.as_str(), cores)));
        let used = placement.count_for(read_ahead.max_samples_in_flight());
        Self {
            count,
            used: u16::try_from(used).unwrap_or(u16::MAX),
            cores,
            read_ahead,
        }
    }

    /// The cores of all replicas in use.
    pub(super) fn used_cores(&self) -> f64 {
        self.cores * f64::from(self.used)
    }

    /// Samples in flight that keep this number of replicas busy.
    fn min_samples_in_flight(replicas: u16) -> u64 {
        MIN_SAMPLES_PER_REPLICA * u64::from(replicas)
    }

    /// The smallest batches that keep all replicas busy.
    fn min_batch_samples(&self) -> u64 {
        let batches_in_flight = self.read_ahead.batches_in_flight.get() as u64;
        Self::min_samples_in_flight(self.count.get()).div_ceil(batches_in_flight)
    }

    /// Lines on how the replicas share the part of the samples that they compute; empty with one replica.
    pub(super) fn describe(&self, computed_fraction: f64) -> Vec<String> {
        if self.count.get() == 1 {
            return Vec::new();
        }
        let samples_in_flight = Self::min_samples_in_flight(self.used);
        let shared = format!(
            "replicas: {} of {:.1} cores, each computes {:.1} % of the samples; at least {samples_in_flight} samples in flight, \
             {MIN_SAMPLES_PER_REPLICA} for each",
            self.used,
            self.cores,
            100.0 * computed_fraction / f64::from(self.used),
        );
        let mut lines = vec![shared];
        if self.used < self.count.get() {
            lines.push(format!(
                "batches are too small for {} replicas: expected batches of at least {} samples, found {}; {} used, change with \
                 --batch-size",
                self.count,
                self.min_batch_samples(),
                self.read_ahead.batch_samples,
                if self.used == 1 {
                    "one replica is".to_owned()
                } else {
                    format!("{} replicas are", self.used)
                },
            ));
        }
        lines
    }

    /// The same as JSON.
    pub(super) fn as_json(&self, computed_fraction: f64, found: &[ReplicaReport]) -> serde_json::Value {
        let found = found.iter().map(|replica| {
            json!({ "id": replica.id, "address": replica.address, "state": replica.state, "cores": replica.cores })
        });
        json!({
            "found": found.collect::<Vec<_>>(),
            "count": self.count, "used": self.used, "cores": self.cores,
            "share": computed_fraction / f64::from(self.used),
            "min_samples_in_flight": Self::min_samples_in_flight(self.used),
            "max_samples_in_flight": self.read_ahead.max_samples_in_flight(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(count: u16, batch_samples: usize) -> Replicas {
        let (count, batch_samples) = (NonZeroU16::new(count), NonZeroUsize::new(batch_samples));
        Replicas::new(count.unwrap(), 4.0, batch_samples.unwrap())
    }

    #[test]
    fn the_report_says_how_replicas_share_the_samples() {
        let described = [(1, 64), (4, 64), (8, 64), (9, 64), (32, 16), (3, 4)]
            .map(|(count, batch_samples)| replicas(count, batch_samples).describe(0.8));
        insta::assert_snapshot!(described.concat().join("\n"));
    }

    #[test]
    fn small_batches_use_few_replicas() {
        let used = |count, batch_samples| {
            let replicas = replicas(count, batch_samples);
            (replicas.used, replicas.used_cores())
        };
        assert_eq!(used(1, 1), (1, 4.0));
        assert_eq!(used(4, 64), (4, 16.0));
        assert_eq!(used(32, 64), (8, 32.0));
        assert_eq!(used(32, 4), (1, 4.0));
        // Batches of the size that the report names are large enough.
        for count in [2, 9, 32, 33] {
            let batch_samples = replicas(count, 1).min_batch_samples();
            let enough = replicas(count, usize::try_from(batch_samples).unwrap());
            let too_small = replicas(count, usize::try_from(batch_samples - 1).unwrap());
            assert_eq!(enough.used, count);
            assert!(too_small.used < count);
        }
    }
}
