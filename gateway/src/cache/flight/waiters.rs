//! The waiters of a flight, whom the store has authorized to have its result.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{Flight, Outcome, PendingResult, Phase};
use crate::{cache::SourceHead, compute::Tenant};

/// A request that the store has authorized to have the result.
pub struct Waiter<O, R> {
    flight: Arc<Flight<O, R>>,
    source: Arc<SourceHead>,
}

/// The waiters of a flight, for its computation, which does not keep it alive.
pub struct Waiters<O, R>(Weak<Flight<O, R>>);

/// A computation in the leader's own task. The flight ends without a result if this is dropped.
pub struct Computation<O, R> {
    ending: Ending<O, R>,
    _flight: Arc<Flight<O, R>>,
}

/// Ends a flight, with a result or without one.
struct Ending<O, R>(Weak<Flight<O, R>>);

impl<O, R> Waiter<O, R> {
    /// A waiter of a tenant, which shares the cost of the computation.
    pub(super) fn new(flight: Arc<Flight<O, R>>, source: Arc<SourceHead>, tenant: &Tenant) -> Self {
        let is_awaited = matches!(*flight.outcome.lock(), Outcome::Awaited(_));
        if is_awaited {
            flight.tenants.lock().push(tenant.clone());
        }
        Self { flight, source }
    }

    /// The object whose value is computed.
    pub const fn source(&self) -> &Arc<SourceHead> {
        &self.source
    }

    /// Waits until a waiter has started the computation.
    pub async fn started(&self) {
        let mut phase = self.flight.phase.subscribe();
        // The sender lives as long as this waiter.
        drop(phase.wait_for(|phase| !matches!(phase, Phase::Opened(_))).await);
    }

    /// A place among those who wait for the result. `None` if it has come and gone: later requests then begin another flight.
    pub fn pending_result(&self) -> Option<PendingResult<R>> {
        let pending = self.flight.outcome.lock().pending_result();
        if pending.is_none() {
            self.flight.forget();
        }
        pending
    }
}

impl<O: Send + 'static, R: Send + Sync + 'static> Waiter<O, R> {
    /// Starts the computation, unless another waiter has. A result that is not `is_good` is only for those who wait for it:
    /// later requests begin another flight.
    pub fn start<F>(&self, is_good: fn(&R) -> bool, compute: impl FnOnce(O, Waiters<O, R>) -> F) -> bool
    where
        F: Future<Output = R> + Send + 'static,
    {
        let Some(opened) = self.flight.opened.lock().take() else {
            return false;
        };
        let flight = Arc::downgrade(&self.flight);
        let computation = compute(opened, Waiters(Weak::clone(&flight)));
        let source = Arc::clone(&self.source);
        self.flight.phase.send_replace(Phase::Started(source));
        let task = tokio::spawn(async move {
            let ending = Ending(flight);
            let result = computation.await;
            ending.done(result, is_good);
        });
        *self.flight.task.lock() = Some(tokio_util::task::AbortOnDropHandle::new(task));
        true
    }
}

impl<O, R> Waiters<O, R> {
    /// The tenants of all waiters so far.
    pub fn tenants(&self) -> Vec<Tenant> {
        let flight = self.0.upgrade();
        flight
            .map(|flight| flight.tenants.lock().clone())
            .unwrap_or_default()
    }
}

impl<O, R> Computation<O, R> {
    pub(super) fn new(flight: Arc<Flight<O, R>>) -> Self {
        Self {
            ending: Ending(Arc::downgrade(&flight)),
            _flight: flight,
        }
    }

    /// Ends the flight with a result.
    pub fn finish(self, result: R) {
        self.ending.done(result, |_| true);
    }
}

impl<O, R> Ending<O, R> {
    fn done(self, result: R, is_good: fn(&R) -> bool) {
        if let Some(flight) = self.0.upgrade() {
            if !is_good(&result) {
                flight.forget();
            }
            flight.outcome.lock().done(&Arc::new(result));
            flight.tenants.lock().clear();
        }
    }
}

impl<O, R> Drop for Ending<O, R> {
    fn drop(&mut self) {
        if let Some(flight) = self.0.upgrade() {
            let is_abandoned = flight.outcome.lock().abandon();
            if is_abandoned {
                flight.forget();
            }
        }
    }
}

impl<O, R> fmt::Debug for Waiter<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("key", &self.flight.key)
            .finish_non_exhaustive()
    }
}

impl<O, R> fmt::Debug for Computation<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computation").finish_non_exhaustive()
    }
}

impl<O, R> fmt::Debug for Waiters<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}
