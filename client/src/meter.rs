//! When the link is what everything waits for.

use std::time::Duration;

use tokio::time::Instant;

use crate::profile::{LONG, float};

/// Of objects that are too short to keep the link busy alone, so many that were asked for keep it busy together.
const TOGETHER: usize = 8;
/// A measurement is made of at least so much time,
const SPAN: Duration = Duration::from_millis(10);
/// and of so many bytes,
const BYTES: u64 = 256 << 10;
/// or of so much time.
const LONG_SPAN: Duration = Duration::from_millis(100);

/// Measures what passes while objects are on their way, as they are stored, and keep the link busy: they lie ready on the
/// other side, and are taken at once on this one.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    asked: usize,
    long: usize,
    since: Option<(Instant, u64)>,
    time: Duration,
    bytes: u64,
}

impl Meter {
    /// An object is asked for; so many bytes have passed in all so far.
    pub(crate) fn asked(&mut self, now: Instant, passed: u64) {
        self.advance(now, passed);
        self.asked += 1;
        self.go_on(now, passed);
    }

    /// The head of an answer says how long the object is. Whether that is long.
    pub(crate) fn found(&mut self, length: Option<u64>, now: Instant, passed: u64) -> bool {
        let long = length.is_some_and(|length| length >= LONG as u64);
        self.advance(now, passed);
        self.long += usize::from(long);
        self.go_on(now, passed);
        long
    }

    /// It is here, or lost. Bytes per second, once there is enough to tell.
    pub(crate) fn arrived(&mut self, long: bool, now: Instant, passed: u64) -> Option<f64> {
        self.advance(now, passed);
        self.asked = self.asked.saturating_sub(1);
        self.long = self.long.saturating_sub(usize::from(long));
        self.go_on(now, passed);
        self.told(self.time >= SPAN && self.bytes >= BYTES)
    }

    /// The same in the middle, where a long object may be on its way for long: a thin link shows by time alone.
    pub(crate) fn look(&mut self, now: Instant, passed: u64) -> Option<f64> {
        self.advance(now, passed);
        self.go_on(now, passed);
        self.told(self.time >= SPAN && self.bytes >= BYTES || self.time >= LONG_SPAN)
    }

    fn told(&mut self, enough: bool) -> Option<f64> {
        if !enough {
            return None;
        }
        let rate = float(self.bytes) / self.time.as_secs_f64();
        (self.time, self.bytes) = (Duration::ZERO, 0);
        Some(rate)
    }

    const fn go_on(&mut self, now: Instant, passed: u64) {
        let busy = self.long > 0 || self.asked >= TOGETHER;
        self.since = if busy { Some((now, passed)) } else { None };
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
    fn only_time_with_a_long_object_on_its_way_counts() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = Meter::default();
        meter.asked(at(0), 0);
        assert!(meter.found(Some(1 << 20), at(100), 1_000));
        meter.asked(at(105), 101_000);
        assert!(!meter.found(Some(1 << 10), at(106), 101_000));
        assert_eq!(meter.arrived(false, at(108), 161_000), None, "too short");
        // What else passes shares the link: it counts.
        assert_eq!(meter.arrived(true, at(120), 401_000), Some(400_000.0 / 0.020));
        meter.asked(at(500), 900_000);
        meter.found(Some(1 << 20), at(500), 900_000);
        assert_eq!(meter.arrived(true, at(520), 1_300_000), Some(400_000.0 / 0.020));
    }

    #[test]
    fn a_thin_link_shows_while_an_object_is_on_its_way() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = Meter::default();
        meter.asked(at(0), 0);
        meter.found(Some(1 << 30), at(10), 0);
        assert_eq!(meter.look(at(90), 80_000), None, "too little");
        assert_eq!(meter.look(at(210), 200_000), Some(1e6));
        assert_eq!(meter.look(at(220), 600_000), Some(400_000.0 / 0.010));
        assert_eq!(meter.look(at(221), 601_000), None, "what was told is told");
    }

    #[test]
    fn many_short_ones_keep_a_link_busy_together() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = Meter::default();
        for _ in 0..TOGETHER {
            meter.asked(at(0), 0);
        }
        for _ in 0..TOGETHER {
            meter.found(Some(40_000), at(20), 100_000);
        }
        assert_eq!(meter.arrived(false, at(40), 320_000), Some(320_000.0 / 0.040));
        // Fewer of them do not.
        assert_eq!(meter.arrived(false, at(400), 900_000), None);
    }
}
