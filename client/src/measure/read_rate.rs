//! Measures how fast ranges of an object arrive.

use pushdown_exec::sync::Mutex;
use tokio::time::Instant;

use super::link_meter::LinkMeter;
use crate::stats::Traffic;

/// The rate at which requested ranges arrive.
#[derive(Debug, Default)]
pub(crate) struct ReadRate(Mutex<Measurements>);

#[derive(Debug, Default)]
struct Measurements {
    meter: LinkMeter,
    samples: RateSamples,
}

/// The measurements so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RateSamples {
    /// Rate of link and store together in the fastest measurement.
    pub(crate) max_bytes_per_second: f64,
    /// Number of measurements.
    pub(crate) count: usize,
}

/// A range read in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingRange<'a> {
    rate: &'a ReadRate,
    traffic: &'a Traffic,
    long: bool,
}

impl ReadRate {
    /// The measurements so far, including ranges in flight.
    pub(crate) fn samples(&self, traffic: &Traffic) -> RateSamples {
        self.0.lock().update(traffic)
    }

    /// The measurements since the last call, including ranges in flight.
    #[cfg(feature = "tables")]
    pub(crate) fn take_samples(&self, traffic: &Traffic) -> RateSamples {
        let mut measurements = self.0.lock();
        measurements.update(traffic);
        std::mem::take(&mut measurements.samples)
    }

    /// Registers a range read.
    pub(crate) fn begin_read<'a>(&'a self, traffic: &'a Traffic) -> PendingRange<'a> {
        self.0
            .lock()
            .meter
            .on_request(Instant::now(), traffic.received_bytes());
        PendingRange {
            rate: self,
            traffic,
            long: false,
        }
    }
}

impl Measurements {
    /// Measures what is in flight, and returns the measurements so far.
    fn update(&mut self, traffic: &Traffic) -> RateSamples {
        let measured = self.meter.measure(Instant::now(), traffic.received_bytes());
        self.samples.add(measured)
    }
}

impl RateSamples {
    /// Adds a measurement, if there is one, and returns the sum.
    fn add(&mut self, measured: Option<f64>) -> Self {
        if let Some(measured) = measured {
            self.max_bytes_per_second = self.max_bytes_per_second.max(measured);
            self.count += 1;
        }
        *self
    }
}

impl PendingRange<'_> {
    /// The head of the answer has arrived.
    pub(crate) fn on_headers(&mut self, length: Option<u64>) {
        let mut measurements = self.rate.0.lock();
        self.long = measurements
            .meter
            .on_headers(length, Instant::now(), self.traffic.received_bytes());
    }
}

impl Drop for PendingRange<'_> {
    fn drop(&mut self) {
        let mut measurements = self.rate.0.lock();
        let measured = measurements
            .meter
            .on_end(self.long, Instant::now(), self.traffic.received_bytes());
        measurements.samples.add(measured);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::Ordering::Relaxed, time::Duration};

    use tokio::time::advance;

    use super::*;

    /// Reads ranges of 1 MiB, one after the other, each in a number of milliseconds.
    async fn read_ranges(rate: &ReadRate, traffic: &Traffic, milliseconds: &[u64]) {
        for milliseconds in milliseconds {
            let mut range = rate.begin_read(traffic);
            range.on_headers(Some(1 << 20));
            advance(Duration::from_millis(*milliseconds)).await;
            traffic.received_bytes.fetch_add(1 << 20, Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_fastest_measurement_counts() {
        let (rate, traffic) = (ReadRate::default(), Traffic::default());
        read_ranges(&rate, &traffic, &[40, 20, 80]).await;
        let samples = rate.samples(&traffic);
        assert_eq!(samples.count, 3);
        assert!(
            (samples.max_bytes_per_second - 1_048_576.0 / 0.020).abs() < 1.0,
            "{samples:?}"
        );
    }

    /// A link that became slow is measured as slow, however fast it was.
    #[cfg(feature = "tables")]
    #[tokio::test(start_paused = true)]
    async fn measurements_are_taken_once() {
        let (rate, traffic) = (ReadRate::default(), Traffic::default());
        read_ranges(&rate, &traffic, &[20, 40]).await;
        assert_eq!(rate.take_samples(&traffic).count, 2);
        assert_eq!(rate.take_samples(&traffic), RateSamples::default());
        read_ranges(&rate, &traffic, &[80]).await;
        let samples = rate.take_samples(&traffic);
        assert!(
            (samples.max_bytes_per_second - 1_048_576.0 / 0.080).abs() < 1.0,
            "{samples:?}"
        );
    }
}
