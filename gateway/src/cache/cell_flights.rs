//! Single flight for the values of cells.
//!
//! A flight begins after its value has memory. From then on it waits only for micro-batches, which do not depend on other
//! flights. So waiting for a flight cannot end in a deadlock.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use http::HeaderValue;
use parking_lot::Mutex;
use pushdown::Sample;
use tokio::sync::watch;

use super::{CacheSample, ResultCache, ValueKey};

/// The values of cells that are being computed. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct CellFlights(Arc<Mutex<HashMap<ValueKey, watch::Receiver<Option<Sample>>>>>);

/// A computation that others can wait for. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct CellFlight {
    flights: CellFlights,
    key: ValueKey,
    result: watch::Sender<Option<Sample>>,
}

impl CellFlights {
    /// Begins a computation. `None` if somebody else has.
    pub(super) fn begin(&self, key: ValueKey) -> Option<CellFlight> {
        let mut flights = self.0.lock();
        let Entry::Vacant(entry) = flights.entry(key) else {
            return None;
        };
        let (result, receiver) = watch::channel(None);
        entry.insert(receiver);
        drop(flights);
        Some(CellFlight {
            flights: self.clone(),
            key,
            result,
        })
    }

    /// The value that is being computed; `None` if nobody computes it. The future returns `None` after an error.
    pub(super) fn wait(&self, key: &ValueKey) -> Option<impl Future<Output = Option<Sample>> + use<>> {
        let mut result = self.0.lock().get(key)?.clone();
        Some(async move {
            let value = result.wait_for(Option::is_some).await.ok()?;
            value.clone()
        })
    }
}

impl CellFlight {
    /// Ends the computation with a value.
    pub(super) fn done(self, value: &Sample) {
        self.result.send_replace(Some(value.clone()));
    }
}

impl Drop for CellFlight {
    fn drop(&mut self) {
        self.flights.0.lock().remove(&self.key);
    }
}

impl ResultCache {
    /// Begins to compute the value of a cell. `None` if another scan does.
    pub(super) fn begin_cell(
        &self,
        sample: &CacheSample,
        etag: &HeaderValue,
        stage: usize,
    ) -> Option<CellFlight> {
        let inner = self.inner.as_ref()?;
        let key = inner.key(sample, etag, &sample.prefixes.digest(stage)?);
        inner.cell_flights.begin(key)
    }

    /// The value of a cell that another scan is computing.
    pub(super) fn wait_for_cell(
        &self,
        sample: &CacheSample,
        etag: &HeaderValue,
        stage: usize,
    ) -> Option<impl Future<Output = Option<Sample>> + use<>> {
        let inner = self.inner.as_ref()?;
        let key = inner.key(sample, etag, &sample.prefixes.digest(stage)?);
        inner.cell_flights.wait(&key)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pushdown::pipeline::Digest;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_gets_the_value_and_an_error_leaves_none() {
        let (flights, key) = (CellFlights::default(), ValueKey::from(Digest::new(b"cell")));
        assert!(flights.wait(&key).is_none());
        let flight = flights.begin(key).unwrap();
        assert!(flights.begin(key).is_none());
        let waiting = flights.wait(&key).unwrap();
        let value = Sample::Bytes(Bytes::from_static(b"value"));
        flight.done(&value);
        assert_eq!(waiting.await, Some(value));
        assert!(flights.wait(&key).is_none());

        let flight = flights.begin(key).unwrap();
        let waiting = flights.wait(&key).unwrap();
        drop(flight);
        assert_eq!(waiting.await, None);
        assert!(flights.begin(key).is_some());
    }
}
