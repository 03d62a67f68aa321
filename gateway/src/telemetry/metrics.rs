//! The one list of metrics. Names begin with `pushdown_`, but for what every program has (`process_`); units are base
//! units, labels have few values: no bucket, no key, no address.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::process::ProcessCpu;
use crate::s3::request::Face;

/// Handles to every metric. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    in_flight: Family<FaceLabel, Gauge>,
    connections: Gauge,
    /// Bytes of the store's answers.
    pub bytes_from_store: Counter,
    /// Bytes of answers to clients, of every face.
    pub bytes_to_clients: Counter,
    /// Bytes of clients' request bodies.
    pub bytes_from_clients: Counter,
    step_seconds: Family<StepLabel, Counter<f64, AtomicU64>>,
    /// Batches of samples that ran through layers of a model at once.
    pub layer_batches: Counter,
    /// The samples in them.
    pub layer_samples: Counter,
    queued: Gauge,
    queue_wait: QueueWait,
    permits_in_use: Gauge,
    permits_total: Gauge,
}

/// Raises a gauge for as long as it lives.
#[derive(Debug)]
#[must_use = "the gauge falls back as soon as this is dropped"]
pub struct GaugeGuard {
    gauge: Gauge,
    by: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    kind: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaceLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

#[derive(Debug, Clone)]
struct QueueWait(Histogram);

impl Default for QueueWait {
    fn default() -> Self {
        Self(Histogram::new(exponential_buckets(0.001, 4.0, 8)))
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers the whole list.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(ProcessCpu));
        let all = registry.sub_registry_with_prefix("pushdown");
        all.register(
            "requests",
            "Requests answered, by kind and class of status",
            metrics.requests.clone(),
        );
        all.register(
            "in_flight",
            "Requests whose answers have not ended, by kind",
            metrics.in_flight.clone(),
        );
        all.register(
            "connections",
            "Open client connections",
            metrics.connections.clone(),
        );
        let bytes = [
            (
                "store_received",
                "Bytes of the store's answers",
                &metrics.bytes_from_store,
            ),
            (
                "client_sent",
                "Bytes of answers to clients",
                &metrics.bytes_to_clients,
            ),
            (
                "client_received",
                "Bytes of clients' request bodies",
                &metrics.bytes_from_clients,
            ),
        ];
        for (name, help, counter) in bytes {
            all.register_with_unit(name, help, Unit::Bytes, counter.clone());
        }
        all.register_with_unit(
            "step",
            "Time spent in pipeline steps on the CPU pool, by step",
            Unit::Seconds,
            metrics.step_seconds.clone(),
        );
        all.register(
            "layer_batches",
            "Batches of samples that ran through layers of a model at once",
            metrics.layer_batches.clone(),
        );
        all.register(
            "layer_samples",
            "Samples that ran through layers of a model",
            metrics.layer_samples.clone(),
        );
        all.register(
            "queued",
            "Pipeline requests that wait for memory or a CPU",
            metrics.queued.clone(),
        );
        all.register_with_unit(
            "queue_wait",
            "Waits of pipeline requests for memory or a CPU",
            Unit::Seconds,
            metrics.queue_wait.0.clone(),
        );
        let permits = [
            (
                "permits_in_use",
                "Bytes of the memory budget that are promised",
                &metrics.permits_in_use,
            ),
            (
                "permits_total",
                "Bytes of the memory budget",
                &metrics.permits_total,
            ),
        ];
        for (name, help, gauge) in permits {
            all.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
        metrics
    }

    /// Counts an answer.
    pub fn answered(&self, face: Face, status: StatusCode) {
        self.requests
            .get_or_create(&RequestLabels {
                kind: face.name(),
                status: class(status),
            })
            .inc();
    }

    /// One more request in flight.
    pub fn in_flight(&self, face: Face) -> GaugeGuard {
        GaugeGuard::raise(&self.in_flight.get_or_create(&FaceLabel { kind: face.name() }), 1)
    }

    /// Requests in flight, of every kind.
    pub fn in_flight_total(&self) -> i64 {
        [Face::Forward, Face::Pipeline, Face::Batch, Face::Models]
            .into_iter()
            .map(|face| {
                self.in_flight
                    .get_or_create(&FaceLabel { kind: face.name() })
                    .get()
            })
            .sum()
    }

    /// One more client connection.
    pub fn connection(&self) -> GaugeGuard {
        GaugeGuard::raise(&self.connections, 1)
    }

    /// Open client connections.
    pub fn connections(&self) -> i64 {
        self.connections.get()
    }

    /// Adds to the time spent in a step.
    pub fn step(&self, step: &'static str, time: Duration) {
        self.step_seconds
            .get_or_create(&StepLabel { step })
            .inc_by(time.as_secs_f64());
    }

    /// One more request waits for memory or a CPU.
    pub fn queued(&self) -> GaugeGuard {
        GaugeGuard::raise(&self.queued, 1)
    }

    /// Requests that wait for memory or a CPU.
    pub fn queue_length(&self) -> i64 {
        self.queued.get()
    }

    /// Notes a wait that is over, well or not.
    pub fn waited(&self, wait: Duration) {
        self.queue_wait.0.observe(wait.as_secs_f64());
    }

    /// Promises bytes of the memory budget.
    pub fn permits(&self, bytes: u64) -> GaugeGuard {
        GaugeGuard::raise(&self.permits_in_use, i64::try_from(bytes).unwrap_or(i64::MAX))
    }

    /// Bytes of the memory budget that are promised.
    pub fn permits_in_use(&self) -> i64 {
        self.permits_in_use.get()
    }

    /// Sets the size of the memory budget, in bytes.
    pub fn set_permits_total(&self, bytes: u64) {
        self.permits_total.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// The registry in the text form that Prometheus scrapes.
pub fn encode(registry: &Arc<Registry>) -> Result<String, fmt::Error> {
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, registry)?;
    Ok(page)
}

// === impl GaugeGuard ===

impl GaugeGuard {
    fn raise(gauge: &Gauge, by: i64) -> Self {
        gauge.inc_by(by);
        Self {
            gauge: gauge.clone(),
            by,
        }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.gauge.dec_by(self.by);
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_metric() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.answered(Face::Forward, StatusCode::NOT_FOUND);
        metrics.step("decode", Duration::from_millis(1500));
        metrics.waited(Duration::from_millis(3));
        metrics.set_permits_total(1 << 30);
        let guard = (metrics.in_flight(Face::Pipeline), metrics.permits(4096));
        let page = encode(&Arc::new(registry)).unwrap();
        let filters = [(r"(process_cpu_seconds_total) \d.*", "$1 [seconds]")];
        insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(page) });
        drop(guard);
        assert_eq!((metrics.in_flight_total(), metrics.permits_in_use()), (0, 0));
    }
}
