//! What was measured lately.

/// Batches of which measurements count.
const BATCHES: usize = 2;
/// The most of them in a batch: more make no better median.
pub(super) const MOST: usize = 1024;

/// The median of what was measured during this batch and the one before it; of nothing, the last one that there was.
///
/// Asked for with every sample: it is sorted out anew only when an eighth of the values has come since.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Recent {
    measured: [Vec<f64>; BATCHES],
    median: Option<f64>,
    /// Values that came since then.
    newer: usize,
}

impl Recent {
    /// Adds a measurement; what is no length of time and no rate is left out.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() && value >= 0.0 && self.measured[0].len() < MOST {
            self.measured[0].push(value);
            self.newer += 1;
            if self.newer * 8 >= self.measured.iter().map(Vec::len).sum() {
                self.sort_out();
            }
        }
    }

    /// A batch is done: what was measured in the one before the last no longer counts.
    pub(super) fn next_batch(&mut self) {
        // Of both while there are both, so that something is left where nothing comes any more.
        self.sort_out();
        self.measured.rotate_right(1);
        self.measured[0].clear();
        self.sort_out();
    }

    pub(super) const fn median(&self) -> Option<f64> {
        self.median
    }

    fn sort_out(&mut self) {
        let mut measured: Vec<f64> = self.measured.iter().flatten().copied().collect();
        measured.sort_by(f64::total_cmp);
        if let Some(last) = measured.len().checked_sub(1) {
            let above = measured.len() / 2;
            self.median = Some(f64::midpoint(measured[last / 2], measured[above]));
        }
        self.newer = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_two_batches_is_forgotten() {
        let mut recent = Recent::default();
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
        assert_eq!(recent.median(), Some(20.0), "the last that was known");
        recent.add(1.0);
        assert_eq!(recent.median(), Some(1.0));
    }

    #[test]
    fn it_lags_by_an_eighth_of_the_values_at_most() {
        let mut recent = Recent::default();
        for value in 1..=1000_u16 {
            recent.add(f64::from(value));
            let exact = f64::midpoint(f64::from(value), 1.0);
            let found = recent.median().unwrap_or_default();
            assert!(found <= exact && found >= exact * 0.85, "{found} of {exact}");
        }
    }
}
