//! The quota of a set in both levels of the cache.

use serde::{Deserialize, Serialize};

use super::{CacheLevel, distinct::DistinctCount, threshold::Threshold};

/// Relative differences of bytes up to this are rounding errors.
pub(super) const ROUNDING_RATIO: f64 = 1e-9;

/// Bytes in memory and on disk.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct LevelBytes {
    pub(super) memory: f64,
    pub(super) disk: f64,
}

/// The thresholds of values in memory, and of those in memory or on disk.
#[derive(Debug, Clone, Copy)]
struct Thresholds {
    memory: Threshold,
    total: Threshold,
}

/// The bytes that a set may use, and the thresholds which make it use no more.
///
/// The objects with the lowest hashes are in memory, those with the next ones on disk.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Quota {
    bytes: LevelBytes,
    memory: Threshold,
    total: Threshold,
    /// It has grown since the last reallocation, although not all values fit.
    pub(super) has_grown: bool,
    /// All values fitted until now: it admits nothing more until the next reallocation, which decides about them.
    pub(super) is_full: bool,
}

impl Quota {
    pub(super) const fn bytes(&self) -> LevelBytes {
        self.bytes
    }

    /// The threshold of both levels together.
    pub(super) const fn threshold(&self) -> Threshold {
        self.total
    }

    /// The bytes that the admitted values use, if all values of the set have `all_bytes`.
    pub(super) fn used_bytes(&self, all_bytes: f64) -> LevelBytes {
        let memory = self.memory.ratio() * all_bytes;
        LevelBytes {
            memory,
            disk: self.total.ratio() * all_bytes - memory,
        }
    }

    /// The level of an object.
    pub(super) fn placement(&self, object_hash: u64) -> Option<CacheLevel> {
        if self.is_full {
            None
        } else if self.memory.admits(object_hash) {
            Some(CacheLevel::Memory)
        } else if self.total.admits(object_hash) {
            Some(CacheLevel::Disk)
        } else {
            None
        }
    }

    /// Replaces the bytes. Objects that become admitted are not cached yet.
    pub(super) fn set(&mut self, bytes: LevelBytes, all_bytes: f64, objects: &mut DistinctCount) {
        let thresholds = bytes.thresholds(all_bytes);
        if thresholds.total > self.total {
            objects.unmark_above(self.total);
        }
        self.bytes = bytes;
        self.memory = thresholds.memory;
        self.total = thresholds.total;
    }

    /// Lowers the thresholds, if the values of the set have more bytes than known before.
    pub(super) fn lower_thresholds(&mut self, all_bytes: f64) {
        let thresholds = self.bytes.thresholds(all_bytes);
        self.memory = self.memory.min(thresholds.memory);
        self.total = self.total.min(thresholds.total);
    }

    /// The threshold of the values in memory.
    pub(super) const fn memory_threshold(&self) -> Threshold {
        self.memory
    }
}

impl LevelBytes {
    pub(super) fn total(self) -> f64 {
        self.memory + self.disk
    }

    /// The product, in each level.
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            memory: self.memory * other.memory,
            disk: self.disk * other.disk,
        }
    }

    pub(super) fn scaled(self, ratio: f64) -> Self {
        Self {
            memory: self.memory * ratio,
            disk: self.disk * ratio,
        }
    }

    /// This many of the bytes, of those in memory first.
    pub(super) fn first(self, bytes: f64) -> Self {
        let memory = self.memory.min(bytes);
        Self {
            memory,
            disk: self.disk.min(bytes - memory),
        }
    }

    /// The part of `other` that this has room for, in each level: at most 1.
    pub(super) fn ratio_of(self, other: Self) -> Self {
        let ratio = |room: f64, needed: f64| if needed > room { room / needed } else { 1.0 };
        Self {
            memory: ratio(self.memory, other.memory),
            disk: ratio(self.disk, other.disk),
        }
    }

    /// Neither negative nor infinite.
    pub(super) fn is_valid(self) -> bool {
        [self.memory, self.disk]
            .iter()
            .all(|bytes| bytes.is_finite() && *bytes >= 0.0)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            memory: self.memory + other.memory,
            disk: self.disk + other.disk,
        }
    }

    /// The difference, at least 0 in each level.
    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            memory: (self.memory - other.memory).max(0.0),
            disk: (self.disk - other.disk).max(0.0),
        }
    }

    /// The thresholds for values of `all_bytes`. Both are rounded down, so that neither level has
    /// more than its bytes.
    fn thresholds(self, all_bytes: f64) -> Thresholds {
        let memory = Threshold::from_ratio(self.memory / all_bytes);
        let total = if self.total() * (1.0 + ROUNDING_RATIO) >= all_bytes {
            Threshold::ALL
        } else {
            memory.plus(Threshold::from_ratio(self.disk / all_bytes))
        };
        Thresholds { memory, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_hashes_are_in_memory() {
        let mut quota = Quota::default();
        let bytes = LevelBytes {
            memory: 25.0,
            disk: 25.0,
        };
        quota.set(bytes, 100.0, &mut DistinctCount::default());
        let levels =
            [0, 1 << 61, 1 << 62, 1 << 62 | 1 << 61, 1 << 63, u64::MAX].map(|hash| quota.placement(hash));
        let (memory, disk) = (Some(CacheLevel::Memory), Some(CacheLevel::Disk));
        assert_eq!(levels, [memory, memory, disk, disk, None, None]);
    }

    #[test]
    fn thresholds_only_fall_until_the_bytes_are_replaced() {
        let (mut quota, mut objects) = (Quota::default(), DistinctCount::default());
        let bytes = LevelBytes {
            memory: 0.0,
            disk: 50.0,
        };
        quota.set(bytes, 25.0, &mut objects);
        assert_eq!(quota.threshold(), Threshold::ALL);
        quota.lower_thresholds(100.0);
        quota.lower_thresholds(80.0);
        assert_eq!(quota.threshold(), Threshold::from_ratio(0.5));
        quota.set(bytes, 80.0, &mut objects);
        assert_eq!(quota.threshold(), Threshold::from_ratio(0.625));
    }
}
