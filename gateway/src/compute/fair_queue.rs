//! A queue that schedules tenants by deficit round robin over CPU time.
//!
//! After Shreedhar and Varghese, "Efficient fair queueing using deficit round robin" (1995). In each round every tenant
//! gets a quantum of CPU time. Tenants with credit are served round robin, one work item at a time, so that a tenant
//! with one item waits for one item of each other tenant, and not for all items. The cost of an item is known only
//! after it has run: it is charged afterwards, and a tenant in debt skips rounds until the debt is paid. The debt is
//! bounded by the number of items that run at a time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ledger, QueuePosition, Tenant};

/// The queue. Clones share it.
///
/// The length is not bounded: each item has a [`QueueEntry`], and the number of their owners is bounded.
pub(super) struct FairQueue<T>(Arc<Mutex<TenantQueues<T>>>);

/// An item's entry in a queue. Dropping it removes the item, if it still waits.
#[must_use = "the item is removed from the queue when this is dropped"]
pub(super) struct QueueEntry<T> {
    queue: FairQueue<T>,
    tenant: Tenant,
    key: EntryKey,
}

/// The time of the position, and a number that orders entries of the same time.
type EntryKey = (Instant, u64);

struct TenantQueues<T> {
    ledger: Ledger,
    /// The tenants with waiting items, in round-robin order.
    round: VecDeque<Tenant>,
    /// The waiting items of each tenant, the oldest first. No queue is empty.
    waiting: HashMap<Tenant, BTreeMap<EntryKey, T>>,
    len: usize,
    next_number: u64,
}

impl<T> FairQueue<T> {
    /// An empty queue. Queues with the same ledger share the credit of tenants.
    pub(super) fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(TenantQueues {
            ledger,
            round: VecDeque::new(),
            waiting: HashMap::new(),
            len: 0,
            next_number: 0,
        })))
    }

    /// Adds an item at its position in its tenant's queue.
    pub(super) fn push(&self, position: &QueuePosition, item: T) -> QueueEntry<T> {
        QueueEntry {
            key: self.0.lock().push(position, item),
            queue: self.clone(),
            tenant: position.tenant().clone(),
        }
    }

    /// Takes the oldest item of the next tenant that has credit.
    pub(super) fn pop(&self) -> Option<T> {
        self.0.lock().pop()
    }

    /// The number of waiting items.
    #[cfg(any(test, feature = "models"))]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len
    }
}

impl<T> TenantQueues<T> {
    fn push(&mut self, position: &QueuePosition, item: T) -> EntryKey {
        let key = (position.enqueued_at(), self.next_number);
        self.next_number += 1;
        match self.waiting.entry(position.tenant().clone()) {
            Entry::Occupied(mut queue) => {
                queue.get_mut().insert(key, item);
            }
            Entry::Vacant(queue) => {
                queue.insert(BTreeMap::from([(key, item)]));
                self.round.push_back(position.tenant().clone());
            }
        }
        self.len += 1;
        self.ledger.update(super::ledger::Accounts::add_waiting);
        key
    }

    fn pop(&mut self) -> Option<T> {
        let index = self.ledger.update(|accounts| {
            let index = accounts.first_with_credit(&self.round)?;
            accounts.remove_waiting(1);
            Some(index)
        })?;
        let tenant = self.round.remove(index)?;
        let queue = self.waiting.get_mut(&tenant)?;
        let (_, item) = queue.pop_first()?;
        self.len -= 1;
        if queue.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.round.push_back(tenant);
        }
        Some(item)
    }

    /// Removes an item, if it still waits.
    fn remove(&mut self, tenant: &Tenant, key: EntryKey) -> Option<T> {
        let queue = self.waiting.get_mut(tenant)?;
        let item = queue.remove(&key)?;
        if queue.is_empty() {
            self.waiting.remove(tenant);
            self.round.retain(|other| other != tenant);
        }
        self.len -= 1;
        self.ledger.update(|accounts| accounts.remove_waiting(1));
        Some(item)
    }
}

impl<T> Drop for TenantQueues<T> {
    fn drop(&mut self) {
        self.ledger.update(|accounts| accounts.remove_waiting(self.len));
    }
}

impl<T> Drop for QueueEntry<T> {
    fn drop(&mut self) {
        // The item is dropped after the queue is unlocked.
        let item = self.queue.0.lock().remove(&self.tenant, self.key);
        drop(item);
    }
}

impl<T> Clone for FairQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for FairQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairQueue").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for QueueEntry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueEntry")
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
