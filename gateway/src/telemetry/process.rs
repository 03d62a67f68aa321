//! Metrics of the whole process, read on each scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use rustix::time::{ClockId, clock_gettime};

use super::list::{Metric, Stability};

pub(super) const CPU: Metric = Metric {
    name: "process_cpu_seconds_total",
    kind: "counter",
    labels: &[],
    unit: Some("seconds"),
    stability: Stability::Stable,
    help: "CPU time of the process, all threads together",
};

/// CPU time, under the metric name that is usual for all programs.
#[derive(Debug)]
pub(super) struct ProcessCpu;

impl Collector for ProcessCpu {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let time = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        let counter = ConstCounter::new(time.as_secs_f64());
        let metric = encoder.encode_descriptor(
            "process_cpu",
            CPU.help,
            Some(&Unit::Seconds),
            counter.metric_type(),
        )?;
        counter.encode(metric)
    }
}
