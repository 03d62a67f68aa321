//! Sizes of objects that were not listed: a reader that was built from keys.

use super::float;

/// Assumed bytes of an object while no size is known: less than nearly any photo, and enough for the features of a
/// model.
const DEFAULT_BYTES: u64 = 4 << 10;

/// Statistics of the objects that were read plainly.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnlistedSizes {
    count: u64,
    mean_bytes: f64,
    min_bytes: Option<u64>,
}

impl UnlistedSizes {
    /// Records the stored bytes of another object.
    pub(super) fn observe(&mut self, bytes: u64) {
        self.count += 1;
        self.mean_bytes += (float(bytes) - self.mean_bytes) / float(self.count);
        self.min_bytes = Some(self.min_bytes.map_or(bytes, |least| least.min(bytes)));
    }

    /// Assumed bytes of an object when a value is requested in its place: the smallest size seen.
    pub(super) fn min_bytes(&self) -> u64 {
        self.min_bytes.unwrap_or(DEFAULT_BYTES)
    }

    /// Mean of the sizes seen.
    pub(super) const fn mean_bytes(&self) -> f64 {
        self.mean_bytes
    }

    /// The most bytes of a value as a multiple of the mean, so that it has at most `max_expand` times the minimum.
    pub(super) fn max_expand(&self, max_expand: f64) -> f64 {
        match self.min_bytes {
            Some(least) if self.mean_bytes > 0.0 => max_expand * float(least) / self.mean_bytes,
            _ => max_expand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_by_the_smallest_object() {
        let mut unlisted = UnlistedSizes::default();
        assert_eq!(unlisted.min_bytes(), DEFAULT_BYTES);
        assert!((unlisted.max_expand(2.0) - 2.0).abs() < 1e-9, "nothing is known");
        for bytes in [6_000, 2_000, 10_000] {
            unlisted.observe(bytes);
        }
        assert_eq!(unlisted.min_bytes(), 2_000);
        assert!((unlisted.mean_bytes() - 6_000.0).abs() < 1e-9);
        assert!((unlisted.max_expand(2.0) * unlisted.mean_bytes() - 4_000.0).abs() < 1e-9);
        let mut empty = UnlistedSizes::default();
        empty.observe(0);
        assert!(empty.max_expand(1.0).is_finite());
    }
}
