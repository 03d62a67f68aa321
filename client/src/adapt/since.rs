//! What happens in a time: what passes, and how busy the ends of the link are.

use std::time::Duration;

use pushdown::{plan::CpuUtilization, wire::CpuTime};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use super::{State, float};
use crate::stats::Traffic;

/// What passes in fewer seconds may have waited in buffers before, and CPU time is told in hundredths of a second.
const ENOUGH: f64 = 0.2;

/// The start of a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    at: Instant,
    /// Bytes that had passed.
    passed: u64,
    /// Seconds of this process's CPU.
    host_cpu: f64,
    pub(super) gateway_cpu: Option<CpuTime>,
}

impl State {
    /// Tells the planner what happened in the time since it was told last, once that is long enough.
    pub(super) fn elapsed(&mut self, traffic: &Traffic) {
        let now = Since::now(traffic, self.gateway_cpu);
        let since = *self.since.get_or_insert(now);
        let seconds = now.at.saturating_duration_since(since.at).as_secs_f64();
        if seconds < ENOUGH {
            return;
        }
        let gateway = since.gateway_cpu.zip(now.gateway_cpu);
        let gateway = gateway.and_then(|(before, now)| now.since(before));
        let ends = CpuUtilization {
            gateway_ratio: gateway.map(|time| (time.busy_seconds / time.total_seconds).min(1.0)),
            background_ratio: gateway
                .map(|time| (time.busy_seconds - time.step_seconds) / time.total_seconds),
            host_ratio: Some((now.host_cpu - since.host_cpu) / seconds / self.host_cores),
        };
        let rate = float(now.passed.saturating_sub(since.passed)) / seconds;
        self.replanner.link_mut().observe_throughput(rate);
        self.replanner.observe_interval(seconds, &ends);
        self.since = Some(now);
    }
}

impl Since {
    pub(super) fn now(traffic: &Traffic, gateway_cpu: Option<CpuTime>) -> Self {
        let host_cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        Self {
            at: Instant::now(),
            passed: traffic.down(),
            host_cpu: host_cpu.as_secs_f64(),
            gateway_cpu,
        }
    }
}
