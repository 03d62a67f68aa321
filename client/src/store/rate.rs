//! How fast parts of an object come.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{meter::Meter, stats::Traffic};

/// The rate at which what was asked for has come lately.
#[derive(Debug, Default)]
pub(super) struct Rate(Mutex<(Meter, Option<f64>)>);

/// A part on its way, until this is dropped.
#[derive(Debug)]
pub(super) struct OnItsWay<'a> {
    rate: &'a Rate,
    traffic: &'a Traffic,
    long: bool,
}

impl Rate {
    /// Bytes per second, link and store together; `None` before enough has come to tell.
    pub(super) fn get(&self) -> Option<f64> {
        self.0.lock().1
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
        rate.1 = measured.or(rate.1);
    }
}
