//! Single flight: the same value, requested by several requests at a time, is computed once.
//!
//! There are two kinds of values, of whole samples and of cells of tables, and one kind of flight. It is keyed by all that
//! determines the value, except for its version if nobody knows that before the object is read.
//!
//! The first request *leads*: it fetches the object, and publishes its version. Each *follower* sends a request of its own to
//! the store, conditional on that version, and joins only against its own [`Authorization`]. Leader and followers are
//! *waiters* from then on, with equal rights: the first of them that gets memory starts the computation, so that no request
//! waits for one that waits for memory itself. The computation runs as long as it has a waiter.
//!
//! A scan computes the value of a cell itself, in its own task: it leads, and [begins](Leader::begin) the computation at once, since the
//! version of the object is known and the value has memory.
//!
//! A flight does not own its result: it belongs to its waiters, and goes with the last of them. A waiter that
//! comes too late finds none, and computes the value itself. So no memory is held for a request that is not ready to send.

mod outcome;
mod waiters;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::{SourceHead, ValueKey};
use crate::{
    compute::Tenant,
    origin::{Authorization, ObjectId},
};
use outcome::Outcome;
pub use outcome::PendingResult;
pub(super) use waiters::Computation;
pub use waiters::Waiter;

/// Longest wait of a follower for the version that the leader reads. After that it goes on alone.
const MAX_LEADER_WAIT: Duration = Duration::from_secs(1);

/// The flights of all values of a kind. `O` is what the computation starts from, `R` its result. Clones share them.
pub struct Flights<O, R>(Arc<Mutex<FlightTable<O, R>>>);

type FlightTable<O, R> = HashMap<ValueKey, Weak<Flight<O, R>>>;

/// How a request takes part.
#[derive(Debug)]
pub enum Role<O, R> {
    /// Nobody computes this value: fetch the object, and publish it.
    Leader(Leader<O, R>),
    /// Somebody has fetched the object: ask the store, and join.
    Follower(Follower<O, R>),
    /// The leader takes too long: go on without a flight.
    Single,
}

/// Whether a follower may wait for a leader's version before the store has authorized either of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaderWait {
    /// For at most a second.
    Short,
    /// No: the time of a refusal then tells nothing about what others read.
    None,
}

/// Ends the flight if it is dropped without [`publish`](Self::publish).
pub struct Leader<O, R>(Arc<Flight<O, R>>);

/// A request that the store has not authorized yet.
pub struct Follower<O, R> {
    flight: Arc<Flight<O, R>>,
    source: Arc<SourceHead>,
}

struct Flight<O, R> {
    object: ObjectId,
    phase: watch::Sender<Phase>,
    /// Until the computation starts.
    opened: Mutex<Option<O>>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
    outcome: Mutex<Outcome<R>>,
    /// The tenants of all waiters until the computation ends.
    tenants: Mutex<Vec<Tenant>>,
    flights: Flights<O, R>,
    key: ValueKey,
}

#[derive(Debug, Clone)]
enum Phase {
    /// The leader fetches the object.
    Fetching,
    /// The waiters want memory: the first to get it starts.
    Opened(Arc<SourceHead>),
    /// The computation has started, or has ended.
    Started(Arc<SourceHead>),
    /// The leader failed.
    Abandoned,
}

impl<O: Send + 'static, R: Send + Sync + 'static> Flights<O, R> {
    /// Takes part in the flight of `key`, or begins one.
    pub async fn enter(&self, key: ValueKey, object: ObjectId, wait: LeaderWait) -> Role<O, R> {
        let deadline = Instant::now() + MAX_LEADER_WAIT;
        loop {
            let flight = match self.lead_or_find(key, object) {
                Ok(leader) => return Role::Leader(leader),
                Err(flight) => flight,
            };
            let mut phase = flight.phase.subscribe();
            let mut source = phase.borrow().source().cloned();
            if source.is_none() && wait == LeaderWait::Short {
                let published = phase.wait_for(|phase| !matches!(phase, Phase::Fetching));
                let Ok(published) = timeout_at(deadline, published).await else {
                    return Role::Single;
                };
                source = published.ok().and_then(|phase| phase.source().cloned());
            }
            match source {
                Some(source) => return Role::Follower(Follower { flight, source }),
                // The store has refused the leader: the next one leads.
                None if wait == LeaderWait::Short && Instant::now() < deadline => {}
                None => return Role::Single,
            }
        }
    }

