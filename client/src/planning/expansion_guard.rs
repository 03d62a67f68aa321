//! Detects rows from the gateway that have more bytes than the columns they replace: text lengths are only estimated.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

/// Compares bytes of rows from the gateway with the bytes that this host would have read in their place.
#[derive(Debug)]
pub(crate) struct ExpansionGuard {
    /// Bytes read per row of the object on this host.
    read_row_bytes: u64,
    received_bytes: AtomicU64,
    saved_bytes: AtomicU64,
    is_exceeded: AtomicBool,
}

impl ExpansionGuard {
    pub(crate) const fn new(read_row_bytes: u64) -> Self {
        Self {
            read_row_bytes,
            received_bytes: AtomicU64::new(0),
            saved_bytes: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
        }
    }

    /// Records bytes received for a number of rows of the object.
    pub(crate) fn observe(&self, rows: u64, bytes: u64) {
        let received = self.received_bytes.fetch_add(bytes, AcqRel).saturating_add(bytes);
        let saved = rows.saturating_mul(self.read_row_bytes);
        let saved = self.saved_bytes.fetch_add(saved, AcqRel).saturating_add(saved);
        if received > saved.saturating_add(saved / 16) {
            self.is_exceeded.store(true, Release);
        }
    }

    /// Whether rows are to be computed on this host from now on.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_exceed_the_replaced_bytes_by_a_sixteenth() {
        let guard = ExpansionGuard::new(16);
        guard.observe(100, 1600);
        assert!(!guard.is_exceeded());
        guard.observe(100, 1800);
        assert!(!guard.is_exceeded(), "3,400 bytes for 3,200");
        guard.observe(1, 18);
        assert!(guard.is_exceeded());
        guard.observe(1000, 0);
        assert!(guard.is_exceeded(), "permanently");
    }
}
