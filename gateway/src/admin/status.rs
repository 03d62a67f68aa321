//! `/status.json`: the state of the gateway for people and for the client's planner.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Serialize;

use super::PageSources;
use crate::cache::CacheStatus;
use crate::compute::TenantDemand;
use crate::config::{Limits, ReplicaId};
use crate::engine;
use crate::models::ModelStatus;

/// The current state of the gateway.
#[derive(Debug, Serialize)]
pub(super) struct Status<'a> {
    version: &'static str,
    /// The id of this gateway among its replicas.
    replica: &'a ReplicaId,
    /// The version of each step family.
    engine: String,
    draining: bool,
    uptime_seconds: u64,
    /// CPUs that this process may use.
    cores: usize,
    /// Threads of the CPU pool.
    threads: NonZeroUsize,
    /// Runnable processes of the machine, averaged over a minute; null if the system does not report it.
    load: Option<f64>,
    connections: i64,
    in_flight: i64,
    queued: i64,
    memory: Memory,
    models: Vec<ModelStatus>,
    /// Null without a result cache.
    cache: Option<CacheStatus>,
    /// How many cores the readers of each tenant could use.
    demand: Vec<TenantDemand>,
    limits: &'a Limits,
}

/// The memory budget, in bytes.
#[derive(Debug, Serialize)]
struct Memory {
    budget: u64,
    /// Bytes that requests have reserved.
    promised: i64,
}

impl<'a> Status<'a> {
    pub(super) fn current(sources: &'a PageSources, uptime: Duration) -> Self {
        let (config, metrics) = (&sources.config, &sources.metrics);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            replica: &sources.replica,
            engine: engine::stated_for_all().to_string(),
            draining: sources.drain.is_cancelled(),
            uptime_seconds: uptime.as_secs(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            threads: config.threads,
            load: load_average(),
            connections: metrics.connections(),
            in_flight: metrics.in_flight_total(),
            queued: metrics.requests_queued(),
            memory: Memory {
                budget: config.memory_budget,
                promised: metrics.memory_reserved_bytes(),
            },
            models: sources.models.statuses(),
            cache: sources.cache.status(),
            demand: sources.demand.tenants(),
            limits: &config.limits,
        }
    }
}

/// The load average over a minute. Does not block: `/proc/loadavg` is not on a disk.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()
}
