//! One at a time, in the tenants' fair order.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Ledger, Tenant, fair::FairQueue};

/// Lets in one at a time. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Turnstile {
    taken: Arc<Mutex<bool>>,
    waiting: FairQueue<oneshot::Sender<Turn>>,
}

/// Being the one that is let in. Dropping it lets in the next.
#[derive(Debug)]
#[must_use = "the next is let in as soon as this is dropped"]
pub(super) struct Turn(Turnstile);

impl Turnstile {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self {
            taken: Arc::default(),
            waiting: FairQueue::new(ledger),
        }
    }

    /// Does something short where nobody is in, and so nobody waits.
    pub(super) fn if_free<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        let taken = self.taken.lock();
        if *taken { None } else { act() }
    }

    /// Waits to be let in. Dropping the future gives up the place.
    pub(super) async fn enter(&self, tenant: &Tenant) -> Result<Turn, oneshot::error::RecvError> {
        let (sender, turn) = oneshot::channel();
        let _place = {
            let mut taken = self.taken.lock();
            if !*taken {
                *taken = true;
                return Ok(Turn(self.clone()));
            }
            self.waiting.push(&tenant.now(), sender)
        };
        turn.await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = self.0.taken.lock();
        let next = self.0.waiting.pop();
        *taken = next.is_some();
        drop(taken);
        if let Some(next) = next {
            // Whoever left in this moment drops the turn, which lets in the next.
            drop(next.send(Self(self.0.clone())));
        }
    }
}
