//! How much is fetched ahead: bytes of batches that the consumer does not have yet.
//!
//! A batch is admitted with what it is expected to hold and then counts what it holds. Past the budget only the
//! oldest batch, the one that the consumer gets next, goes on; so at most the budget and one batch are held, and
//! there is always one that makes progress.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The budget of a reader.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: u64,
    /// Numbers of the batches that are being fetched or wait for the consumer.
    alive: BTreeSet<usize>,
}

/// A batch's part of the budget. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    number: usize,
    share: Mutex<Share>,
}

#[derive(Debug)]
struct Share {
    expected: u64,
    actual: u64,
}

// === impl Budget ===

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits until a batch that is expected to hold so many bytes may start. Batches ask in the order of their
    /// numbers.
    pub(crate) async fn admit(self: &Arc<Self>, number: usize, expected: u64) -> Charge {
        self.when(|state, limit| {
            let room = state.alive.is_empty() || state.held.saturating_add(expected) <= limit;
            if room {
                state.held += expected;
                state.alive.insert(number);
            }
            room
        })
        .await;
        Charge {
            budget: Arc::clone(self),
            number,
            share: Mutex::new(Share { expected, actual: 0 }),
        }
    }

    async fn when(&self, mut condition: impl FnMut(&mut State, u64) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look at the state, so that no change slips through in between.
            changed.as_mut().enable();
            if condition(&mut self.state.lock(), self.limit) {
                return;
            }
            changed.await;
        }
    }
}

// === impl Charge ===

impl Charge {
    /// The batch holds so many bytes more and so many less.
    pub(crate) fn hold(&self, more: u64, less: u64) {
        self.change(|share| share.actual = (share.actual + more).saturating_sub(less));
    }

    /// All of the batch has arrived: what it was expected to hold no longer counts.
    pub(crate) fn settle(&self) {
        self.change(|share| share.expected = 0);
    }

    /// Waits until this batch may fetch more: while there is room, or when it is the oldest one.
    pub(crate) async fn room(&self) {
        let number = self.number;
        self.budget
            .when(|state, limit| state.held <= limit || state.alive.first() == Some(&number))
            .await;
    }

    fn change(&self, change: impl FnOnce(&mut Share)) {
        let mut share = self.share.lock();
        let before = share.expected.max(share.actual);
        change(&mut share);
        let after = share.expected.max(share.actual);
        let mut state = self.budget.state.lock();
        state.held = (state.held + after).saturating_sub(before);
        drop(state);
        if after < before {
            self.budget.changed.notify_waiters();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.change(|share| {
            *share = Share {
                expected: 0,
                actual: 0,
            }
        });
        self.budget.state.lock().alive.remove(&self.number);
        self.budget.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn batches_start_while_there_is_room() {
        let budget = Budget::new(100);
        let first = budget.admit(0, 60).await;
        assert!(budget.admit(1, 60).now_or_never().is_none(), "120 of 100");
        first.hold(10, 0);
        first.settle();
        let second = budget.admit(1, 60).now_or_never().unwrap();
        drop(first);
        drop(second);
        assert_eq!(budget.state.lock().held, 0);
        assert!(
            budget.admit(2, 1_000).now_or_never().is_some(),
            "one batch always may start"
        );
    }

    #[tokio::test]
    async fn past_the_budget_only_the_oldest_goes_on() {
        let budget = Budget::new(100);
        let first = budget.admit(0, 10).await;
        let second = budget.admit(1, 10).await;
        second.hold(200, 0);
        assert!(first.room().now_or_never().is_some());
        assert!(second.room().now_or_never().is_none());
        drop(first);
        assert!(second.room().now_or_never().is_some(), "now it is the oldest");
    }

    #[tokio::test]
    async fn waiting_ends_when_bytes_are_given_back() {
        let budget = Budget::new(100);
        let first = budget.admit(0, 0).await;
        let second = Arc::new(budget.admit(1, 0).await);
        first.hold(300, 0);
        let waiting = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.hold(50, 300);
        waiting.await.unwrap();
    }
}
