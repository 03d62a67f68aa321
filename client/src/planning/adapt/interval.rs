//! Observations over a time interval: bytes received, and CPU load at both ends of the link.

use std::time::Duration;

use pushdown::{plan::CpuUtilization, wire::CpuTime};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use super::{State, float};
use crate::stats::Traffic;

/// The shortest interval. Bytes received in less time may come from buffers, and CPU time has a resolution of 0.01 s.
const MIN_SECONDS: f64 = 0.2;

/// The start of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalStart {
    at: Instant,
    /// Bytes received until then.
    received_bytes: u64,
    /// CPU seconds of this process until then.
    host_cpu: f64,
    pub(super) gateway_cpu: Option<CpuTime>,
}

impl State {
    /// Reports the current interval to the planner once it is long enough, and begins the next one.
    pub(super) fn observe_interval(&mut self, traffic: &Traffic) {
        let now = IntervalStart::now(traffic, self.gateway_cpu);
        let start = *self.interval.get_or_insert(now);
        let seconds = now.at.saturating_duration_since(start.at).as_secs_f64();
        if seconds < MIN_SECONDS {
            return;
        }
        let gateway = start.gateway_cpu.zip(now.gateway_cpu);
        let gateway = gateway.and_then(|(before, now)| now.since(before));
        let ends = CpuUtilization {
            gateway_ratio: gateway.map(|time| (time.busy_seconds / time.total_seconds).min(1.0)),
            background_ratio: gateway
                .map(|time| (time.busy_seconds - time.step_seconds) / time.total_seconds),
            host_ratio: Some((now.host_cpu - start.host_cpu) / seconds / self.host_cores),
        };
        let rate = float(now.received_bytes.saturating_sub(start.received_bytes)) / seconds;
        self.replanner.link_mut().observe_throughput(rate);
        self.replanner.observe_interval(seconds, &ends);
        self.interval = Some(now);
    }
}

impl IntervalStart {
    pub(super) fn now(traffic: &Traffic, gateway_cpu: Option<CpuTime>) -> Self {
        let host_cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        Self {
            at: Instant::now(),
            received_bytes: traffic.received_bytes(),
            host_cpu: host_cpu.as_secs_f64(),
            gateway_cpu,
        }
    }
}
