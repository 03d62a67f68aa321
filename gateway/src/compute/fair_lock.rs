//! A lock that waiters get in the fair order of their tenants.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Ledger, Tenant, fair_queue::FairQueue};

/// A lock with one holder at a time. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct FairLock {
    is_locked: Arc<Mutex<bool>>,
    waiting: FairQueue<oneshot::Sender<FairLockGuard>>,
}

/// Holds the lock. Dropping it passes the lock to the next waiter.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub(super) struct FairLockGuard(FairLock);

impl FairLock {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self {
            is_locked: Arc::default(),
            waiting: FairQueue::new(ledger),
        }
    }

    /// Runs the short `action` if the lock is free, so that nobody waits.
    pub(super) fn run_if_free<T>(&self, action: impl FnOnce() -> Option<T>) -> Option<T> {
        let is_locked = self.is_locked.lock();
        if *is_locked { None } else { action() }
    }

    /// Waits for the lock. Dropping the future leaves the queue.
    pub(super) async fn lock(&self, tenant: &Tenant) -> Result<FairLockGuard, oneshot::error::RecvError> {
        let (sender, guard) = oneshot::channel();
        let _entry = {
            let mut is_locked = self.is_locked.lock();
            if !*is_locked {
                *is_locked = true;
                return Ok(FairLockGuard(self.clone()));
            }
            self.waiting.push(&tenant.position_now(), sender)
        };
        guard.await
    }
}

impl Drop for FairLockGuard {
    fn drop(&mut self) {
        let mut is_locked = self.0.is_locked.lock();
        let next = self.0.waiting.pop();
        *is_locked = next.is_some();
        drop(is_locked);
        if let Some(next) = next {
            // If the waiter was just dropped, this drops the new guard, and so wakes the next waiter.
            drop(next.send(Self(self.0.clone())));
        }
    }
}
