//! Rows that turn out to be more bytes than what they are made of: how long texts are is a guess.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

/// Bytes of rows that came from the gateway, beside those that would have been read in their place.
#[derive(Debug)]
pub(super) struct Outgrown {
    /// Bytes that are read for a row of the object.
    row: u64,
    come: AtomicU64,
    spared: AtomicU64,
    told: AtomicBool,
}

impl Outgrown {
    pub(super) const fn new(row: u64) -> Self {
        Self {
            row,
            come: AtomicU64::new(0),
            spared: AtomicU64::new(0),
            told: AtomicBool::new(false),
        }
    }

    /// So many bytes came, for so many rows of the object.
    pub(super) fn seen(&self, rows: u64, bytes: u64) {
        let come = self.come.fetch_add(bytes, AcqRel).saturating_add(bytes);
        let spared = rows.saturating_mul(self.row);
        let spared = self.spared.fetch_add(spared, AcqRel).saturating_add(spared);
        if come > spared.saturating_add(spared / 16) {
            self.told.store(true, Release);
        }
    }

    /// Whether rows are better made here from now on.
    pub(super) fn is_told(&self) -> bool {
        self.told.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_have_what_is_read_for_them_and_a_sixteenth() {
        let outgrown = Outgrown::new(16);
        outgrown.seen(100, 1600);
        assert!(!outgrown.is_told());
        outgrown.seen(100, 1800);
        assert!(!outgrown.is_told(), "3,400 bytes for 3,200");
        outgrown.seen(1, 18);
        assert!(outgrown.is_told());
        outgrown.seen(1000, 0);
        assert!(outgrown.is_told(), "for good");
    }
}
