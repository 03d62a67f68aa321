//! Counters of a reader.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

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
    /// Bytes of received values, each at the stage at which it arrived; in plain mode, of the objects.
    pub value_bytes: u64,
    /// Bytes received from the endpoint, including HTTP heads, framing and TLS, without TCP and IP, and without the listing.
    pub wire_bytes_down: u64,
    /// Bytes sent to the endpoint, counted in the same way.
    pub wire_bytes_up: u64,
    /// Stored size of the objects whose values arrived, where the listing or a plain answer states it.
    pub stored_bytes: u64,
    /// Values read from the [`value_cache`](crate::PushdownReaderBuilder::value_cache) and not requested from the endpoint.
    pub cache_hits: u64,
    /// Values written to that cache.
    pub cache_writes: u64,
    /// Samples without a value written to that cache, by reason.
    pub not_cached: NotCached,
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
    pub(crate) retries: AtomicU64,
    pub(crate) waiting_nanos: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self, traffic: &Traffic) -> Stats {
        Stats {
            samples: self.samples.load(Relaxed),
            errors: self.errors.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            value_bytes: self.value_bytes.load(Relaxed),
            wire_bytes_down: traffic.received_bytes(),
            wire_bytes_up: traffic.sent_bytes.load(Relaxed),
            stored_bytes: self.stored_bytes.load(Relaxed),
            cache_hits: self.cache_hits.load(Relaxed),
            cache_writes: self.cache_writes.load(Relaxed),
            not_cached: self.not_cached.snapshot(),
            retries: self.retries.load(Relaxed),
            waiting: Duration::from_nanos(self.waiting_nanos.load(Relaxed)),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
