//! The slots of connections: a connection that waits for its client makes room for a new one.
//!
//! Nobody can tell a silent client from a slow one, so silence costs nothing while there are free slots. Without a free one, the
//! client with the most connections loses the one that has waited longest, so that silent connections of any number leave each
//! client its slots. A connection whose request the gateway is answering is never closed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{self, Notify};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::config::Network;
use crate::telemetry::Metrics;

/// How long a body must be silent before its connection makes room: longer than packets of an upload are late.
const BODY_SILENCE: Duration = Duration::from_secs(1);

/// Fewest slots after a lack of file descriptors.
const MIN_CONNECTIONS: usize = 16;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The handshake, or the rest of the next head.
    Head,
    /// The rest of a body.
    Body,
}

/// Whose connections count together.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientAddress {
    pub(super) client: Network,
    pub(super) is_proxy: bool,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Slots {
    max_per_client: usize,
    /// Networks without a limit of their own, whose connections make room last.
    proxies: Vec<Network>,
    metrics: Metrics,
    state: Mutex<State>,
    /// A slot may be free, or a connection waits.
    changed: Notify,
    /// Held by the first of those who wait for a slot. The others follow in their order.
    turn: sync::Mutex<()>,
}

/// The slot of a connection, until it is dropped or given to another one.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    evicted: CancellationToken,
    current: Mutex<Current>,
}

/// What the owner of a slot has set, so that the lock of all slots is taken for changes only.
#[derive(Debug, Default)]
struct Current {
    wait: Option<Wait>,
    has_begun: bool,
}

/// The answer to a connection that asks for a slot.
#[derive(Debug)]
pub(super) enum Admission {
    Slot(Slot),
    /// Its client has too many connections with requests in flight.
    Refused,
    /// All connections have requests in flight. One of them may make room at this time.
    Full(Option<Instant>),
}

#[derive(Debug, Default)]
struct State {
    max_connections: usize,
    /// The last number of a connection or of a wait.
    last_number: u64,
    connections: HashMap<u64, Connection>,
    clients: HashMap<Network, Client>,
    /// Clients with waiting connections, by their rank, and among equals by their longest wait.
    heads: Ranking,
    bodies: Ranking,
}

type Ranking = BTreeSet<(usize, Reverse<u64>, Network)>;

#[derive(Debug)]
struct Connection {
    client: Network,
    evicted: CancellationToken,
    waiting: Option<(Wait, u64)>,
}

/// The connections of one client. Those that wait are in the order in which they began.
#[derive(Debug, Default)]
struct Client {
    connections: usize,
    is_proxy: bool,
    heads: BTreeMap<u64, u64>,
    bodies: BTreeMap<u64, (u64, Instant)>,
}

impl Slots {
    pub(super) fn new(
        max_connections: usize,
        max_per_client: usize,
        proxies: Vec<Network>,
        metrics: Metrics,
    ) -> Self {
        let state = State {
            max_connections,
            ..State::default()
        };
        Self {
            max_per_client,
            proxies,
            metrics,
            state: Mutex::new(state),
            changed: Notify::new(),
            turn: sync::Mutex::new(()),
        }
    }

    /// Leaves file descriptors to others, after there were none for a further connection: from now on there are slots for three
    /// quarters of the connections that are open now. Returns the number of slots.
    pub(super) fn reduce(&self) -> usize {
        let mut state = self.state.lock();
        let room = (state.connections.len() * 3 / 4).max(MIN_CONNECTIONS);
        let slots = room.min(state.max_connections);
        state.max_connections = slots;
        while state.connections.len() > slots
            && let Ok(id) = state.longest_wait(None, Instant::now())
        {
            self.evict(&mut state, id);
        }
        slots
    }

    /// A slot for a connection of this address, if there is one at once. Those who wait come first.
    pub(super) async fn admit_now(self: &Arc<Self>, address: IpAddr) -> Admission {
        let has_waiters = || self.turn.try_lock().is_err();
        match self.try_admit(address, has_waiters()) {
            Admission::Slot(slot) => Admission::Slot(slot),
            // Of many connections that were opened at once, the first ones have not looked for bytes of their clients yet.
            Admission::Refused | Admission::Full(_) => {
                tokio::task::yield_now().await;
                self.try_admit(address, has_waiters())
            }
        }
    }

