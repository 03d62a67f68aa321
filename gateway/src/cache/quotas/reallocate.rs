//! Reallocation: moves the quotas towards those sets that gain most.

use std::{collections::HashMap, time::Duration};

use super::{
    Quotas,
    allocate::{Demand, allocate},
    movement::{Movement, move_quotas},
    quota::LevelBytes,
    set::Set,
};
use crate::compute::Tenant;

/// A quota falls by half in this time at most.
pub(crate) const REALLOCATION_INTERVAL: Duration = Duration::from_secs(30);

impl Quotas {
    /// Moves the quotas towards those sets that gain most. To be called at least every [`REALLOCATION_INTERVAL`].
    pub(crate) fn reallocate(&mut self, now: Duration) {
        self.expire(now);
        self.changes += 1;
        let elapsed = self
            .reallocated_at
            .replace(now)
            .map_or(REALLOCATION_INTERVAL, |before| now.saturating_sub(before));
        let min_rest_ratio = 0.5_f64.powf(elapsed.div_duration_f64(REALLOCATION_INTERVAL));

        let statistics = self.sets.values().map(|set| &set.statistics);
        let is_reused: Vec<bool> = statistics.map(|statistics| statistics.is_reused(now)).collect();
        let used: Vec<LevelBytes> = self.sets.values().map(Set::used_bytes).collect();
        // What is pinned is not divided.
        let pin_level = self.pin_level();
        let leases = self.sets.values().map(|set| set.leases.bytes());
        let pinned: Vec<LevelBytes> = leases.map(|bytes| pin_level.scaled(bytes)).collect();
        let rest = self.capacity.minus(
            pinned
                .iter()
                .copied()
                .fold(LevelBytes::default(), LevelBytes::plus),
        );
        let mut demands = self.demands(&is_reused, now);
        let divide = |demands: &mut [Demand], level: fn(&LevelBytes) -> f64| {
            let held = used
                .iter()
                .zip(&pinned)
                .map(|(used, pinned)| level(&used.minus(*pinned)));
            let held: Vec<f64> = held.collect();
            for (demand, pinned) in demands.iter_mut().zip(&pinned) {
                demand.max_bytes = (demand.max_bytes - level(pinned)).max(0.0);
            }
            let bytes = allocate_in_order(level(&rest), demands, &held, &is_reused);
            let bytes = bytes
                .iter()
                .zip(&pinned)
                .map(|(bytes, pinned)| bytes + level(pinned));
            bytes.collect::<Vec<f64>>()
        };
        let total = divide(&mut demands, total_of);
        // A hit in memory saves about the same time over one on disk in every set: memory is for the most requests per byte.
        for ((demand, set), bytes) in demands.iter_mut().zip(self.sets.values()).zip(&total) {
            demand.gain_per_byte = set.requests_per_byte(now);
            demand.max_bytes = bytes * self.levels_of(set).memory;
        }
        let memory = divide(&mut demands, memory_of);

        let memory = move_quotas(
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
        let disk = move_quotas(
            self.capacity.disk,
            min_rest_ratio,
            &movements(&used, &disk, disk_of),
        );

        self.granted = LevelBytes::default();
        for (set, (memory, disk)) in self.sets.values_mut().zip(memory.into_iter().zip(disk)) {
            set.reallocate(LevelBytes { memory, disk });
            self.granted = self.granted.plus(set.quota.bytes());
        }
    }

    /// Forgets sets and tenants without requests, except for sets that are pinned.
    fn expire(&mut self, now: Duration) {
        let expiry = self.expiry;
        self.sets.retain(|_, set| {
            set.forget_tenants(expiry, now);
            set.leases.end(now);
            !set.leases.is_empty() || now.saturating_sub(set.statistics.last_request()) <= expiry
        });
    }

    /// The demand of each set, in the order of the sets. If nobody knows whether a set is used again, those count as its tenants who
    /// have used it.
    fn demands(&self, is_reused: &[bool], now: Duration) -> Vec<Demand> {
        let mut numbers: HashMap<&Tenant, usize> = HashMap::new();
        let mut demands = Vec::with_capacity(self.sets.len());
        for ((id, set), is_reused) in self.sets.iter().zip(is_reused) {
            let all = &set.statistics.tenants;
            let tenants: Vec<&Tenant> = if *is_reused {
                all.recent(now).collect()
            } else {
                all.all().collect()
            };
            let tenants = tenants.into_iter().map(|tenant| {
                let next = numbers.len();
                *numbers.entry(tenant).or_insert(next)
            });
            demands.push(Demand {
                set: *id,
                tenants: tenants.collect(),
                gain_per_byte: set.gain_per_byte(now),
                is_held: false,
                max_bytes: set.statistics.all_bytes().unwrap_or(0.0),
            });
        }
        demands
    }
}

/// The bytes of each set. Those with evidence that they are used again come first. Of what they leave, the others get first what
/// they hold: nothing says that a newer one is worth more.
fn allocate_in_order(capacity_bytes: f64, demands: &[Demand], held: &[f64], is_reused: &[bool]) -> Vec<f64> {
    let only_if = |is_wanted: bool, demand: &Demand, max_bytes: f64| Demand {
        max_bytes: if is_wanted { max_bytes } else { 0.0 },
        ..demand.clone()
    };
    let sets = demands.iter().zip(is_reused);
    let reused: Vec<Demand> = sets
        .map(|(demand, is_reused)| only_if(*is_reused, demand, demand.max_bytes))
        .collect();
    let mut bytes = allocate(capacity_bytes, &reused);

    let sets = || demands.iter().zip(held).zip(is_reused);
    let of_others = sets().map(|((demand, held), is_reused)| Demand {
        is_held: true,
        ..only_if(!is_reused, demand, held.min(demand.max_bytes))
    });
    let lacking = sets()
        .map(|((demand, held), is_reused)| only_if(!is_reused, demand, (demand.max_bytes - held).max(0.0)));
    let others: Vec<Demand> = of_others.chain(lacking).collect();
    let rest_bytes = (capacity_bytes - bytes.iter().sum::<f64>()).max(0.0);
    let rest = allocate(rest_bytes, &others);
    let (held, lacking) = rest.split_at(demands.len());
    for ((bytes, held), lacking) in bytes.iter_mut().zip(held).zip(lacking) {
        *bytes += held + lacking;
    }
    bytes
}

/// The movement of each quota in one level.
fn movements(used: &[LevelBytes], targets: &[f64], level: fn(&LevelBytes) -> f64) -> Vec<Movement> {
    let movement = |(used, target): (&LevelBytes, &f64)| Movement {
        current_bytes: level(used),
        target_bytes: *target,
    };
    used.iter().zip(targets).map(movement).collect()
}

fn total_of(bytes: &LevelBytes) -> f64 {
    bytes.total()
}

const fn memory_of(bytes: &LevelBytes) -> f64 {
    bytes.memory
}

const fn disk_of(bytes: &LevelBytes) -> f64 {
    bytes.disk
}
