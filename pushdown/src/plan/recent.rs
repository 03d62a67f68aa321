//! What was measured lately.

/// Batches of which measurements count.
const BATCHES: usize = 2;
/// The most of them in a batch: more make no better median.
const MOST: usize = 1024;

/// The median of what was measured during this batch and the one before it; of nothing, the last one that there was.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Recent {
    measured: [Vec<f64>; BATCHES],
    last: Option<f64>,
}

impl Recent {
    /// Adds a measurement; what is no length of time and no rate is left out.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() && value >= 0.0 && self.measured[0].len() < MOST {
            self.measured[0].push(value);
        }
    }

    /// A batch is done: what was measured in the one before the last no longer counts.
    pub(super) fn next_batch(&mut self) {
        self.last = self.median();
        self.measured.rotate_right(1);
        self.measured[0].clear();
    }

    pub(super) fn median(&self) -> Option<f64> {
        let mut measured: Vec<f64> = self.measured.iter().flatten().copied().collect();
        measured.sort_by(f64::total_cmp);
        let (below, above) = (measured.len().checked_sub(1), measured.len() / 2);
        match below {
            None => self.last,
            Some(last) => Some(f64::midpoint(measured[last / 2], measured[above])),
        }
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
}