    /// A slot for a connection of this address, or `None` if its client has too many. Waits while requests are in flight on all
    /// connections.
    pub(super) async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let _turn = self.turn.lock().await;
        let mut is_settled = false;
        loop {
            let retry_at = match self.try_admit(address, false) {
                Admission::Slot(slot) => return Some(slot),
                Admission::Refused if !is_settled => {
                    tokio::task::yield_now().await;
                    is_settled = true;
                    continue;
                }
                Admission::Refused => return None,
                Admission::Full(retry_at) => retry_at,
            };
            let changed = self.changed.notified();
            match retry_at {
                Some(time) => _ = tokio::time::timeout_at(time, changed).await,
                None => changed.await,
            }
        }
    }

    /// The client of this address.
    pub(super) fn client(&self, address: IpAddr) -> ClientAddress {
        let is_proxy = self.proxies.iter().any(|proxy| proxy.contains(address));
        let client = if is_proxy {
            Network::from(address)
        } else {
            Network::of_client(address)
        };
        ClientAddress { client, is_proxy }
    }

    /// A slot for a connection of this address. With `has_waiters` only one of its client's own.
    fn try_admit(self: &Arc<Self>, address: IpAddr, has_waiters: bool) -> Admission {
        let ClientAddress { client, is_proxy } = self.client(address);
        let now = Instant::now();
        let mut state = self.state.lock();
        let own = state.clients.get(&client);
        if own.map_or(0, Client::rank) >= self.max_per_client {
            match own.and_then(|own| own.longest_wait(now)) {
                Some(id) => self.evict(&mut state, id),
                None => return Admission::Refused,
            }
        } else if has_waiters {
            return Admission::Full(None);
        } else if state.connections.len() >= state.max_connections {
            match state.longest_wait(Some(client), now) {
                Ok(id) => self.evict(&mut state, id),
                Err(admission) => return admission,
            }
        }
        let evicted = CancellationToken::new();
        let id = state.insert(client, is_proxy, evicted.clone());
        Admission::Slot(Slot {
            slots: Arc::clone(self),
            id,
            evicted,
            current: Mutex::default(),
        })
    }

    fn evict(&self, state: &mut State, id: u64) {
        if let Some(connection) = state.remove(id) {
            connection.evicted.cancel();
            self.metrics.connections_evicted.inc();
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn insert(&mut self, client: Network, is_proxy: bool, evicted: CancellationToken) -> u64 {
        let id = self.next_number();
        let connection = Connection {
            client,
            evicted,
            waiting: None,
        };
        self.connections.insert(id, connection);
        self.update(client, |client| {
            client.is_proxy = is_proxy;
            client.connections += 1;
        });
        id
    }

    fn remove(&mut self, id: u64) -> Option<Connection> {
        self.set_wait(id, None, id);
        let connection = self.connections.remove(&id)?;
        self.update(connection.client, |client| client.connections -= 1);
        Some(connection)
    }

    /// Sets what a connection waits for, and the number of its wait. Returns whether it has a slot.
    fn set_wait(&mut self, id: u64, wait: Option<Wait>, number: u64) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        let client = connection.client;
        let before = std::mem::replace(&mut connection.waiting, wait.map(|wait| (wait, number)));
        self.update(client, |client| {
            match before {
                Some((Wait::Head, number)) => _ = client.heads.remove(&number),
                Some((Wait::Body, number)) => _ = client.bodies.remove(&number),
                None => {}
            }
            match wait {
                Some(Wait::Head) => _ = client.heads.insert(number, id),
                Some(Wait::Body) => _ = client.bodies.insert(number, (id, Instant::now())),
                None => {}
            }
        });
        true
    }

    /// Changes a client, and its ranks.
    fn update(&mut self, key: Network, change: impl FnOnce(&mut Client)) {
        let client = self.clients.entry(key).or_default();
        let before = client.ranks();
        change(client);
        let after = client.ranks();
        let is_gone = client.connections == 0;
        for (ranking, before, after) in [
            (&mut self.heads, before[0], after[0]),
            (&mut self.bodies, before[1], after[1]),
        ] {
            if before != after {
                if let Some((rank, longest)) = before {
                    ranking.remove(&(rank, longest, key));
                }
                if let Some((rank, longest)) = after {
                    ranking.insert((rank, longest, key));
                }
            }
        }
        if is_gone {
            self.clients.remove(&key);
        }
    }

    /// The connection that makes room for one of `client`: of the client with the highest rank, the connection that has waited
    /// longest. Clients of lower rank make no room, and of equal ones the client itself comes first.
    fn longest_wait(&self, client: Option<Network>, now: Instant) -> Result<u64, Admission> {
        let own = client.and_then(|client| self.clients.get(&client));
        let rank = own.map_or(0, Client::rank);
        let find = |ranking: &Ranking, longest: &dyn Fn(&Client) -> Option<u64>| {
            let higher = ranking.iter().rev().take_while(|(other, ..)| *other > rank);
            let others = ranking.iter().rev().take_while(|(other, ..)| *other >= rank);
            let client = |(.., client): &(usize, Reverse<u64>, Network)| self.clients.get(client);
            let mut candidates = higher
                .filter_map(client)
                .chain(own)
                .chain(others.filter_map(client));
            candidates.find_map(longest)
        };
        if let Some(id) = find(&self.heads, &Client::longest_head)
            .or_else(|| find(&self.bodies, &|client| client.longest_body(now)))
        {
            return Ok(id);
        }
        let silent = self.bodies.iter().filter_map(|(.., client)| {
            let (_, since) = self.clients.get(client)?.bodies.first_key_value()?.1;
            Some(*since + BODY_SILENCE)
        });
        match silent.filter(|time| *time > now).min() {
            // Those that wait belong to clients with fewer connections.
            None if !self.heads.is_empty() || !self.bodies.is_empty() => Err(Admission::Refused),
            retry_at => Err(Admission::Full(retry_at)),
        }
    }
}

