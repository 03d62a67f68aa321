//! Replicas of a gateway, each with a queue of its own.

use super::queues::{Gateway, Time};
use crate::{Placement, placement::mix};
use pushdown_core::float;

/// The replicas of a gateway: where samples are placed, and the cores of each replica.
#[derive(Debug, Clone)]
pub struct Replicas {
    placement: Placement,
    cores: Vec<f64>,
}

/// The queues of all replicas, and the samples in them.
pub(super) struct ReplicaQueues<'a> {
    placement: &'a Placement,
    gateways: Vec<Gateway>,
    /// Samples that were requested from each replica and have not arrived.
    in_flight: Vec<u64>,
    /// The replica of each requested sample.
    places: Vec<usize>,
    placed: u64,
    first_choices: u64,
}

impl Replicas {
    /// Replicas with these cores, and the weights that follow from them.
    pub fn with_cores(cores: &[f64]) -> Self {
        let ids: Vec<String> = (0..cores.len()).map(|index| format!("gw-{index}")).collect();
        let placement = Placement::new(ids.iter().map(String::as_str).zip(cores.iter().copied()));
        Self::new(placement, cores)
    }

    /// Replicas with these cores, whose samples are placed with weights that need not follow from the cores.
    ///
    /// # Panics
    /// If the placement has another number of replicas, or none.
    pub fn new(placement: Placement, cores: &[f64]) -> Self {
        assert_eq!(placement.len(), cores.len(), "expected the cores of each replica");
        assert!(!cores.is_empty(), "expected at least one replica");
        Self {
            placement,
            cores: cores.to_vec(),
        }
    }
}

impl<'a> ReplicaQueues<'a> {
    /// Empty queues for an epoch of this many samples.
    pub(super) fn new(replicas: &'a Replicas, samples: usize) -> Self {
        Self {
            placement: &replicas.placement,
            gateways: replicas.cores.iter().map(|cores| Gateway::new(*cores)).collect(),
            in_flight: vec![0; replicas.cores.len()],
            places: vec![0; samples],
            placed: 0,
            first_choices: 0,
        }
    }

    /// Places the values of a batch, which are in flight from now on.
    pub(super) fn place(&mut self, samples: &[usize]) {
        let hashes: Vec<u64> = samples.iter().map(|sample| object_hash(*sample)).collect();
        let assigned = self.placement.assign(&hashes, &self.in_flight, |_| true);
        for ((sample, hash), place) in samples.iter().zip(&hashes).zip(assigned) {
            self.places[*sample] = place;
            self.in_flight[place] += 1;
            self.placed += 1;
            self.first_choices += u64::from(self.placement.first_choice(*hash) == Some(place));
        }
    }

    /// Queues the work on a placed sample, and returns when it is done.
    pub(super) fn run(&mut self, now: Time, sample: usize, seconds: f64) -> Time {
        self.gateways[self.places[sample]].run(now, seconds)
    }

    /// Runs the work on a stored object immediately at its first choice, and returns when it is done.
    pub(super) fn interrupt(&mut self, now: Time, sample: usize, seconds: f64) -> Time {
        if seconds <= 0.0 {
            return now;
        }
        match self.placement.first_choice(object_hash(sample)) {
            Some(place) => self.gateways[place].interrupt(now, seconds),
            None => now,
        }
    }

    /// A placed sample has arrived.
    pub(super) fn arrive(&mut self, sample: usize) {
        self.in_flight[self.places[sample]] -= 1;
    }

    /// The ratio of placed samples that were placed at their first choice; 1 if none was placed.
    pub(super) fn first_choice_ratio(&self) -> f64 {
        if self.placed == 0 {
            1.0
        } else {
            float(self.first_choices) / float(self.placed)
        }
    }
}

/// The hash of a simulated object.
const fn object_hash(sample: usize) -> u64 {
    mix(sample as u64)
}

#[cfg(test)]
mod tests;
