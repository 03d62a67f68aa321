//! Statistics that forget: a count and a mean.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// After this time an event counts 1/e of a new one.
const TIME_CONSTANT: Duration = Duration::from_mins(10);
/// A rate is that of at least this time, so that the first events do not look like thousands per second.
const MIN_AGE: Duration = Duration::from_secs(1);
/// Values in a mean. Later ones displace the oldest.
const MEAN_VALUES: f64 = 1024.0;

/// A count of events that decays exponentially, with a time constant of 10 minutes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct DecayedCount {
    count: f64,
    started_at: Duration,
    updated_at: Duration,
}

/// The mean of about the last 1,024 values.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Mean {
    count: f64,
    mean: f64,
}

impl DecayedCount {
    pub(super) const fn new(now: Duration) -> Self {
        Self {
            count: 0.0,
            started_at: now,
            updated_at: now,
        }
    }

    pub(super) fn add(&mut self, now: Duration) {
        self.count = self.get(now) + 1.0;
        self.updated_at = self.updated_at.max(now);
    }

    pub(super) fn get(&self, now: Duration) -> f64 {
        self.count * decay(now.saturating_sub(self.updated_at))
    }

    /// The mean rate of recent events, per second.
    pub(super) fn per_second(&self, now: Duration) -> f64 {
        let age = now.saturating_sub(self.started_at).max(MIN_AGE);
        self.get(now) / (TIME_CONSTANT.as_secs_f64() * (1.0 - decay(age)))
    }
}

impl Mean {
    /// Adds a value. Ignores values that are not finite.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.count = (self.count + 1.0).min(MEAN_VALUES);
            self.mean += (value - self.mean) / self.count;
        }
    }

    /// The values in the mean.
    pub(super) const fn count(&self) -> f64 {
        self.count
    }

    /// The mean; `None` without values.
    pub(super) fn get(&self) -> Option<f64> {
        (self.count > 0.0).then_some(self.mean)
    }
}

fn decay(age: Duration) -> f64 {
    (-age.as_secs_f64() / TIME_CONSTANT.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_measured_at_any_age() {
        let start = Duration::from_hours(5);
        let mut count = DecayedCount::new(start);
        for event in 1..=100_000_u32 {
            let now = start + Duration::from_millis(100) * event;
            count.add(now);
            if [10, 100, 5_000, 100_000].contains(&event) {
                let rate = count.per_second(now);
                assert!((rate - 10.0).abs() < 0.1, "{rate} after {event} events");
            }
        }
        let later = start + Duration::from_secs(10_000) + TIME_CONSTANT;
        let rate = count.per_second(later);
        assert!((rate - 10.0 / std::f64::consts::E).abs() < 0.1, "{rate}");
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut count = DecayedCount::new(Duration::from_secs(9));
        count.add(Duration::from_secs(9));
        count.add(Duration::from_secs(8));
        assert_eq!(Some(count.get(Duration::from_secs(7))), Some(2.0));
    }

    #[test]
    fn means_may_be_negative() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        for value in [1.0, f64::NAN, -4.0, f64::INFINITY] {
            mean.add(value);
        }
        assert_eq!(mean.get(), Some(-1.5));
    }
}
