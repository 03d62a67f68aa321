//! The members of a flight, whom the store has authorized to have its result.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{Flight, Outcome, Phase, Waiter};
use crate::{cache::SourceHead, compute::Tenant};

/// A request that the store has authorized to have the result.
pub struct Member<O, R> {
    flight: Arc<Flight<O, R>>,
    source: Arc<SourceHead>,
}

/// The members of a flight, for its computation, which does not keep it alive.
pub struct Members<O, R>(Weak<Flight<O, R>>);

/// Ends a flight, with a result or without one.
struct Ending<O, R>(Weak<Flight<O, R>>);

impl<O, R> Member<O, R> {
    /// A member of a tenant, which shares the cost of the computation.
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

    /// Waits until a member has started the computation.
    pub async fn started(&self) {
        let mut phase = self.flight.phase.subscribe();
        // The sender lives as long as this member.
        drop(phase.wait_for(|phase| !matches!(phase, Phase::Opened(_))).await);
    }

    /// A place among those who wait for the result. `None` if it has come and gone: later requests then begin another flight.
    pub fn wait(&self) -> Option<Waiter<R>> {
        let waiter = self.flight.outcome.lock().wait();
        if waiter.is_none() {
            self.flight.forget();
        }
        waiter
    }
}

impl<O: Send + 'static, R: Send + Sync + 'static> Member<O, R> {
    /// Starts the computation, unless another member has. A result that is not `is_good` is only for those who wait for it:
    /// later requests begin another flight.
    pub fn start<F>(&self, is_good: fn(&R) -> bool, compute: impl FnOnce(O, Members<O, R>) -> F) -> bool
    where
        F: Future<Output = R> + Send + 'static,
    {
        let Some(opened) = self.flight.opened.lock().take() else {
            return false;
        };
        let flight = Arc::downgrade(&self.flight);
        let computation = compute(opened, Members(Weak::clone(&flight)));
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

impl<O, R> Members<O, R> {
    /// The tenants of all members so far.
    pub fn tenants(&self) -> Vec<Tenant> {
        let flight = self.0.upgrade();
        flight
            .map(|flight| flight.tenants.lock().clone())
            .unwrap_or_default()
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

impl<O, R> fmt::Debug for Member<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("key", &self.flight.key)
            .finish_non_exhaustive()
    }
}

impl<O, R> fmt::Debug for Members<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").finish_non_exhaustive()
    }
}
