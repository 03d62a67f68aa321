//! A mean that forgets old values.

/// The mean of recent values. The first values have equal weight; later ones displace the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Mean {
    count: f64,
    mean: f64,
}

impl Mean {
    /// Adds a value to the mean of about the last `memory` values. Ignores negative and non-finite values.
    pub(super) fn add(&mut self, value: f64, memory: f64) {
        if value.is_finite() && value >= 0.0 {
            self.count = (self.count + 1.0).min(memory);
            self.mean += (value - self.mean) / self.count;
        }
    }

    /// Forgets all values but one, which the next value displaces to one half.
    pub(super) const fn reset(&mut self, value: f64) {
        (self.count, self.mean) = (1.0, value);
    }

    /// The mean; `None` without values.
    pub(super) fn get(&self) -> Option<f64> {
        self.get_from(1.0)
    }

    /// The mean; `None` of fewer than `min_count` values.
    pub(super) fn get_from(&self, min_count: f64) -> Option<f64> {
        (self.count >= min_count).then_some(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_are_forgotten() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        mean.add(f64::NAN, 8.0);
        mean.add(-1.0, 8.0);
        assert_eq!(mean.get(), None);
        for value in [1.0, 2.0, 3.0] {
            mean.add(value, 8.0);
        }
        assert_eq!(mean.get(), Some(2.0));
        assert_eq!(mean.get_from(4.0), None);
        for _ in 0..60 {
            mean.add(10.0, 8.0);
        }
        assert!((mean.get().unwrap_or_default() - 10.0).abs() < 0.01);
        mean.reset(4.0);
        mean.add(5.0, 8.0);
        assert_eq!(mean.get(), Some(4.5));
    }
}
