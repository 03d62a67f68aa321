//! Reallocation: moves the shares towards those sets that gain most.

use std::{collections::HashMap, time::Duration};

use super::{
    Shares,
    allocate::{Demand, allocate},
    movement::{Movement, move_shares},
    set::Set,
    share::TierBytes,
};
use crate::compute::Tenant;

/// A share falls by half in this time at most.
pub(crate) const REALLOCATION_INTERVAL: Duration = Duration::from_secs(30);

impl Shares {
    /// Moves the shares towards those sets that gain most. To be called at least every [`REALLOCATION_INTERVAL`].
    pub(crate) fn reallocate(&mut self, now: Duration) {
        self.expire(now);
        let elapsed = self
            .reallocated_at
            .replace(now)
            .map_or(REALLOCATION_INTERVAL, |before| now.saturating_sub(before));
        let min_rest_ratio = 0.5_f64.powf(elapsed.div_duration_f64(REALLOCATION_INTERVAL));

        let mut demands = self.demands(now);
        let total = allocate(self.capacity.total(), &demands);
        // A hit in memory saves about the same time over one on disk in every set: memory is for the most requests per byte.
        for ((demand, set), bytes) in demands.iter_mut().zip(self.sets.values()).zip(&total) {
            demand.gain_per_byte = set.requests_per_byte(now);
            demand.max_bytes = *bytes;
        }
        let memory = allocate(self.capacity.memory, &demands);

        let used: Vec<TierBytes> = self.sets.values().map(Set::used_bytes).collect();
        let memory = move_shares(
            self.capacity.memory,
            min_rest_ratio,
            &movements(&used, &memory, memory_of),
        );
        // A value that is still in memory, or not yet there, counts in memory or on disk, not in both.
        let disk = total
            .iter()
            .zip(&memory)
            .map(|(total, memory)| (total - memory).max(0.0));
        let disk: Vec<f64> = disk.collect();
        let disk = move_shares(
            self.capacity.disk,
            min_rest_ratio,
            &movements(&used, &disk, disk_of),
        );

        self.granted = TierBytes::default();
        for (set, (memory, disk)) in self.sets.values_mut().zip(memory.into_iter().zip(disk)) {
            set.reallocate(TierBytes { memory, disk });
            self.granted = self.granted.plus(set.share.bytes());
        }
    }

    /// Forgets sets and tenants without requests.
    fn expire(&mut self, now: Duration) {
        let expiry = self.expiry;
        self.sets.retain(|_, set| {
            set.forget_tenants(expiry, now);
            now.saturating_sub(set.statistics.last_request()) <= expiry
        });
    }

    /// The demand of each set, in the order of the sets.
    fn demands(&self, now: Duration) -> Vec<Demand> {
        let mut numbers: HashMap<&Tenant, usize> = HashMap::new();
        let mut demands = Vec::with_capacity(self.sets.len());
        for (id, set) in &self.sets {
            let tenants = set.statistics.tenants.recent(now).map(|tenant| {
                let next = numbers.len();
                *numbers.entry(tenant).or_insert(next)
            });
            demands.push(Demand {
                set: *id,
                tenants: tenants.collect(),
                gain_per_byte: set.gain_per_byte(now),
                max_bytes: set.statistics.all_bytes().unwrap_or(0.0),
            });
        }
        demands
    }
}

/// The movement of each share in one tier.
fn movements(used: &[TierBytes], targets: &[f64], tier: fn(&TierBytes) -> f64) -> Vec<Movement> {
    let movement = |(used, target): (&TierBytes, &f64)| Movement {
        current_bytes: tier(used),
        target_bytes: *target,
    };
    used.iter().zip(targets).map(movement).collect()
}

const fn memory_of(bytes: &TierBytes) -> f64 {
    bytes.memory
}

const fn disk_of(bytes: &TierBytes) -> f64 {
    bytes.disk
}
