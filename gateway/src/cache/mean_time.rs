//! The recent mean of durations.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Weight of a new observation.
const WEIGHT: f64 = 1.0 / 64.0;
/// Assumed before the first observation: a conditional GET on a local network.
const FIRST_SECONDS: f64 = 0.0005;

/// An exponentially weighted mean. Observations at the same time may be lost: it needs no lock.
#[derive(Debug)]
pub(super) struct MeanTime(AtomicU64);

impl MeanTime {
    /// Adds an observation.
    pub(super) fn observe(&self, time: Duration) {
        let mean = self.seconds();
        let next = mean + WEIGHT * (time.as_secs_f64() - mean);
        self.0.store(next.to_bits(), Relaxed);
    }

    /// The mean in seconds.
    pub(super) fn seconds(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl Default for MeanTime {
    fn default() -> Self {
        Self(AtomicU64::new(FIRST_SECONDS.to_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_observations() {
        let mean = MeanTime::default();
        assert!((mean.seconds() - FIRST_SECONDS).abs() < 1e-12);
        (0..1000).for_each(|_| mean.observe(Duration::from_millis(2)));
        assert!((mean.seconds() - 0.002).abs() < 1e-6);
    }
}
