//! The median of recent measurements.

/// Batches whose measurements count.
const BATCHES: usize = 2;
/// Upper bound of the measurements per batch. More do not improve the median.
pub(super) const MAX_MEASUREMENTS: usize = 1024;

/// The median of the measurements of the current batch and the one before it; without measurements, the last known median.
///
/// Read once per sample. Sorts again only after an eighth of the values are new.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RecentMedian {
    measured: [Vec<f64>; BATCHES],
    median: Option<f64>,
    /// Values added since `median` was computed.
    new_values: usize,
}

impl RecentMedian {
    /// Adds a measurement. Ignores negative and non-finite values.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() && value >= 0.0 && self.measured[0].len() < MAX_MEASUREMENTS {
            self.measured[0].push(value);
            self.new_values += 1;
            if self.new_values * 8 >= self.measured.iter().map(Vec::len).sum() {
                self.update_median();
            }
        }
    }

    /// Ends a batch: measurements of the batch before the last no longer count.
    pub(super) fn next_batch(&mut self) {
        // Updated before the older batch is dropped as well, so that a median remains if no more values are added.
        self.update_median();
        self.measured.rotate_right(1);
        self.measured[0].clear();
        self.update_median();
    }

    pub(super) const fn median(&self) -> Option<f64> {
        self.median
    }

    fn update_median(&mut self) {
        let mut measured: Vec<f64> = self.measured.iter().flatten().copied().collect();
        measured.sort_by(f64::total_cmp);
        if let Some(last) = measured.len().checked_sub(1) {
            let above = measured.len() / 2;
            self.median = Some(f64::midpoint(measured[last / 2], measured[above]));
        }
        self.new_values = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_older_than_two_batches_are_forgotten() {
        let mut recent = RecentMedian::default();
        assert_eq!(recent.median(), None);
        for value in [10.0, 11.0, 900.0, f64::NAN, -1.0] {
            recent.add(value);
        }
        assert_eq!(recent.median(), Some(11.0));
        recent.next_batch();
        recent.add(20.0);
        assert_eq!(recent.median(), Some(15.5));
        recent.next_batch();
        assert_eq!(recent.median(), Some(20.0));
        recent.next_batch();
        assert_eq!(recent.median(), Some(20.0), "the last known median");
        recent.add(1.0);
        assert_eq!(recent.median(), Some(1.0));
    }

    #[test]
    fn the_median_lags_by_at_most_an_eighth_of_the_values() {
        let mut recent = RecentMedian::default();
        for value in 1..=1000_u16 {
            recent.add(f64::from(value));
            let exact = f64::midpoint(f64::from(value), 1.0);
            let found = recent.median().unwrap_or_default();
            assert!(
                found <= exact && found >= exact * 0.85,
                "expected {exact}, found {found}"
            );
        }
    }
}
