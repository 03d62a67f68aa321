//! The prefetch budget: bytes of batches that the consumer does not have yet.
//!
//! A batch is admitted with its expected size and then counts its actual size. Past the budget only the oldest batch,
//! the next one for the consumer, continues. So at most the budget and one batch are held, and one batch always makes
//! progress.

use std::{collections::BTreeSet, sync::Arc};

use pushdown_exec::sync::Mutex;
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
    held_bytes: u64,
    /// Numbers of the batches that are being fetched or wait for the consumer.
    alive: BTreeSet<usize>,
}

/// A batch's part of the budget. Dropping it releases all of it.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    number: usize,
    bytes: Mutex<BatchBytes>,
}

#[derive(Debug)]
struct BatchBytes {
    expected_bytes: u64,
    actual_bytes: u64,
}

/// The most bytes that a batch is expected to have. A list may claim any sizes of objects, and their sum must not overflow.
const MAX_EXPECTED_BYTES: u64 = 1 << 50;

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits until a batch of `expected_bytes` may start. Batches call this in the order of their numbers.
    pub(crate) async fn admit(self: &Arc<Self>, number: usize, expected_bytes: u64) -> Charge {
        let expected_bytes = expected_bytes.min(MAX_EXPECTED_BYTES);
        self.wait_until(|state, limit| {
            let has_room = state.alive.is_empty() || state.held_bytes.saturating_add(expected_bytes) <= limit;
            if has_room {
                state.held_bytes += expected_bytes;
                state.alive.insert(number);
            }
            has_room
        })
        .await;
        Charge {
            budget: Arc::clone(self),
            number,
            bytes: Mutex::new(BatchBytes {
                expected_bytes,
                actual_bytes: 0,
            }),
        }
    }

    async fn wait_until(&self, mut condition: impl FnMut(&mut State, u64) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the state is checked, so that no change in between is missed.
            changed.as_mut().enable();
            if condition(&mut self.state.lock(), self.limit) {
                return;
            }
            changed.await;
        }
    }
}

impl Charge {
    /// The batch holds `added` bytes more and `removed` bytes less.
    pub(crate) fn adjust(&self, added: u64, removed: u64) {
        self.change(|bytes| bytes.actual_bytes = (bytes.actual_bytes + added).saturating_sub(removed));
    }

    /// All of the batch has arrived: only its actual size counts from now on.
    pub(crate) fn settle(&self) {
        self.change(|bytes| bytes.expected_bytes = 0);
    }

    /// Waits until this batch may fetch more: if the budget has room, or the batch is the oldest one.
    pub(crate) async fn wait_for_room(&self) {
        let number = self.number;
        self.budget
            .wait_until(|state, limit| state.held_bytes <= limit || state.alive.first() == Some(&number))
            .await;
    }

    /// Whether the budget is exceeded and there are other batches: they wait for the oldest one.
    pub(crate) fn is_blocking(&self) -> bool {
        let state = self.budget.state.lock();
        state.held_bytes > self.budget.limit && state.alive.len() > 1
    }

    fn change(&self, change: impl FnOnce(&mut BatchBytes)) {
        let mut bytes = self.bytes.lock();
        let before = bytes.expected_bytes.max(bytes.actual_bytes);
        change(&mut bytes);
        let after = bytes.expected_bytes.max(bytes.actual_bytes);
        let mut state = self.budget.state.lock();
        state.held_bytes = (state.held_bytes + after).saturating_sub(before);
        drop(state);
        if after < before {
            self.budget.changed.notify_waiters();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.change(|bytes| {
            *bytes = BatchBytes {
                expected_bytes: 0,
                actual_bytes: 0,
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
        first.adjust(10, 0);
        first.settle();
        let second = budget.admit(1, 60).now_or_never().unwrap();
        drop(first);
        drop(second);
        assert_eq!(budget.state.lock().held_bytes, 0);
        assert!(
            budget.admit(2, 1_000).now_or_never().is_some(),
            "one batch may always start"
        );
    }

    #[tokio::test]
    async fn past_the_budget_only_the_oldest_batch_continues() {
        let budget = Budget::new(100);
        let first = budget.admit(0, 10).await;
        let second = budget.admit(1, 10).await;
        second.adjust(200, 0);
        assert!(first.wait_for_room().now_or_never().is_some());
        assert!(second.wait_for_room().now_or_never().is_none());
        assert!(first.is_blocking() && second.is_blocking());
        drop(first);
        assert!(!second.is_blocking(), "no other batch waits");
        assert!(
            second.wait_for_room().now_or_never().is_some(),
            "now it is the oldest"
        );
    }

    #[tokio::test]
    async fn waiting_ends_when_bytes_are_released() {
        let budget = Budget::new(100);
        let first = budget.admit(0, 0).await;
        let second = Arc::new(budget.admit(1, 0).await);
        first.adjust(300, 0);
        let waiting = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.wait_for_room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.adjust(50, 300);
        waiting.await.unwrap();
    }
}
