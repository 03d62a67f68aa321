//! Admission thresholds.

use serde::{Deserialize, Serialize};

/// Relative differences up to this are rounding errors: the threshold of its own ratio is the same threshold.
const ROUNDING_RATIO: f64 = 1e-12;

/// The admission threshold of a set: an object is cached if the upper 32 bits of its hash are below it.
///
/// So what is cached is a fixed part of the set, without a list: a lower threshold only removes objects, a higher one
/// only adds some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(super) struct Threshold(u32);

impl Threshold {
    /// Admits every object but those of one hash in 2^32.
    pub(super) const ALL: Self = Self(u32::MAX);

    /// Admits at most this part of the objects. A ratio below 0, or not a number, counts as 0, and one above 1 as 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and maps NaN to 0"
    )]
    pub(super) fn from_ratio(ratio: f64) -> Self {
        Self((ratio * (1.0 + ROUNDING_RATIO) * f64::from(u32::MAX)) as u32)
    }

    /// The part of the objects that it admits, from 0 to 1.
    pub(super) fn ratio(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }

    /// Admits as many objects as both together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) const fn admits(self, object_hash: u64) -> bool {
        object_hash >> 32 < self.0 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Threshold = Threshold(0);

    #[test]
    fn ratios_are_clamped() {
        assert_eq!(Threshold::from_ratio(f64::NAN), NONE);
        assert_eq!(Threshold::from_ratio(-1.0), NONE);
        assert_eq!(Threshold::from_ratio(f64::INFINITY), Threshold::ALL);
        assert_eq!((NONE.ratio(), Threshold::ALL.ratio()), (0.0, 1.0));
        assert!((Threshold::from_ratio(0.3).ratio() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn the_threshold_of_its_ratio_is_the_same() {
        for threshold in [0, 1, 2, 3, 1000, 1001, u32::MAX / 3, u32::MAX - 1, u32::MAX].map(Threshold) {
            assert_eq!(Threshold::from_ratio(threshold.ratio()), threshold);
        }
    }

    #[test]
    fn the_upper_half_of_the_hash_decides() {
        let half = Threshold::from_ratio(0.5);
        assert!(half.admits(0) && half.admits((1 << 63) - (1 << 33)));
        assert!(!half.admits(1 << 63) && !half.admits(u64::MAX));
        assert!(!NONE.admits(0));
        assert!(Threshold::ALL.admits(u64::MAX - (1 << 32)));
    }
}
