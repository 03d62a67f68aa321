//! What is counted and how. Labels have few values: never a bucket, a key or an address of a client or a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::config::ReplicaId;

use super::list::{
    Metrics, OriginLabel, ReasonLabel, ReplicaLabel, RequestLabels, RouteLabel, StatusLabel, StepLabel,
    TierLabel, VerdictLabel,
};

/// Why a store that a request states was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreRefusal {
    /// The operator did not allow it.
    Store,
    /// The operator did not allow the bucket.
    Bucket,
    /// Its host has no address that the operator allows.
    Address,
    /// Too many hosts have open connections.
    Hosts,
}

impl StoreRefusal {
    const ALL: [Self; 4] = [Self::Store, Self::Bucket, Self::Address, Self::Hosts];

    const fn label(self) -> ReasonLabel {
        let reason = match self {
            Self::Store => "store",
            Self::Bucket => "bucket",
            Self::Address => "address",
            Self::Hosts => "hosts",
        };
        ReasonLabel { reason }
    }
}

/// Raises a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "the gauge is lowered again when this is dropped"]
pub struct GaugeGuard {
    gauge: Gauge,
    by: i64,
}

impl Metrics {
    /// Registers all metrics. `routes` are the names of all routes.
    pub fn register(registry: &mut Registry, routes: &'static [&'static str]) -> Self {
        let metrics = Self {
            routes,
            ..Self::default()
        };
        metrics.register_all(registry);
        metrics.list_routes();
        metrics.list_cache();
        for verdict in ["allowed", "denied"] {
            metrics.count_decisions(verdict, 0);
        }
        for refusal in StoreRefusal::ALL {
            drop(metrics.stores_refused.get_or_create(&refusal.label()));
        }
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

    /// The same for the result cache.
    fn list_cache(&self) {
        for origin in ["computed", "memory", "disk", "shared", "prefix"] {
            drop(self.cache_values.get_or_create(&OriginLabel { origin }));
        }
        for status in ["2xx", "3xx", "4xx", "5xx"] {
            drop(self.cache_revalidations.get_or_create(&StatusLabel { status }));
        }
        for tier in ["memory", "disk"] {
            drop(self.cache_inserted.get_or_create(&TierLabel { tier }));
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
        self.step_time
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
        self.queue_wait.0.observe(wait.as_secs_f64());
    }

    /// Counts bytes of the memory budget as reserved until the guard is dropped.
    pub fn track_memory(&self, bytes: u64) -> GaugeGuard {
        GaugeGuard::raise(&self.memory_reserved, i64::try_from(bytes).unwrap_or(i64::MAX))
    }

    /// Bytes of the memory budget that requests have reserved.
    pub fn memory_reserved_bytes(&self) -> i64 {
        self.memory_reserved.get()
    }

    /// Counts a value by where it came from.
    pub fn count_value(&self, origin: &'static str) {
        self.cache_values.get_or_create(&OriginLabel { origin }).inc();
    }

    /// Counts the store's answer to a conditional request of the gateway.
    pub fn count_revalidation(&self, status: StatusCode) {
        let status = status_class(status);
        self.cache_revalidations
            .get_or_create(&StatusLabel { status })
            .inc();
    }

    /// Counts bytes of a value that was added to a level of the result cache.
    pub fn count_cache_insert(&self, level: &'static str, bytes: u64) {
        self.cache_inserted
            .get_or_create(&TierLabel { tier: level })
            .inc_by(bytes);
    }

    /// Counts seconds that a cached value saved.
    pub fn count_cache_saved(&self, seconds: f64) {
        self.cache_saved.inc_by(seconds.max(0.0));
    }

    /// Sets the bytes of values in the memory of the result cache.
    pub fn set_cache_memory_bytes(&self, bytes: u64) {
        self.cache_memory.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Sets the bytes of the result cache that tenants have pinned.
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    pub fn set_cache_pinned_bytes(&self, bytes: f64) {
        self.cache_pinned.set(bytes.round() as i64);
    }

    /// Counts decisions of re-sign mode.
    pub fn count_decisions(&self, verdict: &'static str, number: u64) {
        self.decisions
            .get_or_create(&VerdictLabel { verdict })
            .inc_by(number);
    }

    /// Counts a refusal of a store that a request states.
    pub fn count_refused_store(&self, refusal: StoreRefusal) {
        self.stores_refused.get_or_create(&refusal.label()).inc();
    }

    /// Sets the number of hosts of such stores that have open connections.
    pub fn set_store_hosts(&self, hosts: usize) {
        self.store_hosts.set(i64::try_from(hosts).unwrap_or(i64::MAX));
    }

    /// Sets the cores that readers could use.
    pub fn set_demand_cores(&self, cores: f64) {
        self.demand_cores.set(cores);
    }

    /// Sets the id of this gateway among its replicas.
    pub fn set_replica(&self, id: &ReplicaId) {
        let replica = id.to_string();
        self.replica_info.get_or_create(&ReplicaLabel { replica }).set(1);
    }

    /// Sets the size of the memory budget, in bytes.
    pub fn set_memory_budget_bytes(&self, bytes: u64) {
        self.memory_budget.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// The registry in the text format that Prometheus scrapes.
pub fn encode(registry: &Arc<Registry>) -> Result<String, fmt::Error> {
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, registry)?;
    Ok(page)
}

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
    use crate::telemetry::METRICS;

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
        metrics.set_demand_cores(3.2);
        metrics.set_replica(&"pushdown-0".parse().unwrap());
        let guard = (
            metrics.track_in_flight(Route::Pipeline.name()),
            metrics.track_memory(4096),
        );
        let page = sorted(&encode(&Arc::new(registry)).unwrap());
        let filters = [(r"(process_cpu_seconds_total) \d.*", "$1 [seconds]")];
        for metric in METRICS {
            let line = format!(
                "# TYPE {} {}\n",
                metric.name.trim_end_matches("_total"),
                metric.kind
            );
            assert!(page.contains(&line), "{line} is missing in {page}");
            for label in metric.labels {
                let value = page.lines().find(|line| {
                    line.strip_prefix(metric.name)
                        .is_some_and(|rest| rest.starts_with('{'))
                });
                assert!(
                    value.is_some_and(|line| line.contains(&format!("{label}=\""))),
                    "{label} is missing in {}",
                    metric.name
                );
            }
        }
        assert_eq!(page.matches("# TYPE").count(), METRICS.len());
        insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(page) });
        drop(guard);
        assert_eq!(
            (metrics.in_flight_total(), metrics.memory_reserved_bytes()),
            (0, 0)
        );
    }
}
