//! Requests in flight.

use std::sync::atomic::Ordering::Relaxed;

use pushdown::plan::Stage;
use pushdown_exec::sync::Mutex;

use super::{
    Adapter,
    event::{Event, RequestedStage},
};

/// A read of a stored object in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingRead<'a> {
    adapter: &'a Adapter,
    object_bytes: Option<u64>,
}

/// A batch request in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingBatch<'a>(&'a Adapter);

/// Samples of a batch in flight; the rest ends when this is dropped. Plans account for them.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    adapter: &'a Adapter,
    /// By slot; `None` once the sample has ended.
    slots: Mutex<Vec<Option<RequestedStage>>>,
}

impl Adapter {
    /// Registers the samples of a batch, each with the object's bytes, if known, and the stage at which it is requested.
    pub(crate) fn track_batch(&self, samples: impl Iterator<Item = (Option<u64>, Stage)>) -> InFlight<'_> {
        let routes: Vec<_> = samples
            .map(|(stored, stage)| RequestedStage {
                class: self.context.class(stored),
                stage,
            })
            .collect();
        let slots = routes.iter().copied().map(Some).collect();
        self.observe(Event::SamplesBegan(routes));
        InFlight {
            adapter: self,
            slots: Mutex::new(slots),
        }
    }

    /// Registers the read of a stored object.
    pub(crate) fn begin_read(&self) -> PendingRead<'_> {
        if !self.is_reading.swap(true, Relaxed) {
            self.observe(Event::ReadingBegan(self.usage()));
        }
        self.observe(Event::ReadBegan(self.moment()));
        PendingRead {
            adapter: self,
            object_bytes: None,
        }
    }

    /// Registers a batch request.
    pub(crate) fn begin_batch(&self) -> PendingBatch<'_> {
        self.observe(Event::RequestBegan);
        PendingBatch(self)
    }
}

impl Drop for PendingBatch<'_> {
    fn drop(&mut self) {
        self.0.observe(Event::RequestEnded);
    }
}

impl InFlight<'_> {
    /// Changes the route of a sample. Without effect if the sample has ended.
    pub(crate) fn reroute(&self, slot: usize, stage: Stage) {
        if let Some(Some(route)) = self.slots.lock().get_mut(slot) {
            let from = *route;
            route.stage = stage;
            self.adapter.observe(Event::SampleRerouted { from, to: *route });
        }
    }

    /// A sample has arrived or failed.
    pub(crate) fn end(&self, slot: usize) {
        let route = self.slots.lock().get_mut(slot).and_then(Option::take);
        if let Some(route) = route {
            self.adapter.observe(Event::SampleEnded(route));
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        self.adapter.observe(Event::SamplesReleased {
            samples: slots.len(),
            unfinished: slots.iter().copied().flatten().collect(),
        });
    }
}

impl PendingRead<'_> {
    /// The head of the answer has arrived. From then on only the link delays its body.
    pub(crate) fn on_headers(&mut self, object_bytes: Option<u64>) {
        self.object_bytes = object_bytes;
        self.adapter.observe(Event::ReadAnswered {
            object_bytes,
            moment: self.adapter.moment(),
        });
    }
}

impl Drop for PendingRead<'_> {
    fn drop(&mut self) {
        self.adapter.observe(Event::ReadEnded {
            object_bytes: self.object_bytes,
            moment: self.adapter.moment(),
        });
    }
}
