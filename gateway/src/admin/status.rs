//! `/status.json`: what a person, or the reader's planner, wants to know at a glance.

use std::num::NonZeroUsize;
use std::time::Duration;

use pushdown::step::model::{Model, Provider};
use serde::Serialize;

use super::Sources;
use crate::config::Limits;

/// The state of the gateway now.
#[derive(Debug, Serialize)]
pub(super) struct Status<'a> {
    version: &'static str,
    /// Readers with another ENGINE read plainly.
    engine: u32,
    draining: bool,
    uptime_seconds: u64,
    /// CPUs that this process may use.
    cores: usize,
    /// Threads of the CPU pool.
    threads: NonZeroUsize,
    /// Runnable processes of the machine, averaged over a minute; null where the system does not tell.
    load: Option<f64>,
    connections: i64,
    in_flight: i64,
    queued: i64,
    memory: Memory,
    models: Vec<ModelStatus>,
    limits: &'a Limits,
}

/// A model that pipelines may name.
#[derive(Debug, Serialize)]
struct ModelStatus {
    name: String,
    digest: String,
    bytes: u64,
    /// Whether its weights are in memory.
    loaded: bool,
    /// What computes it: the one in force, not the one that was asked for.
    execution_provider: Provider,
}

/// The memory budget, in bytes.
#[derive(Debug, Serialize)]
struct Memory {
    budget: u64,
    promised: i64,
}

impl<'a> Status<'a> {
    pub(super) fn now(sources: &'a Sources, uptime: Duration) -> Self {
        let (config, metrics) = (&sources.config, &sources.metrics);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            engine: pushdown::ENGINE,
            draining: sources.drain.is_cancelled(),
            uptime_seconds: uptime.as_secs(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            threads: config.threads,
            load: load(),
            connections: metrics.connections(),
            in_flight: metrics.in_flight_total(),
            queued: metrics.queue_length(),
            memory: Memory {
                budget: config.memory_budget,
                promised: metrics.permits_in_use(),
            },
            models: sources
                .models
                .all()
                .iter()
                .map(|model| ModelStatus::of(model))
                .collect(),
            limits: &config.limits,
        }
    }
}

impl ModelStatus {
    fn of(model: &Model) -> Self {
        let description = model.description();
        Self {
            name: description.name.clone(),
            digest: description.digest.clone(),
            bytes: description.bytes,
            loaded: model.is_loaded(),
            execution_provider: model.provider(),
        }
    }
}

/// One small read of a file that is not on any disk.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()
}
