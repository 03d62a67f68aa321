//! Observations over a time interval: bytes received, and CPU load at both ends of the link.

use pushdown::{plan::CpuUtilization, wire::CpuTime};

use super::{
    State,
    event::{Moment, ResourceUsage},
    float,
};

/// The shortest interval. Bytes received in less time may come from buffers, and CPU time has a resolution of 0.01 s.
const MIN_SECONDS: f64 = 0.2;

/// The start of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalStart {
    moment: Moment,
    /// CPU seconds of this process until then.
    host_cpu: f64,
    pub(super) gateway_cpu: Option<CpuTime>,
}

impl State {
    /// Begins the first interval.
    pub(super) fn begin_interval(&mut self, usage: ResourceUsage) {
        let start = self.interval_start(usage);
        self.interval.get_or_insert(start);
    }

    /// Reports the current interval to the planner once it is long enough, and begins the next one.
    pub(super) fn observe_interval(&mut self, usage: ResourceUsage) {
        let now = self.interval_start(usage);
        let start = *self.interval.get_or_insert(now);
        let seconds = now.moment.at.saturating_sub(start.moment.at).as_secs_f64();
        if seconds < MIN_SECONDS {
            return;
        }
        let gateway = start.gateway_cpu.zip(now.gateway_cpu);
        let gateway = gateway.and_then(|(before, now)| now.since(before));
        let ends = CpuUtilization {
            gateway_ratio: gateway.map(|time| (time.busy_seconds / time.total_seconds).min(1.0)),
            background_ratio: gateway
                .map(|time| (time.busy_seconds - time.step_seconds) / time.total_seconds),
            host_ratio: Some(
                (now.host_cpu - start.host_cpu) / seconds / float(self.planner.threads() as u64),
            ),
        };
        let (before, received) = (start.moment.received, now.moment.received);
        let rate = |before: u64, received: u64| float(received.saturating_sub(before)) / seconds;
        self.planner.replanner.links_mut().observe_throughput(
            rate(before.store, received.store),
            rate(before.gateway, received.gateway),
        );
        self.planner.replanner.observe_interval(seconds, &ends);
        self.interval = Some(now);
    }

    fn interval_start(&mut self, usage: ResourceUsage) -> IntervalStart {
        IntervalStart {
            moment: self.advance(usage.moment),
            host_cpu: usage.host_cpu_seconds,
            gateway_cpu: self.gateway_cpu,
        }
    }
}
