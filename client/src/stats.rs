//! What a reader counts.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::keep::{NotKept, NotKeptCounters};

/// What a reader has done so far. All counts are of this reader alone and only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Samples handed to the consumer with a value.
    pub samples: u64,
    /// Samples handed to the consumer as errors, by name.
    pub errors: u64,
    /// Samples passed over by `start_at`.
    pub skipped: u64,
    /// Bytes of the values that arrived, at the stage at which they arrived: in plain mode, of the objects.
    pub value_bytes: u64,
    /// Bytes received from the endpoint, heads, framing and TLS included; TCP and IP not, the listing not.
    pub wire_bytes_down: u64,
    /// Bytes sent to the endpoint, likewise.
    pub wire_bytes_up: u64,
    /// Stored size of the objects whose values arrived, as far as the listing or a plain answer tells it.
    pub stored_bytes: u64,
    /// Values that came from the folder of [`keep`](crate::PushdownReaderBuilder::keep): the endpoint was not asked
    /// for them.
    pub kept: u64,
    /// Values that were written to that folder.
    pub newly_kept: u64,
    /// Samples of which nothing was written to that folder, by the reason.
    pub not_kept: NotKept,
    /// Requests that were made again.
    pub retries: u64,
    /// Time that the consumer has waited for data.
    pub waiting: Duration,
}

/// Bytes on the wire, counted below TLS.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) down: AtomicU64,
    pub(crate) up: AtomicU64,
}

impl Traffic {
    /// Bytes that have come so far.
    pub(crate) fn down(&self) -> u64 {
        self.down.load(Relaxed)
    }
}

/// The rest of the counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) samples: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) value_bytes: AtomicU64,
    pub(crate) stored_bytes: AtomicU64,
    pub(crate) kept: AtomicU64,
    pub(crate) newly_kept: AtomicU64,
    pub(crate) not_kept: NotKeptCounters,
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
            wire_bytes_down: traffic.down(),
            wire_bytes_up: traffic.up.load(Relaxed),
            stored_bytes: self.stored_bytes.load(Relaxed),
            kept: self.kept.load(Relaxed),
            newly_kept: self.newly_kept.load(Relaxed),
            not_kept: self.not_kept.snapshot(),
            retries: self.retries.load(Relaxed),
            waiting: Duration::from_nanos(self.waiting_nanos.load(Relaxed)),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
