//! The list of metrics: name, type, labels, unit, stability and help each. Names begin with `pushdown_`, or with `process_` for
//! metrics that every program has. Units are base units.
//!
//! It makes the handles of [`Metrics`], their registration, and `docs/METRICS.md`.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use super::process::{self, ProcessCpu};

/// What a metric promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Name, labels and unit change only in a major version, from 1.0 on.
    Stable,
    /// May change in a minor version.
    Unstable,
}

/// A metric as Prometheus sees it.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name in a query, with prefix, unit and `_total`.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// `bytes` or `seconds`; `None` for a number of things.
    pub unit: Option<&'static str>,
    /// What it promises.
    pub stability: Stability,
    /// What it measures.
    pub help: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteLabel {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StepLabel {
    pub(super) step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OriginLabel {
    pub(super) origin: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StatusLabel {
    pub(super) status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VerdictLabel {
    pub(super) verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabel {
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReplicaLabel {
    pub(super) replica: String,
}

/// A level of the result cache. Its label is called `tier` since its first release.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TierLabel {
    pub(super) tier: &'static str,
}

/// Seconds that requests waited, from a millisecond to 16 seconds by factors of four.
#[derive(Debug, Clone)]
pub(super) struct WaitSeconds(pub(super) Histogram);

impl Default for WaitSeconds {
    fn default() -> Self {
        Self(Histogram::new(exponential_buckets(0.001, 4.0, 8)))
    }
}

impl EncodeMetric for WaitSeconds {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        Histogram::TYPE
    }
}

/// Defines [`Metrics`] and [`METRICS`] from lines `/// help`, `handle: Type = kind "name" {labels} [unit] stability;`.
macro_rules! metrics {
    (@unit) => { None };
    (@unit bytes) => { Some(Unit::Bytes) };
    (@unit seconds) => { Some(Unit::Seconds) };
    (@unit_name) => { None };
    (@unit_name $unit:ident) => { Some(stringify!($unit)) };
    (@suffix counter) => { "_total" };
    (@suffix $kind:ident) => { "" };
    ($(
        #[doc = $help:literal]
        $visibility:vis $handle:ident: $type:ty = $kind:ident $name:literal {$($label:ident),*} $([$unit:ident])? $stability:ident;
    )+) => {
        /// Handles to every metric. Cloning shares them.
        #[derive(Debug, Clone, Default)]
        pub struct Metrics {
            /// The names of all routes.
            pub(super) routes: &'static [&'static str],
            $(#[doc = $help] $visibility $handle: $type,)+
        }

        impl Metrics {
            /// Registers all metrics of the list, with the values that they have now.
            pub(super) fn register_all(&self, registry: &mut Registry) {
                registry.register_collector(Box::new(ProcessCpu));
                let registry = registry.sub_registry_with_prefix("pushdown");
                $(match metrics!(@unit $($unit)?) {
                    Some(unit) => registry.register_with_unit($name, $help.trim_ascii(), unit, self.$handle.clone()),
                    None => registry.register($name, $help.trim_ascii(), self.$handle.clone()),
                })+
            }
        }

        /// Every metric, in the order of the page.
        pub const METRICS: &[Metric] = &[
            process::CPU,
            $(Metric {
                name: concat!("pushdown_", $name, $("_", stringify!($unit),)? metrics!(@suffix $kind)),
                kind: stringify!($kind),
                labels: &[$(stringify!($label)),*],
                unit: metrics!(@unit_name $($unit)?),
                stability: Stability::$stability,
                help: $help.trim_ascii(),
            },)+
        ];
    };
}

metrics! {
    /// Requests answered, by route and class of status
    pub(super) requests: Family<RequestLabels, Counter> = counter "requests" {kind, status} Stable;
    /// Requests whose answers have not ended, by route
    pub(super) requests_in_flight: Family<RouteLabel, Gauge> = gauge "requests_in_flight" {kind} Stable;
    /// Open client connections
    pub(super) connections: Gauge = gauge "connections" {} Stable;
    /// Connections that were refused, because requests were in flight on as many as may be, of their client or of all, or because the gateway drains
    pub connections_refused: Counter = counter "connections_refused" {} Unstable;
    /// Connections that waited for their client and were closed to make room for others
    pub connections_evicted: Counter = counter "connections_evicted" {} Unstable;
    /// Bytes of answers received from the store
    pub bytes_from_store: Counter = counter "store_received" {} [bytes] Stable;
    /// Bytes of answers sent to clients
    pub bytes_to_clients: Counter = counter "client_sent" {} [bytes] Stable;
    /// Bytes of request bodies received from clients
    pub bytes_from_clients: Counter = counter "client_received" {} [bytes] Stable;
    /// Time of pipeline steps on the CPU pool, by step
    pub(super) step_time: Family<StepLabel, Counter<f64, AtomicU64>> = counter "step" {step} [seconds] Stable;
    /// Micro-batches that ran through model layers
    pub micro_batches: Counter = counter "micro_batches" {} Unstable;
    /// Samples that ran through model layers
    pub micro_batch_samples: Counter = counter "micro_batch_samples" {} Unstable;
    /// Pipeline requests that wait for memory
    pub(super) requests_queued: Gauge = gauge "requests_queued" {} Stable;
    /// Time that pipeline requests waited for memory
    pub(super) queue_wait: WaitSeconds = histogram "queue_wait" {} [seconds] Stable;
    /// Bytes of the memory budget that requests have reserved
    pub(super) memory_reserved: Gauge = gauge "memory_reserved" {} [bytes] Stable;
    /// Values of samples by where they came from: computed, memory, disk, shared, prefix
    pub(super) cache_values: Family<OriginLabel, Counter> = counter "cache_values" {origin} Unstable;
    /// Conditional requests to the store for cached values and shared computations, by class of status: 3xx is a hit
    pub(super) cache_revalidations: Family<StatusLabel, Counter> = counter "cache_revalidations" {status} Unstable;
    /// Bytes of values added to the result cache, by tier
    pub(super) cache_inserted: Family<TierLabel, Counter> = counter "cache_inserted" {tier} [bytes] Unstable;
    /// Seconds of fetching and computing that cached values saved
    pub(super) cache_saved: Counter<f64, AtomicU64> = counter "cache_saved" {} [seconds] Unstable;
    /// Bytes of values in the memory of the result cache
    pub(super) cache_memory: Gauge = gauge "cache_memory" {} [bytes] Unstable;
    /// Bytes of the result cache that tenants have pinned
    pub(super) cache_pinned: Gauge = gauge "cache_pinned" {} [bytes] Unstable;
    /// Requests for stores of readers that were refused, by reason: store, bucket, address of its host, too many hosts
    pub(super) stores_refused: Family<ReasonLabel, Counter> = counter "stores_refused" {reason} Unstable;
    /// Hosts of stores of readers that have open connections
    pub(super) store_hosts: Gauge = gauge "store_hosts" {} Unstable;
    /// Cores of this gateway that its readers could use, as their batches of the last 30 seconds state, each tenant up to max-demand-cores-per-tenant
    pub(super) demand_cores: Gauge<f64, AtomicU64> = gauge "demand_cores" {} Unstable;
    /// Always 1: the id of this gateway among its replicas is the label
    pub(super) replica_info: Family<ReplicaLabel, Gauge> = gauge "replica_info" {replica} Unstable;
    /// Size of the memory budget
    pub(super) memory_budget: Gauge = gauge "memory_budget" {} [bytes] Stable;
    /// Decisions of re-sign mode on requests and on samples of batches, by verdict: allowed, denied
    pub(super) decisions: Family<VerdictLabel, Counter> = counter "decisions" {verdict} Unstable;
    /// Lines that the audit log dropped, because its queue was full or its file could not be written
    pub audit_dropped: Counter = counter "audit_dropped" {} Unstable;
}
