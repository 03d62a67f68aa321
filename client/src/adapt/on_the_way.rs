//! What was asked for and is not here.

use parking_lot::Mutex;
use pushdown::wire::Split;
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

/// Samples of a batch that were asked for and have not come, until this is dropped. A plan goes on behind them.
#[derive(Debug)]
pub(crate) struct Awaited<'a> {
    adapter: &'a Adapter,
    /// Class and stage by slot; none for what has come.
    slots: Mutex<Vec<Option<(usize, usize)>>>,
}

impl Adapter {
    /// These samples are asked for: bytes of the object where they are known, and how far the gateway is to take it.
    pub(crate) fn awaits(&self, samples: impl Iterator<Item = (Option<u64>, Split)>) -> Awaited<'_> {
        let slots: Vec<_> = samples
            .map(|(stored, split)| Some((self.ground.class(stored), self.stage(split))))
            .collect();
        let mut state = self.state.lock();
        state.begun += slots.len();
        for (class, stage) in slots.iter().flatten() {
            state.replanner.observe_request(*class, *stage);
        }
        Awaited {
            adapter: self,
            slots: Mutex::new(slots),
        }
    }

    fn stage(&self, split: Split) -> usize {
        match split {
            Split::At(stage) => stage.into(),
            Split::Full | Split::Smallest => self.pipeline.len(),
        }
    }

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

impl Awaited<'_> {
    /// A sample goes another way than it was to.
    pub(crate) fn goes(&self, slot: usize, split: Split) {
        if let Some(Some((class, stage))) = self.slots.lock().get_mut(slot) {
            let replanner = &mut self.adapter.state.lock().replanner;
            replanner.observe_request_end(*class, *stage);
            *stage = self.adapter.stage(split);
            replanner.observe_request(*class, *stage);
        }
    }

    /// A sample is here, or will not come.
    pub(crate) fn ended(&self, slot: usize) {
        let way = self.slots.lock().get_mut(slot).and_then(Option::take);
        if let Some((class, stage)) = way {
            self.adapter
                .state
                .lock()
                .replanner
                .observe_request_end(class, stage);
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        let mut state = self.adapter.state.lock();
        state.begun -= slots.len();
        for (class, stage) in slots.iter().flatten() {
            state.replanner.observe_request_end(*class, *stage);
        }
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
            state.replanner.link_mut().observe_rate(rate);
        }
    }
}
