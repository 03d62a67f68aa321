//! Measures the path from the gateway while its answers arrive.

use super::{Adapter, event::Event};
use crate::measure::BUFFERED_BYTES;

/// An answer of a gateway beside the store, whose values arrive one after the other. What the gateway has computed it sends at
/// once, so only the path delays the rest of a value of which a part has arrived.
#[derive(Debug)]
pub(crate) struct ArrivingAnswer<'a> {
    adapter: &'a Adapter,
    /// The value of which a part has arrived.
    pending: Option<PendingValue<'a>>,
    /// Bytes that are not measured before the measurement goes on.
    unmeasured_bytes: u64,
}

/// A value of which a part has arrived; it ends when this is dropped.
#[derive(Debug)]
struct PendingValue<'a>(&'a Adapter);

impl Adapter {
    /// An answer begins. `None` if the gateway has the address of the store: stored objects measure the link then.
    pub(crate) fn begin_answer(&self) -> Option<ArrivingAnswer<'_>> {
        self.gateway_traffic.as_ref().map(|_| ArrivingAnswer {
            adapter: self,
            pending: None,
            unmeasured_bytes: 0,
        })
    }
}

impl ArrivingAnswer<'_> {
    /// A chunk of this many bytes has arrived. `completes_rows`: it has the end of a row; `is_within_row`: it ends within a row.
    pub(crate) fn on_chunk(&mut self, bytes: u64, completes_rows: bool, is_within_row: bool) {
        self.unmeasured_bytes = self.unmeasured_bytes.saturating_sub(bytes);
        // The measurement is reported with each row, and goes on.
        if completes_rows || !is_within_row {
            self.pending = None;
        }
        if self.pending.is_none() && is_within_row && self.unmeasured_bytes == 0 {
            self.pending = Some(PendingValue::begin(self.adapter));
        }
    }

    /// This host reads nothing for a while.
    pub(crate) fn pause(&mut self) {
        self.pending = None;
        self.unmeasured_bytes = BUFFERED_BYTES;
    }
}

impl<'a> PendingValue<'a> {
    fn begin(adapter: &'a Adapter) -> Self {
        adapter.observe(Event::ValueBegan(adapter.moment()));
        Self(adapter)
    }
}

impl Drop for PendingValue<'_> {
    fn drop(&mut self) {
        self.0.observe(Event::ValueEnded(self.0.moment()));
    }
}
