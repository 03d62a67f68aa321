//! The state of a set, and of the pins of a tenant, for the status page.

use serde::Serialize;

use super::{Set, SetId};
use crate::compute::Tenant;

/// A set, its quota and what it saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SetStatus {
    set: String,
    /// The access keys that used it.
    tenants: Vec<String>,
    /// Distinct objects, announced or counted.
    objects: f64,
    /// Bytes that it may use in memory and on disk.
    memory_bytes: f64,
    disk_bytes: f64,
    /// Bytes of them that are pinned.
    pinned_bytes: f64,
    /// The part of its values that is cached.
    cached_ratio: f64,
    /// Mean seconds that a hit saves; null before the first value.
    saved_seconds_per_hit: Option<f64>,
    /// Seconds that its hits saved.
    saved_seconds: f64,
    requests: u64,
    /// Recent requests.
    requests_per_second: f64,
}

impl SetStatus {
    pub(super) fn new(id: SetId, set: &Set, now: std::time::Duration) -> Self {
        let statistics = &set.statistics;
        let used = set.quota.used_bytes(statistics.all_bytes().unwrap_or(0.0));
        let name = |tenant: &Tenant| tenant.name().to_owned();
        Self {
            set: id.to_string(),
            tenants: statistics.tenants.all().map(name).collect(),
            objects: statistics.object_count().round(),
            memory_bytes: used.memory.round(),
            disk_bytes: used.disk.round(),
            pinned_bytes: set.leases.bytes().round(),
            cached_ratio: set.cached_ratio(),
            saved_seconds_per_hit: statistics.saved_seconds(),
            saved_seconds: statistics.total_saved_seconds(),
            requests: statistics.total_requests(),
            requests_per_second: statistics.requests_per_second(now),
        }
    }

    /// The bytes that it may use in both levels.
    pub(super) fn bytes(&self) -> f64 {
        self.memory_bytes + self.disk_bytes
    }
}

/// What a tenant has pinned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PinStatus {
    /// The access key.
    tenant: String,
    /// Data sets with a lease.
    sets: u64,
    /// Bytes that they may use until their leases end.
    bytes: f64,
    /// Seconds until the last lease ends.
    left_seconds: u64,
}

impl PinStatus {
    pub(super) fn new(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            sets: 0,
            bytes: 0.0,
            left_seconds: 0,
        }
    }

    /// Adds the lease on a set.
    pub(super) fn add(&mut self, bytes: f64, left_seconds: u64) {
        self.sets += 1;
        self.bytes += bytes.round();
        self.left_seconds = self.left_seconds.max(left_seconds);
    }
}
