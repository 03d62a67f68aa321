//! The recent mean of durations.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::CacheUnit;

/// Weight of a new observation.
const WEIGHT: f64 = 1.0 / 64.0;
/// Assumed before the first observation: a conditional GET on a local network, and a read of the value.
const FIRST_OBJECT_SECONDS: f64 = 0.0005;
/// The same without the GET.
const FIRST_CELL_SECONDS: f64 = 0.0001;

/// The mean times of hits.
#[derive(Debug)]
pub(super) struct HitTimes {
    object: MeanTime,
    cell: MeanTime,
}

/// An exponentially weighted mean. Observations at the same time may be lost: it needs no lock.
#[derive(Debug)]
pub(super) struct MeanTime(AtomicU64);

impl MeanTime {
    fn starting_at(seconds: f64) -> Self {
        Self(AtomicU64::new(seconds.to_bits()))
    }

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

impl HitTimes {
    /// The mean time of hits of values that are computed from this.
    pub(super) const fn of(&self, unit: CacheUnit) -> &MeanTime {
        match unit {
            CacheUnit::Object => &self.object,
            CacheUnit::Cell => &self.cell,
        }
    }
}

impl Default for HitTimes {
    fn default() -> Self {
        Self {
            object: MeanTime::starting_at(FIRST_OBJECT_SECONDS),
            cell: MeanTime::starting_at(FIRST_CELL_SECONDS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_observations() {
        let mean = MeanTime::starting_at(0.0005);
        assert!((mean.seconds() - 0.0005).abs() < 1e-12);
        (0..1000).for_each(|_| mean.observe(Duration::from_millis(2)));
        assert!((mean.seconds() - 0.002).abs() < 1e-6);
    }
}
