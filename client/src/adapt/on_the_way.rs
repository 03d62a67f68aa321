//! What was asked for and is not here.

use tokio::time::Instant;

use super::{Adapter, Since};
use crate::stats::Traffic;

/// An object on its way, as it is stored, until this is dropped.
#[derive(Debug)]
pub(crate) struct OnItsWay<'a> {
    adapter: &'a Adapter,
    traffic: &'a Traffic,
    long: bool,
}

/// A batch that was asked for, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a>(&'a Adapter);

impl Adapter {
    /// An object is asked for, as it is stored.
    pub(crate) fn asked<'a>(&'a self, traffic: &'a Traffic) -> OnItsWay<'a> {
        let mut state = self.state.lock();
        if state.since.is_none() {
            state.since = Some(Since::now(traffic, state.gateway_cpu));
        }
        state.meter.asked(Instant::now(), traffic.down());
        OnItsWay {
            adapter: self,
            traffic,
            long: false,
        }
    }

    /// A batch is asked for.
    pub(crate) fn batch(&self) -> UnderWay<'_> {
        self.state.lock().under_way += 1;
        UnderWay(self)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.state.lock().under_way -= 1;
    }
}

impl OnItsWay<'_> {
    /// The head of the answer is here. Nothing holds up its body from then on.
    pub(crate) fn found(&mut self, length: Option<u64>) {
        let mut state = self.adapter.state.lock();
        self.long = state.meter.found(length, Instant::now(), self.traffic.down());
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let mut state = self.adapter.state.lock();
        let rate = state
            .meter
            .arrived(self.long, Instant::now(), self.traffic.down());
        if let Some(rate) = rate {
            state.replanner.link().seen(rate);
        }
    }
}
