//! Requests in flight.

use parking_lot::Mutex;
use pushdown::wire::Split;
use tokio::time::Instant;

use super::{Adapter, IntervalStart};
use crate::stats::Traffic;

/// A read of a stored object in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingRead<'a> {
    adapter: &'a Adapter,
    traffic: &'a Traffic,
    long: bool,
}

/// A batch request in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingBatch<'a>(&'a Adapter);

/// Samples of a batch in flight; the rest ends when this is dropped. Plans account for them.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    adapter: &'a Adapter,
    /// Route by slot; `None` once the sample has ended.
    slots: Mutex<Vec<Option<SampleRoute>>>,
}

/// The size class of a sample, and the stage at which it is requested.
#[derive(Debug, Clone, Copy)]
struct SampleRoute {
    class: usize,
    stage: usize,
}

impl Adapter {
    /// Registers the samples of a batch, each with the object's bytes, if known, and its split.
    pub(crate) fn track_batch(&self, samples: impl Iterator<Item = (Option<u64>, Split)>) -> InFlight<'_> {
        let slots: Vec<_> = samples
            .map(|(stored, split)| {
                Some(SampleRoute {
                    class: self.context.class(stored),
                    stage: self.stage(split),
                })
            })
            .collect();
        let mut state = self.state.lock();
        state.begun_samples += slots.len();
        for route in slots.iter().flatten() {
            state.replanner.observe_request(route.class, route.stage);
        }
        InFlight {
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

    /// Registers the read of a stored object.
    pub(crate) fn begin_read<'a>(&'a self, traffic: &'a Traffic) -> PendingRead<'a> {
        let mut state = self.state.lock();
        if state.interval.is_none() {
            state.interval = Some(IntervalStart::now(traffic, state.gateway_cpu));
        }
        state.meter.on_request(Instant::now(), traffic.received_bytes());
        PendingRead {
            adapter: self,
            traffic,
            long: false,
        }
    }

    /// Registers a batch request.
    pub(crate) fn begin_batch(&self) -> PendingBatch<'_> {
        self.state.lock().pending_batches += 1;
        PendingBatch(self)
    }
}

impl Drop for PendingBatch<'_> {
    fn drop(&mut self) {
        self.0.state.lock().pending_batches -= 1;
    }
}

impl InFlight<'_> {
    /// Changes the route of a sample. Without effect if the sample has ended.
    pub(crate) fn reroute(&self, slot: usize, split: Split) {
        if let Some(Some(route)) = self.slots.lock().get_mut(slot) {
            let replanner = &mut self.adapter.state.lock().replanner;
            replanner.observe_request_end(route.class, route.stage);
            route.stage = self.adapter.stage(split);
            replanner.observe_request(route.class, route.stage);
        }
    }

    /// A sample has arrived or failed.
    pub(crate) fn end(&self, slot: usize) {
        let route = self.slots.lock().get_mut(slot).and_then(Option::take);
        if let Some(route) = route {
            let replanner = &mut self.adapter.state.lock().replanner;
            replanner.observe_request_end(route.class, route.stage);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        let mut state = self.adapter.state.lock();
        state.begun_samples -= slots.len();
        for route in slots.iter().flatten() {
            state.replanner.observe_request_end(route.class, route.stage);
        }
    }
}

impl PendingRead<'_> {
    /// The head of the answer has arrived. From then on only the link delays its body.
    pub(crate) fn on_headers(&mut self, length: Option<u64>) {
        let mut state = self.adapter.state.lock();
        self.long = state
            .meter
            .on_headers(length, Instant::now(), self.traffic.received_bytes());
    }
}

impl Drop for PendingRead<'_> {
    fn drop(&mut self) {
        let mut state = self.adapter.state.lock();
        let rate = state
            .meter
            .on_end(self.long, Instant::now(), self.traffic.received_bytes());
        if let Some(rate) = rate {
            state.replanner.link_mut().observe_rate(rate);
        }
    }
}
