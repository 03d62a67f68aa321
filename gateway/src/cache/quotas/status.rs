//! The state of a set, for the status page.

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