    /// Begins a flight. `None` if somebody else has.
    pub fn lead(&self, key: ValueKey, object: ObjectId) -> Option<Leader<O, R>> {
        self.lead_or_find(key, object).ok()
    }

    /// The flight of `key`, for a request that asks the store, or has asked it. `None` without one, and before its version is known.
    pub fn find(&self, key: &ValueKey) -> Option<Follower<O, R>> {
        let flight = self.0.lock().get(key).and_then(Weak::upgrade)?;
        let source = flight.phase.borrow().source().cloned()?;
        Some(Follower { flight, source })
    }

    fn lead_or_find(&self, key: ValueKey, object: ObjectId) -> Result<Leader<O, R>, Arc<Flight<O, R>>> {
        let mut flights = self.0.lock();
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade) {
            return Err(flight);
        }
        let flight = Arc::new(Flight {
            object,
            phase: watch::Sender::new(Phase::Fetching),
            opened: Mutex::new(None),
            task: Mutex::new(None),
            outcome: Mutex::default(),
            tenants: Mutex::default(),
            flights: self.clone(),
            key,
        });
        flights.insert(key, Arc::downgrade(&flight));
        Ok(Leader(flight))
    }
}

#[cfg(test)]
impl<O, R> Flights<O, R> {
    /// Flights in progress.
    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl<O, R> Leader<O, R> {
    /// Publishes the object that the store has sent for this request.
    pub fn publish(self, source: Arc<SourceHead>, opened: O, tenant: &Tenant) -> Waiter<O, R> {
        let flight = Arc::clone(&self.0);
        *flight.opened.lock() = Some(opened);
        flight.phase.send_replace(Phase::Opened(Arc::clone(&source)));
        Waiter::new(flight, source, tenant)
    }

    /// Begins to compute the value of this version in the caller's own task. It needs all its memory before: from now on others may
    /// wait for it.
    pub fn begin(self, source: Arc<SourceHead>) -> Computation<O, R> {
        self.0.phase.send_replace(Phase::Started(source));
        Computation::new(Arc::clone(&self.0))
    }
}

impl<O, R> Drop for Leader<O, R> {
    fn drop(&mut self) {
        // Only the leader ends this phase.
        let is_abandoned = matches!(*self.0.phase.borrow(), Phase::Fetching);
        if is_abandoned {
            // In this order: those who wait look for another flight.
            self.0.forget();
            self.0.phase.send_replace(Phase::Abandoned);
        }
    }
}

impl<O, R> Follower<O, R> {
    /// The version that the flight computes.
    pub fn etag(&self) -> &HeaderValue {
        &self.source.etag
    }

    /// Joins, if the store has authorized this request to read the version that the flight computes.
    pub fn join(
        self,
        object: &ObjectId,
        authorization: &Authorization,
        tenant: &Tenant,
    ) -> Option<Waiter<O, R>> {
        let Self { flight, source } = self;
        let is_authorized = *object == flight.object && authorization.covers(object, &source.etag);
        is_authorized.then(|| Waiter::new(flight, source, tenant))
    }
}

impl Phase {
    const fn source(&self) -> Option<&Arc<SourceHead>> {
        match self {
            Self::Opened(source) | Self::Started(source) => Some(source),
            Self::Fetching | Self::Abandoned => None,
        }
    }
}

impl<O, R> Flight<O, R> {
    /// Removes the flight from the table, unless another one has taken its place.
    fn forget(&self) {
        if let Entry::Occupied(entry) = self.flights.0.lock().entry(self.key)
            && std::ptr::eq(entry.get().as_ptr(), self)
        {
            entry.remove();
        }
    }
}

impl<O, R> Drop for Flight<O, R> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl<O, R> Default for Flights<O, R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<O, R> Clone for Flights<O, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O, R> fmt::Debug for Flights<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").finish_non_exhaustive()
    }
}

impl<O, R> fmt::Debug for Leader<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("key", &self.0.key)
            .finish_non_exhaustive()
    }
}

impl<O, R> fmt::Debug for Follower<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("key", &self.flight.key)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
