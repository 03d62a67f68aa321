//! Times waited for batches.

use std::time::Duration;

use serde::Serialize;

/// The waits, in the order of the batches.
#[derive(Debug, Default)]
pub(crate) struct BatchWaits(Vec<Duration>);

/// Percentiles of the waits, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    batch_wait_p50_seconds: f64,
    batch_wait_p99_seconds: f64,
}

impl BatchWaits {
    pub(crate) fn add(&mut self, wait: Duration) {
        self.0.push(wait);
    }

    /// The first wait.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.0.first().copied()
    }

    /// `None` without any batch.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        // The nearest rank, without interpolation.
        let percentile = |hundredths: usize| {
            let rank = (sorted.len() * hundredths).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).map(Duration::as_secs_f64)
        };
        Some(Percentiles {
            batch_wait_p50_seconds: percentile(50)?,
            batch_wait_p99_seconds: percentile(99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_actual_waits() {
        let mut waits = BatchWaits::default();
        assert_eq!(waits.percentiles(), None);
        for milliseconds in (1..=200).rev() {
            waits.add(Duration::from_millis(milliseconds));
        }
        let Percentiles {
            batch_wait_p50_seconds: half,
            batch_wait_p99_seconds: most,
        } = waits.percentiles().unwrap();
        assert!((half - 0.100).abs() < 1e-9 && (most - 0.198).abs() < 1e-9);
        assert_eq!(waits.first(), Some(Duration::from_millis(200)));
    }
}
