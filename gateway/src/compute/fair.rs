//! A queue that tenants share by deficit round robin over CPU time.
//!
//! After Shreedhar and Varghese, "Efficient fair queueing using deficit round robin" (1995). In each round every tenant
//! is given a quantum of CPU time, and those who have credit take turns, one piece of work at a time, so that a tenant
//! with one piece waits for one of each other's and not for all. What work costs shows when it has run: it is paid
//! afterwards, and whoever is in debt sits rounds out until it is paid off. The debt is bounded by what runs at a time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ledger, Standing, Tenant};

/// The queue. Clones share it.
///
/// Nothing bounds its length: what waits has a [`Place`], and whoever holds that is bounded.
pub(super) struct FairQueue<T>(Arc<Mutex<Lines<T>>>);

/// A place in a queue: dropping it takes out what still waits there.
#[must_use = "what waits is taken out as soon as this is dropped"]
pub(super) struct Place<T> {
    queue: FairQueue<T>,
    tenant: Tenant,
    at: InLine,
}

/// Since when it stands there, and a ticket among those who came at the same time.
type InLine = (Instant, u64);

struct Lines<T> {
    ledger: Ledger,
    /// The tenants with something that waits, in the order of their turns.
    turns: VecDeque<Tenant>,
    /// What waits, the oldest first. None is empty.
    waiting: HashMap<Tenant, BTreeMap<InLine, T>>,
    len: usize,
    tickets: u64,
}

// === impl FairQueue ===

impl<T> FairQueue<T> {
    /// An empty queue. Queues with the same ledger share the same turns.
    pub(super) fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            ledger,
            turns: VecDeque::new(),
            waiting: HashMap::new(),
            len: 0,
            tickets: 0,
        })))
    }

    /// Queues something where it stands in its tenant's line.
    pub(super) fn push(&self, standing: &Standing, item: T) -> Place<T> {
        Place {
            at: self.0.lock().push(standing, item),
            queue: self.clone(),
            tenant: standing.tenant().clone(),
        }
    }

    /// Takes what comes next from the tenant whose turn it is.
    pub(super) fn pop(&self) -> Option<T> {
        self.0.lock().pop()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len
    }
}

// === impl Lines ===

impl<T> Lines<T> {
    fn push(&mut self, standing: &Standing, item: T) -> InLine {
        let place = (standing.since(), self.tickets);
        self.tickets += 1;
        match self.waiting.entry(standing.tenant().clone()) {
            Entry::Occupied(mut line) => {
                line.get_mut().insert(place, item);
            }
            Entry::Vacant(line) => {
                line.insert(BTreeMap::from([(place, item)]));
                self.turns.push_back(standing.tenant().clone());
            }
        }
        self.len += 1;
        self.ledger.with(super::ledger::Accounts::enter);
        place
    }

    fn pop(&mut self) -> Option<T> {
        let turn = self.ledger.with(|accounts| {
            let turn = accounts.first(&self.turns)?;
            accounts.leave(1);
            Some(turn)
        })?;
        let tenant = self.turns.remove(turn)?;
        let line = self.waiting.get_mut(&tenant)?;
        let (_, item) = line.pop_first()?;
        self.len -= 1;
        if line.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        Some(item)
    }

    /// Takes out what has this place, if it still waits.
    fn remove(&mut self, tenant: &Tenant, place: InLine) -> Option<T> {
        let line = self.waiting.get_mut(tenant)?;
        let item = line.remove(&place)?;
        if line.is_empty() {
            self.waiting.remove(tenant);
            self.turns.retain(|other| other != tenant);
        }
        self.len -= 1;
        self.ledger.with(|accounts| accounts.leave(1));
        Some(item)
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        self.ledger.with(|accounts| accounts.leave(self.len));
    }
}

// === impl Place ===

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // Dropped when the queue is free again.
        let item = self.queue.0.lock().remove(&self.tenant, self.at);
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

impl<T> fmt::Debug for Place<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
