//! All metrics. Names begin with `pushdown_`, or with `process_` for metrics that every program has. Units are base
//! units. Labels have few values: never a bucket, a key or an address.

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

/// Handles to every metric. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// The names of all routes.
    routes: &'static [&'static str],
    requests: Family<RequestLabels, Counter>,
    requests_in_flight: Family<RouteLabel, Gauge>,
    connections: Gauge,
    /// Bytes of the store's answers, received by the gateway.
    pub bytes_from_store: Counter,
    /// Bytes of answers sent to clients, all routes together.
    pub bytes_to_clients: Counter,
    /// Bytes of request bodies received from clients.
    pub bytes_from_clients: Counter,
    step_seconds: Family<StepLabel, Counter<f64, AtomicU64>>,
    /// Micro-batches that ran through model layers.
    pub micro_batches: Counter,
    /// Samples in these micro-batches.
    pub micro_batch_samples: Counter,
    requests_queued: Gauge,
    queue_wait_seconds: QueueWaitSeconds,
    memory_reserved_bytes: Gauge,
    memory_budget_bytes: Gauge,
}

/// Raises a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "the gauge is lowered again when this is dropped"]
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
struct RouteLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

#[derive(Debug, Clone)]
struct QueueWaitSeconds(Histogram);

impl Default for QueueWaitSeconds {
    fn default() -> Self {
        Self(Histogram::new(exponential_buckets(0.001, 4.0, 8)))
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers all metrics. `routes` are the names of all routes.
    pub fn register(registry: &mut Registry, routes: &'static [&'static str]) -> Self {
        let metrics = Self {
            routes,
            ..Self::default()
        };
        registry.register_collector(Box::new(ProcessCpu));
        let all = registry.sub_registry_with_prefix("pushdown");
        all.register(
            "requests",
            "Requests answered, by route and class of status",
            metrics.requests.clone(),
        );
        all.register(
            "requests_in_flight",
            "Requests whose answers have not ended, by route",
            metrics.requests_in_flight.clone(),
        );
        all.register(
            "connections",
            "Open client connections",
            metrics.connections.clone(),
        );
        let bytes = [
            (
                "store_received",
                "Bytes of answers received from the store",
                &metrics.bytes_from_store,
            ),
            (
                "client_sent",
                "Bytes of answers sent to clients",
                &metrics.bytes_to_clients,
            ),
            (
                "client_received",
                "Bytes of request bodies received from clients",
                &metrics.bytes_from_clients,
            ),
        ];
        for (name, help, counter) in bytes {
            all.register_with_unit(name, help, Unit::Bytes, counter.clone());
        }
        all.register_with_unit(
            "step",
            "Time of pipeline steps on the CPU pool, by step",
            Unit::Seconds,
            metrics.step_seconds.clone(),
        );
        all.register(
            "micro_batches",
            "Micro-batches that ran through model layers",
            metrics.micro_batches.clone(),
        );
        all.register(
            "micro_batch_samples",
            "Samples that ran through model layers",
            metrics.micro_batch_samples.clone(),
        );
        all.register(
            "requests_queued",
            "Pipeline requests that wait for memory",
            metrics.requests_queued.clone(),
        );
        all.register_with_unit(
            "queue_wait",
            "Time that pipeline requests waited for memory",
            Unit::Seconds,
            metrics.queue_wait_seconds.0.clone(),
        );
        let memory = [
            (
                "memory_reserved",
                "Bytes of the memory budget that requests have reserved",
                &metrics.memory_reserved_bytes,
            ),
            (
                "memory_budget",
                "Size of the memory budget",
                &metrics.memory_budget_bytes,
            ),
        ];
        for (name, help, gauge) in memory {
            all.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
        metrics.list_routes();
        metrics
    }

    /// Lists the counters of all routes from the start: a rate over a counter that appears later misses its first value.
    fn list_routes(&self) {
        for &kind in self.routes {
            drop(self.requests_in_flight.get_or_create(&RouteLabel { kind }));
            for status in ["2xx", "4xx", "5xx"] {
                drop(self.requests.get_or_create(&RequestLabels { kind, status }));
            }
        }
    }

    /// Counts an answer of a route.
    pub fn count_answer(&self, route: &'static str, status: StatusCode) {
        self.requests
            .get_or_create(&RequestLabels {
                kind: route,
                status: status_class(status),
            })
            .inc();
    }

    /// Counts a request of a route as in flight until the guard is dropped.
    pub fn track_in_flight(&self, route: &'static str) -> GaugeGuard {
        let label = RouteLabel { kind: route };
        GaugeGuard::raise(&self.requests_in_flight.get_or_create(&label), 1)
    }

    /// Requests in flight, all routes together.
    pub fn in_flight_total(&self) -> i64 {
        self.routes
            .iter()
            .map(|route| {
                self.requests_in_flight
                    .get_or_create(&RouteLabel { kind: route })
                    .get()
            })
            .sum()
    }

    /// Counts a client connection as open until the guard is dropped.
    pub fn track_connection(&self) -> GaugeGuard {
        GaugeGuard::raise(&self.connections, 1)
    }

    /// Open client connections.
    pub fn connections(&self) -> i64 {
        self.connections.get()
    }

    /// Adds to the time of a step.
    pub fn add_step_time(&self, step: &'static str, time: Duration) {
        self.step_seconds
            .get_or_create(&StepLabel { step })
            .inc_by(time.as_secs_f64());
    }

    /// Counts a request as waiting for memory until the guard is dropped.
    pub fn track_queued(&self) -> GaugeGuard {
        GaugeGuard::raise(&self.requests_queued, 1)
    }

    /// Requests that wait for memory.
    pub fn requests_queued(&self) -> i64 {
        self.requests_queued.get()
    }

    /// Records how long a request waited for memory, successful or not.
    pub fn observe_queue_wait(&self, wait: Duration) {
        self.queue_wait_seconds.0.observe(wait.as_secs_f64());
    }

    /// Counts bytes of the memory budget as reserved until the guard is dropped.
    pub fn track_memory(&self, bytes: u64) -> GaugeGuard {
        GaugeGuard::raise(
            &self.memory_reserved_bytes,
            i64::try_from(bytes).unwrap_or(i64::MAX),
        )
    }

    /// Bytes of the memory budget that requests have reserved.
    pub fn memory_reserved_bytes(&self) -> i64 {
        self.memory_reserved_bytes.get()
    }

    /// Sets the size of the memory budget, in bytes.
    pub fn set_memory_budget_bytes(&self, bytes: u64) {
        self.memory_budget_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// The registry in the text format that Prometheus scrapes.
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

fn status_class(status: StatusCode) -> &'static str {
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
    use crate::routes::Route;

    /// The page with the values of each family in order: a family is a hash map.
    fn sorted(page: &str) -> String {
        let mut lines: Vec<_> = page.lines().collect();
        for values in lines.chunk_by_mut(|line, next| !line.starts_with('#') && !next.starts_with('#')) {
            if !values[0].contains("_bucket{") && values[0].contains('{') {
                values.sort_unstable();
            }
        }
        lines.join("\n")
    }

    #[test]
    fn the_page_lists_every_metric() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, &Route::NAMES);
        metrics.count_answer(Route::Forward.name(), StatusCode::NOT_FOUND);
        metrics.add_step_time("decode", Duration::from_millis(1500));
        metrics.observe_queue_wait(Duration::from_millis(3));
        metrics.set_memory_budget_bytes(1 << 30);
        let guard = (
            metrics.track_in_flight(Route::Pipeline.name()),
            metrics.track_memory(4096),
        );
        let page = sorted(&encode(&Arc::new(registry)).unwrap());
        let filters = [(r"(process_cpu_seconds_total) \d.*", "$1 [seconds]")];
        insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(page) });
        drop(guard);
        assert_eq!(
            (metrics.in_flight_total(), metrics.memory_reserved_bytes()),
            (0, 0)
        );
    }
}
