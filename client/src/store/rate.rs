//! How fast parts of an object come.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{meter::Meter, stats::Traffic};

/// The rate at which what was asked for comes.
#[derive(Debug, Default)]
pub(super) struct Rate(Mutex<(Meter, Seen)>);

/// What was seen of it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Seen {
    /// Bytes per second, link and store together, in the fastest measurement.
    pub(super) fastest: f64,
    /// Measurements.
    pub(super) times: usize,
}

/// A part on its way, until this is dropped.
#[derive(Debug)]
pub(super) struct OnItsWay<'a> {
    rate: &'a Rate,
    traffic: &'a Traffic,
    long: bool,
}

impl Rate {
    /// What was seen of it so far, parts that are on their way with the rest.
    pub(super) fn seen(&self, traffic: &Traffic) -> Seen {
        let mut rate = self.0.lock();
        let measured = rate.0.look(Instant::now(), traffic.down());
        rate.1.and(measured)
    }

    /// A part is asked for.
    pub(super) fn asked<'a>(&'a self, traffic: &'a Traffic) -> OnItsWay<'a> {
        self.0.lock().0.asked(Instant::now(), traffic.down());
        OnItsWay {
            rate: self,
            traffic,
            long: false,
        }
    }
}

impl Seen {
    /// With one more measurement, where there is one.
    fn and(&mut self, measured: Option<f64>) -> Self {
        if let Some(measured) = measured {
            self.fastest = self.fastest.max(measured);
            self.times += 1;
        }
        *self
    }
}

impl OnItsWay<'_> {
    /// The head of the answer is here.
    pub(super) fn found(&mut self, length: Option<u64>) {
        let mut rate = self.rate.0.lock();
        self.long = rate.0.found(length, Instant::now(), self.traffic.down());
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let mut rate = self.rate.0.lock();
        let measured = rate.0.arrived(self.long, Instant::now(), self.traffic.down());
        rate.1.and(measured);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::Ordering::Relaxed, time::Duration};

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_fastest_measurement_counts() {
        let (rate, traffic) = (Rate::default(), Traffic::default());
        for milliseconds in [40, 20, 80] {
            let mut part = rate.asked(&traffic);
            part.found(Some(1 << 20));
            advance(Duration::from_millis(milliseconds)).await;
            traffic.down.fetch_add(1 << 20, Relaxed);
        }
        let seen = rate.seen(&traffic);
        assert_eq!(seen.times, 3);
        assert!((seen.fastest - 1_048_576.0 / 0.020).abs() < 1.0, "{seen:?}");
    }
}