impl Client {
    /// Its number of connections. Those of a proxy do not count: they belong to many clients.
    fn rank(&self) -> usize {
        if self.is_proxy { 0 } else { self.connections }
    }

    /// Its rank and its longest wait for a head, and for a body.
    fn ranks(&self) -> [Option<(usize, Reverse<u64>)>; 2] {
        [self.heads.keys().next(), self.bodies.keys().next()]
            .map(|longest| longest.map(|number| (self.rank(), Reverse(*number))))
    }

    fn longest_wait(&self, now: Instant) -> Option<u64> {
        self.longest_head().or_else(|| self.longest_body(now))
    }

    fn longest_head(&self) -> Option<u64> {
        self.heads.first_key_value().map(|(_, id)| *id)
    }

    fn longest_body(&self, now: Instant) -> Option<u64> {
        let (id, since) = self.bodies.first_key_value()?.1;
        (now.duration_since(*since) >= BODY_SILENCE).then_some(*id)
    }
}

impl Slot {
    /// Sets what the connection waits for; `None` from the begin of a request on. Returns whether it still has its slot. A
    /// connection without a request has waited since it was opened. The age of a wait does not change when it is set again.
    pub(super) fn set_wait(&self, wait: Option<Wait>) -> bool {
        let mut current = self.current.lock();
        current.has_begun |= wait.is_none();
        if current.wait == wait {
            return !self.evicted.is_cancelled();
        }
        current.wait = wait;
        let mut state = self.slots.state.lock();
        let number = if current.has_begun {
            state.next_number()
        } else {
            self.id
        };
        let has_slot = state.set_wait(self.id, wait, number);
        drop(state);
        if wait.is_some() {
            self.slots.changed.notify_one();
        }
        has_slot
    }

    /// Waits until another connection has this slot.
    pub(super) fn evicted(&self) -> WaitForCancellationFuture<'_> {
        self.evicted.cancelled()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.state.lock().remove(self.id);
        self.slots.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
