//! Measures the link while it is the bottleneck.

use std::time::Duration;

use tokio::time::Instant;

use super::float;

/// The shortest object in bytes whose transfer measures the bandwidth of the link.
pub(crate) const LONG_OBJECT_BYTES: usize = 64 << 10;

/// This many short objects in flight keep the link busy together; one of them does not.
const MIN_SHORT_READS: usize = 8;
/// A measurement covers at least this time
const MIN_TIME: Duration = Duration::from_millis(10);
/// and this many bytes,
const MIN_BYTES: u64 = 256 << 10;
/// or this much longer time.
const MIN_TIME_ALONE: Duration = Duration::from_millis(100);

/// Measures the bytes received while enough stored objects are in flight to keep the link busy: the endpoint has them
/// ready, and this host takes them at once.
#[derive(Debug, Default)]
pub(crate) struct LinkMeter {
    requested: usize,
    long: usize,
    since: Option<(Instant, u64)>,
    time: Duration,
    bytes: u64,
}

/// Whether an object of `length` bytes keeps the link busy by itself.
pub(crate) fn is_long(length: Option<u64>) -> bool {
    length.is_some_and(|length| length >= LONG_OBJECT_BYTES as u64)
}

impl LinkMeter {
    /// An object was requested; `received` bytes have been received in total so far.
    pub(crate) fn on_request(&mut self, now: Instant, received: u64) {
        self.advance(now, received);
        self.requested += 1;
        self.restart(now, received);
    }

    /// The head of an answer states the object's length. Returns whether the object is long.
    pub(crate) fn on_headers(&mut self, length: Option<u64>, now: Instant, received: u64) -> bool {
        let long = is_long(length);
        self.advance(now, received);
        self.long += usize::from(long);
        self.restart(now, received);
        long
    }

    /// The object has arrived, or failed. Returns bytes per second once there is enough to measure.
    pub(crate) fn on_end(&mut self, long: bool, now: Instant, received: u64) -> Option<f64> {
        self.advance(now, received);
        self.requested = self.requested.saturating_sub(1);
        self.long = self.long.saturating_sub(usize::from(long));
        self.restart(now, received);
        self.take_rate(self.time >= MIN_TIME && self.bytes >= MIN_BYTES)
    }

    /// Measures in the middle of a long object. On a slow link the time alone is enough.
    pub(crate) fn measure(&mut self, now: Instant, received: u64) -> Option<f64> {
        self.advance(now, received);
        self.restart(now, received);
        self.take_rate(self.time >= MIN_TIME && self.bytes >= MIN_BYTES || self.time >= MIN_TIME_ALONE)
    }

    fn take_rate(&mut self, enough: bool) -> Option<f64> {
        if !enough {
            return None;
        }
        let rate = float(self.bytes) / self.time.as_secs_f64();
        (self.time, self.bytes) = (Duration::ZERO, 0);
        Some(rate)
    }

    const fn restart(&mut self, now: Instant, received: u64) {
        let busy = self.long > 0 || self.requested >= MIN_SHORT_READS;
        self.since = if busy { Some((now, received)) } else { None };
    }

    fn advance(&mut self, now: Instant, received: u64) {
        if let Some((since, before)) = self.since {
            self.time += now.saturating_duration_since(since);
            self.bytes += received.saturating_sub(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_with_a_long_object_in_flight_counts() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = LinkMeter::default();
        meter.on_request(at(0), 0);
        assert!(meter.on_headers(Some(1 << 20), at(100), 1_000));
        meter.on_request(at(105), 101_000);
        assert!(!meter.on_headers(Some(1 << 10), at(106), 101_000));
        assert_eq!(meter.on_end(false, at(108), 161_000), None, "too short");
        // Other traffic shares the link, so it counts.
        assert_eq!(meter.on_end(true, at(120), 401_000), Some(400_000.0 / 0.020));
        meter.on_request(at(500), 900_000);
        meter.on_headers(Some(1 << 20), at(500), 900_000);
        assert_eq!(meter.on_end(true, at(520), 1_300_000), Some(400_000.0 / 0.020));
    }

    #[test]
    fn a_slow_link_is_measured_while_an_object_is_in_flight() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = LinkMeter::default();
        meter.on_request(at(0), 0);
        meter.on_headers(Some(1 << 30), at(10), 0);
        assert_eq!(meter.measure(at(90), 80_000), None, "too little");
        assert_eq!(meter.measure(at(210), 200_000), Some(1e6));
        assert_eq!(meter.measure(at(220), 600_000), Some(400_000.0 / 0.010));
        assert_eq!(
            meter.measure(at(221), 601_000),
            None,
            "each measurement is returned once"
        );
    }

    #[test]
    fn many_short_objects_keep_a_link_busy_together() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut meter = LinkMeter::default();
        for _ in 0..MIN_SHORT_READS {
            meter.on_request(at(0), 0);
        }
        for _ in 0..MIN_SHORT_READS {
            meter.on_headers(Some(40_000), at(20), 100_000);
        }
        assert_eq!(meter.on_end(false, at(40), 320_000), Some(320_000.0 / 0.040));
        // Fewer of them do not.
        assert_eq!(meter.on_end(false, at(400), 900_000), None);
    }
}
