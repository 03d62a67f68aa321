//! Objects whose sizes no listing tells: a reader was given their keys.

use super::float;

/// The most bytes of a value that is made of an object while nothing is known of any: less than nearly any photo has, and
/// enough for the features of a model.
const SMALL: u64 = 4 << 10;

/// What those that came as they are tell of their sizes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unlisted {
    count: u64,
    mean: f64,
    least: Option<u64>,
}

impl Unlisted {
    /// Another one has so many bytes stored.
    pub(super) fn seen(&mut self, bytes: u64) {
        self.count += 1;
        self.mean += (float(bytes) - self.mean) / float(self.count);
        self.least = Some(self.least.map_or(bytes, |least| least.min(bytes)));
    }

    /// What each is taken to have stored when a value is asked for in its place: as few bytes as any that was seen.
    pub(super) fn least(&self) -> u64 {
        self.least.unwrap_or(SMALL)
    }

    /// What they have stored on average.
    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    /// How many times the mean a value may have, so that it has no more than `max_expand` times the least.
    pub(super) fn max_expand(&self, max_expand: f64) -> f64 {
        match self.least {
            Some(least) if self.mean > 0.0 => max_expand * float(least) / self.mean,
            _ => max_expand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_against_the_smallest_object() {
        let mut unlisted = Unlisted::default();
        assert_eq!(unlisted.least(), SMALL);
        assert!((unlisted.max_expand(2.0) - 2.0).abs() < 1e-9, "nothing is known");
        for bytes in [6_000, 2_000, 10_000] {
            unlisted.seen(bytes);
        }
        assert_eq!(unlisted.least(), 2_000);
        assert!((unlisted.mean() - 6_000.0).abs() < 1e-9);
        assert!((unlisted.max_expand(2.0) * unlisted.mean() - 4_000.0).abs() < 1e-9);
        let mut empty = Unlisted::default();
        empty.seen(0);
        assert!(empty.max_expand(1.0).is_finite());
    }
}
