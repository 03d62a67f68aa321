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
pub(super) struct LinkMeter {
    reads: ReadsInFlight,
    since: Option<(Instant, u64)>,
    window: Window,
}

/// The objects in flight.
#[derive(Debug, Default)]
pub(super) struct ReadsInFlight {
    requested: usize,
    long: usize,
}

/// Bytes received in a time.
#[derive(Debug, Default)]
pub(super) struct Window {
    time: Duration,
    bytes: u64,
}

/// Whether an object of `length` bytes keeps the link busy by itself.
pub(super) fn is_long(length: Option<u64>) -> bool {
    length.is_some_and(|length| length >= LONG_OBJECT_BYTES as u64)
}

impl ReadsInFlight {
    pub(super) const fn on_request(&mut self) {
        self.requested += 1;
    }

    pub(super) fn on_headers(&mut self, is_long: bool) {
        self.long += usize::from(is_long);
    }

    pub(super) fn on_end(&mut self, is_long: bool) {
        self.requested = self.requested.saturating_sub(1);
        self.long = self.long.saturating_sub(usize::from(is_long));
    }

    /// Whether they keep the link busy.
    pub(super) const fn is_busy(&self) -> bool {
        self.long > 0 || self.requested >= MIN_SHORT_READS
    }
}

impl Window {
    pub(super) fn add(&mut self, time: Duration, bytes: u64) {
        self.time += time;
        self.bytes += bytes;
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes per second since the last call that returned them, once there is enough to measure.
    pub(super) fn take_rate(&mut self) -> Option<f64> {
        self.take_rate_if(self.time >= MIN_TIME && self.bytes >= MIN_BYTES)
    }

    fn take_rate_if(&mut self, is_enough: bool) -> Option<f64> {
        if !is_enough {
            return None;
        }
        let rate = float(self.bytes) / self.time.as_secs_f64();
        *self = Self::default();
        Some(rate)
    }
}

impl LinkMeter {
    /// An object was requested; `received` bytes have been received in total so far.
    pub(super) fn on_request(&mut self, now: Instant, received: u64) {
        self.advance(now, received);
        self.reads.on_request();
        self.restart(now, received);
    }

    /// The head of an answer states the object's length. Returns whether the object is long.
    pub(super) fn on_headers(&mut self, length: Option<u64>, now: Instant, received: u64) -> bool {
        let long = is_long(length);
        self.advance(now, received);
        self.reads.on_headers(long);
        self.restart(now, received);
        long
    }

    /// The object has arrived, or failed. Returns bytes per second once there is enough to measure.
    pub(super) fn on_end(&mut self, long: bool, now: Instant, received: u64) -> Option<f64> {
        self.advance(now, received);
        self.reads.on_end(long);
        self.restart(now, received);
        self.window.take_rate()
    }

    /// Measures in the middle of a long object. On a slow link the time alone is enough.
    pub(super) fn measure(&mut self, now: Instant, received: u64) -> Option<f64> {
        self.advance(now, received);
        self.restart(now, received);
        if self.window.time >= MIN_TIME_ALONE {
            self.window.take_rate_if(true)
        } else {
            self.window.take_rate()
        }
    }

    const fn restart(&mut self, now: Instant, received: u64) {
        self.since = if self.reads.is_busy() {
            Some((now, received))
        } else {
            None
        };
    }

    fn advance(&mut self, now: Instant, received: u64) {
        if let Some((since, before)) = self.since {
            let time = now.saturating_duration_since(since);
            self.window.add(time, received.saturating_sub(before));
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
