//! Counters of a reader.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use pushdown::{plan::Stage, wire::CacheStatus};

use crate::value_cache::{NotCached, NotCachedCounters};

/// What a reader has done so far. Counts cover this reader only and never decrease.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Samples handed to the consumer with a value.
    pub samples: u64,
    /// Samples handed to the consumer as errors, by name.
    pub errors: u64,
    /// Samples passed over by `start_at`.
    pub skipped: u64,
    /// Bytes of received values, each at the stage at which it arrived; in plain mode, of the objects or members. Further columns do not
    /// count.
    pub value_bytes: u64,
    /// Bytes received from store and gateway, including HTTP heads, framing and TLS, without TCP and IP, and without the listing.
    pub wire_bytes_down: u64,
    /// Bytes sent to them, counted in the same way.
    pub wire_bytes_up: u64,
    /// Bytes received from a [gateway beside the store](crate::store#two-addresses), part of [`wire_bytes_down`](Self::wire_bytes_down).
    pub gateway_bytes_down: u64,
    /// Bytes sent to it, part of [`wire_bytes_up`](Self::wire_bytes_up).
    pub gateway_bytes_up: u64,
    /// Stored size of the objects or members whose values arrived, where the listing or a plain answer states it.
    pub stored_bytes: u64,
    /// Values read from the [`value_cache`](crate::reader::PushdownReaderBuilder::value_cache) and not requested from the endpoint.
    pub cache_hits: u64,
    /// Values written to that cache.
    pub cache_writes: u64,
    /// Samples without a value written to that cache, by reason.
    pub not_cached: NotCached,
    /// Samples that arrived as cropped JPEGs: without the blocks that no step reads.
    pub cropped_samples: u64,
    /// Values that the gateway read from its result cache.
    pub gateway_cache_hits: u64,
    /// Values that the gateway computed once for several requests in flight.
    pub gateway_shared: u64,
    /// Values that the gateway computed from a cached value of an earlier stage.
    pub gateway_prefix_hits: u64,
    /// Samples whose values the result cache of the gateway has after a [warm-up](crate::reader::PushdownReaderBuilder::warm).
    pub warmed: u64,
    /// Samples whose values it could not keep.
    pub not_warmed: u64,
    /// Requests that were repeated.
    pub retries: u64,
    /// Time that the consumer has waited for data.
    pub waiting: Duration,
}

/// Bytes on the wire, counted below TLS.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
}

impl Traffic {
    /// Bytes received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed)
    }
}

/// All other counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) samples: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) value_bytes: AtomicU64,
    pub(crate) stored_bytes: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) cache_writes: AtomicU64,
    pub(crate) not_cached: NotCachedCounters,
    pub(crate) cropped_samples: AtomicU64,
    pub(crate) gateway_cache_hits: AtomicU64,
    pub(crate) gateway_shared: AtomicU64,
    pub(crate) gateway_prefix_hits: AtomicU64,
    pub(crate) warmed: AtomicU64,
    pub(crate) not_warmed: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) waiting_nanos: AtomicU64,
}

impl Counters {
    /// Counts a value from the gateway by its stage, and by where the gateway had it from.
    pub(crate) fn count_gateway_value(&self, stage: Stage, cache: CacheStatus) {
        if stage == Stage::CroppedJpeg {
            add(&self.cropped_samples, 1);
        }
        let counter = match cache {
            CacheStatus::Computed => return,
            CacheStatus::Memory | CacheStatus::Disk => &self.gateway_cache_hits,
            CacheStatus::Shared => &self.gateway_shared,
            CacheStatus::Prefix => &self.gateway_prefix_hits,
        };
        add(counter, 1);
    }

    /// The counts so far, with all traffic and the part of it that is with a gateway beside the store.
    pub(crate) fn snapshot(&self, traffic: &Traffic, gateway: &Traffic) -> Stats {
        Stats {
            samples: self.samples.load(Relaxed),
            errors: self.errors.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            value_bytes: self.value_bytes.load(Relaxed),
            wire_bytes_down: traffic.received_bytes(),
            wire_bytes_up: traffic.sent_bytes.load(Relaxed),
            gateway_bytes_down: gateway.received_bytes(),
            gateway_bytes_up: gateway.sent_bytes.load(Relaxed),
            stored_bytes: self.stored_bytes.load(Relaxed),
            cache_hits: self.cache_hits.load(Relaxed),
            cache_writes: self.cache_writes.load(Relaxed),
            not_cached: self.not_cached.snapshot(),
            cropped_samples: self.cropped_samples.load(Relaxed),
            gateway_cache_hits: self.gateway_cache_hits.load(Relaxed),
            gateway_shared: self.gateway_shared.load(Relaxed),
            gateway_prefix_hits: self.gateway_prefix_hits.load(Relaxed),
            warmed: self.warmed.load(Relaxed),
            not_warmed: self.not_warmed.load(Relaxed),
            retries: self.retries.load(Relaxed),
            waiting: Duration::from_nanos(self.waiting_nanos.load(Relaxed)),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_gateway_are_counted_by_where_they_come_from() {
        let counters = Counters::default();
        for (times, number) in [(4, 0), (1, 1), (2, 2), (5, 3), (6, 4)] {
            let cache = CacheStatus::from(number);
            (0..times).for_each(|_| counters.count_gateway_value(Stage::After(2), cache));
        }
        (0..7).for_each(|_| counters.count_gateway_value(Stage::CroppedJpeg, CacheStatus::Computed));
        let stats = counters.snapshot(&Traffic::default(), &Traffic::default());
        assert_eq!(
            (
                stats.gateway_cache_hits,
                stats.gateway_shared,
                stats.gateway_prefix_hits,
                stats.cropped_samples
            ),
            (3, 5, 6, 7)
        );
    }
}
