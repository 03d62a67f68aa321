//! Means that forget.

/// The mean of what came last: the first values count alike, later ones push the oldest out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Mean {
    count: f64,
    mean: f64,
}

impl Mean {
    /// Adds a value to the mean of about the last `memory` ones. What is no length of time or size is left out.
    pub(super) fn add(&mut self, value: f64, memory: f64) {
        if value.is_finite() && value >= 0.0 {
            self.count = (self.count + 1.0).min(memory);
            self.mean += (value - self.mean) / self.count;
        }
    }

    /// The mean; `None` of nothing.
    pub(super) fn get(&self) -> Option<f64> {
        self.of(1.0)
    }

    /// The mean of at least `count` values.
    pub(super) fn of(&self, count: f64) -> Option<f64> {
        (self.count >= count).then_some(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_what_was_long_ago() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        mean.add(f64::NAN, 8.0);
        mean.add(-1.0, 8.0);
        assert_eq!(mean.get(), None);
        for value in [1.0, 2.0, 3.0] {
            mean.add(value, 8.0);
        }
        assert_eq!(mean.get(), Some(2.0));
        assert_eq!(mean.of(4.0), None);
        for _ in 0..60 {
            mean.add(10.0, 8.0);
        }
        assert!((mean.get().unwrap_or_default() - 10.0).abs() < 0.01);
    }
}
