//! Permits for plain object reads, granted to the oldest batch first.

use std::{num::NonZeroUsize, sync::Arc};

use pushdown_exec::sync::Mutex;
use tokio::sync::oneshot;

use crate::epoch::{BatchQueue, Ticket};

/// A limit on concurrent object reads over all batches. The oldest batch, the next one for the consumer, goes first. Clones
/// share the limit.
#[derive(Debug, Clone)]
pub(crate) struct GetPermits {
    state: Arc<Mutex<PermitState>>,
    count: NonZeroUsize,
}

/// A permit for one read. Dropping it passes it to the next waiter.
#[derive(Debug)]
#[must_use = "the permit is passed on as soon as this is dropped"]
pub(super) struct GetPermit(GetPermits);

#[derive(Debug)]
struct PermitState {
    free: usize,
    /// Not empty only if no permit is free.
    waiting: BatchQueue<oneshot::Sender<GetPermit>>,
}

/// A position in the queue. Dropping it removes it.
#[derive(Debug)]
struct Waiter<'a>(&'a GetPermits, Ticket);

impl GetPermits {
    pub(crate) fn new(count: NonZeroUsize) -> Self {
        let state = PermitState {
            free: count.get(),
            waiting: BatchQueue::default(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            count,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count.get()
    }

    /// Waits for a permit for a batch. Dropping the future removes the position in the queue.
    pub(super) async fn acquire(&self, batch: usize) -> GetPermit {
        loop {
            let (_waiter, permit) = {
                let mut state = self.state.lock();
                if state.free > 0 {
                    state.free -= 1;
                    return GetPermit(self.clone());
                }
                let (sender, permit) = oneshot::channel();
                (Waiter(self, state.waiting.push(batch, sender)), permit)
            };
            // A queue entry is removed when it receives a permit, or when its waiter is dropped.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting.remove(self.1);
    }
}

impl Drop for GetPermit {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        let next = state.waiting.pop();
        state.free += usize::from(next.is_none());
        drop(state);
        if let Some(next) = next {
            // If the waiter is dropped at this moment, so is the permit, and the one after receives it.
            drop(next.send(Self(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn the_oldest_batch_goes_first() {
        let gets = GetPermits::new(NonZeroUsize::MIN);
        let permit = gets.acquire(1).await;
        let (mut third, mut first, mut second) = (
            pin!(gets.acquire(2)),
            pin!(gets.acquire(0)),
            pin!(gets.acquire(1)),
        );
        assert!(poll!(&mut third).is_pending() && poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending());
        drop(permit);
        let permit = first.now_or_never().unwrap();
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        drop(permit);
        let permit = second.now_or_never().unwrap();
        assert!(poll!(&mut third).is_pending());
        drop(permit);
        assert!(third.now_or_never().is_some());
    }

    #[tokio::test]
    async fn within_a_batch_it_is_first_in_first_out() {
        let gets = GetPermits::new(NonZeroUsize::MIN);
        let permit = gets.acquire(0).await;
        let (mut first, mut second) = (pin!(gets.acquire(0)), pin!(gets.acquire(0)));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        drop(permit);
        assert!(poll!(&mut second).is_pending());
        assert!(first.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_dropped_waiter_leaves_its_permit() {
        let gets = GetPermits::new(NonZeroUsize::MIN);
        let permit = gets.acquire(0).await;
        let mut left = Box::pin(gets.acquire(0));
        let mut leaves = Box::pin(gets.acquire(0));
        assert!(poll!(&mut left).is_pending() && poll!(&mut leaves).is_pending());
        drop(left);
        // The permit is being passed to `leaves` when it is dropped.
        drop(permit);
        drop(leaves);
        let permit = gets.acquire(1).now_or_never();
        assert!(permit.is_some());
        assert!(gets.acquire(1).now_or_never().is_none());
        assert!(gets.state.lock().waiting.pop().is_none(), "the queue is empty");
    }
}
