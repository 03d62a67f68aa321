//! When the link is what everything waits for.

use std::time::Duration;

use tokio::time::Instant;

/// Objects that are shorter are gone before they tell anything.
pub(super) const LONG: u64 = 64 << 10;
/// A measurement is made of at least so much time,
const SPAN: Duration = Duration::from_millis(10);
/// and of so many bytes.
const BYTES: u64 = 256 << 10;

/// Measures what passes while at least one long object is on its way, as it is stored: it lies ready on the other side,
/// and is taken at once on this one.
#[derive(Debug, Default)]
pub(super) struct Meter {
    on_their_way: usize,
    since: Option<(Instant, u64)>,
    time: Duration,
    bytes: u64,
}

impl Meter {
    /// A long object sets out; so many bytes have passed in all so far.
    pub(super) fn enter(&mut self, now: Instant, passed: u64) {
        self.advance(now, passed);
        self.on_their_way += 1;
        self.since = Some((now, passed));
    }

    /// It is here, or lost. Bytes per second, once there is enough to tell.
    pub(super) fn leave(&mut self, now: Instant, passed: u64) -> Option<f64> {
        self.advance(now, passed);
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.since = (self.on_their_way > 0).then_some((now, passed));
        if self.time < SPAN || self.bytes < BYTES {
            return None;
        }
        let rate = super::float(self.bytes) / self.time.as_secs_f64();
        (self.time, self.bytes) = (Duration::ZERO, 0);
        Some(rate)
    }

    fn advance(&mut self, now: Instant, passed: u64) {
        if let Some((since, before)) = self.since {
            self.time += now.saturating_duration_since(since);
            self.bytes += passed.saturating_sub(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_with_an_object_on_its_way_counts() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = Meter::default();
        meter.enter(at(0), 0);
        meter.enter(at(5), 100_000);
        assert_eq!(meter.leave(at(8), 160_000), None, "too short");
        // What else passes shares the link: it counts.
        assert_eq!(meter.leave(at(20), 400_000), Some(400_000.0 / 0.020));
        meter.enter(at(500), 900_000);
        assert_eq!(meter.leave(at(520), 1_300_000), Some(400_000.0 / 0.020));
    }
}
