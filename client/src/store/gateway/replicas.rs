//! The membership of a gateway: the addresses of its names, looked up again from time to time.
//!
//! Replicas know nothing of each other. A reader learns them from the names that it was given, and asks each what it is.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared, join_all},
};
use pushdown_exec::sync::Mutex;
use tokio::{
    runtime::{Handle, Id},
    time::{Instant, timeout},
};

use super::{GatewayState, Replica, ReplicaList, ReplicaReport};
use crate::transport::{Endpoint, GatewayConnector};

/// How often names are looked up.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);
/// How soon after a look-up a failed connect leads to another one.
const MIN_LOOKUP_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for the addresses of a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Most addresses of a name that are used.
const MAX_ADDRESSES: usize = 256;
/// The most replicas that have left the list and are still reported.
const MAX_FORMER: usize = 64;
/// How long an address without a replica is not asked again.
const FOREIGN_INTERVAL: Duration = Duration::from_mins(1);

/// The replicas of a gateway, for all readers of a store.
#[derive(Debug)]
pub(crate) struct Replicas {
    /// The names of the gateway, at least one.
    endpoints: Vec<Endpoint>,
    connector: GatewayConnector,
    is_beside_store: bool,
    /// Changes of the ids and cores that replicas state.
    changes: Arc<AtomicU64>,
    has_several: Arc<AtomicBool>,
    warn_of_addresses: Once,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The replicas at all addresses.
    at_addresses: Vec<Arc<Replica>>,
    /// Addresses without a replica, and when that was found.
    foreign: BTreeMap<(String, IpAddr), Instant>,
    /// What is known of replicas that have left the list, by id.
    former: BTreeMap<Arc<str>, ReplicaReport>,
    /// What follows from the replicas; `None` before the first look-up.
    list: Option<Arc<ReplicaList>>,
    /// The number of changes that the list accounts for.
    listed_changes: u64,
    looked_up: Option<Instant>,
    /// The look-up in flight, for which all wait who need one, and the runtime that it needs.
    in_flight: Option<(Id, WeakShared<BoxFuture<'static, ()>>)>,
}

/// How a replica has answered the question what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Introduction {
    Known,
    /// It serves, or drains.
    Answered(GatewayState),
    Failed,
}

impl Known {
    /// The look-up in flight of this runtime: that of another one may never end.
    fn in_flight(&self) -> Option<Shared<BoxFuture<'static, ()>>> {
        let runtime = Handle::try_current().ok()?.id();
        let (id, look_up) = self.in_flight.as_ref()?;
        let look_up = look_up.upgrade().filter(|_| *id == runtime)?;
        look_up.peek().is_none().then_some(look_up)
    }
}

impl Replicas {
    /// The replicas at the addresses of these endpoints. `is_beside_store`: otherwise the endpoint is that of the store as well, which may
    /// be no gateway.
    pub(super) fn new(
        endpoints: Vec<Endpoint>,
        connector: GatewayConnector,
        is_beside_store: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoints,
            connector,
            is_beside_store,
            changes: Arc::default(),
            has_several: Arc::default(),
            warn_of_addresses: Once::new(),
            known: Mutex::default(),
        })
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The replicas as far as they are known. Looks names up if that has not been done.
    pub(super) async fn list(self: &Arc<Self>) -> Arc<ReplicaList> {
        loop {
            if let Some(list) = self.known_list() {
                return list;
            }
            self.look_up().await;
        }
    }

    /// The replicas as far as they are known; `None` before the first look-up. Looks names up in the background if that was long ago.
    pub(super) fn known_list(self: &Arc<Self>) -> Option<Arc<ReplicaList>> {
        let mut known = self.known.lock();
        if known.list.is_some() && known.listed_changes != self.changes.load(Relaxed) {
            self.publish(&mut known);
        }
        let list = known.list.clone()?;
        let is_old = known
            .looked_up
            .is_none_or(|time| time.elapsed() >= LOOKUP_INTERVAL);
        drop(known);
        if is_old {
            self.look_up_in_background();
        }
        Some(list)
    }

    /// What a reader can say of the replicas, and of those that have left the list.
    pub(super) fn reports(self: &Arc<Self>) -> Vec<ReplicaReport> {
        let Some(list) = self.known_list() else {
            return Vec::new();
        };
        let former: Vec<_> = self.known.lock().former.values().cloned().collect();
        list.iter()
            .map(|replica| replica.report())
            .chain(former)
            .collect()
    }

    /// A connection has failed: names may have other addresses by now.
    pub(super) fn observe_failed_connect(self: &Arc<Self>) {
        let looked_up = self.known.lock().looked_up;
        if looked_up.is_none_or(|time| time.elapsed() >= MIN_LOOKUP_INTERVAL) {
            self.look_up_in_background();
        }
    }

    fn look_up_in_background(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current()
            && self.known.lock().in_flight().is_none()
        {
            runtime.spawn(self.look_up());
        }
    }

    /// Looks names up, or joins the look-up in flight.
    fn look_up(self: &Arc<Self>) -> Shared<BoxFuture<'static, ()>> {
        let mut known = self.known.lock();
        if let Some(in_flight) = known.in_flight() {
            return in_flight;
        }
        known.looked_up = Some(Instant::now());
        let replicas = Arc::clone(self);
        let look_up = async move { replicas.update().await }.boxed().shared();
        if let (Ok(runtime), Some(weak)) = (Handle::try_current(), look_up.downgrade()) {
            known.in_flight = Some((runtime.id(), weak));
        }
        look_up
    }

    /// Looks names up, asks new replicas what they are, and replaces the list.
    async fn update(&self) {
        let at_endpoints = self.endpoints.iter().map(|endpoint| self.replicas_of(endpoint));
        let mut found: Vec<_> = join_all(at_endpoints).await.into_iter().flatten().collect();
        if found.len() > 1 {
            found = self.introduce(found).await;
        }
        let mut known = self.known.lock();
        known.at_addresses = found;
        self.publish(&mut known);
    }

    /// The replicas at the addresses of an endpoint. An answer without addresses leaves those that are known.
    async fn replicas_of(&self, endpoint: &Endpoint) -> Vec<Arc<Replica>> {
        let found = timeout(LOOKUP_TIMEOUT, self.connector.addresses(endpoint)).await;
        let (known, foreign) = {
            let mut known = self.known.lock();
            known
                .foreign
                .retain(|_, found| found.elapsed() < FOREIGN_INTERVAL);
            (known.at_addresses.clone(), known.foreign.clone())
        };
        let known: Vec<_> = known
            .into_iter()
            .filter(|replica| replica.endpoint() == endpoint)
            .collect();
        let is_foreign = |address: &IpAddr| foreign.contains_key(&(endpoint.to_string(), *address));
        let addresses: Vec<IpAddr> = match found {
            Ok(Ok(addresses)) => {
                if addresses.len() > MAX_ADDRESSES {
                    self.warn_of_addresses.call_once(|| {
                        let found = addresses.len();
                        tracing::warn!(%endpoint, found, "only {MAX_ADDRESSES} addresses of the gateway are used");
                    });
                }
                let used = addresses.into_iter().take(MAX_ADDRESSES);
                used.filter(|address| !is_foreign(address)).collect()
            }
            failed => {
                tracing::debug!(?failed, "the last list of replicas stays");
                Vec::new()
            }
        };
        match (addresses.is_empty(), known.is_empty()) {
            (false, _) => addresses
                .into_iter()
                .map(|address| self.replica_at(endpoint, Some(address)))
                .collect(),
            (true, false) => known,
            (true, true) => vec![self.replica_at(endpoint, None)],
        }
    }

    /// The replica that is known at this address, or else a new one.
    fn replica_at(&self, endpoint: &Endpoint, address: Option<IpAddr>) -> Arc<Replica> {
        let known = self.known.lock();
        let at_addresses = &known.at_addresses;
        if let Some(replica) = at_addresses
            .iter()
            .find(|replica| replica.is_at(endpoint, address))
        {
            return Arc::clone(replica);
        }
        drop(known);
        let (changes, has_several) = (Arc::clone(&self.changes), Arc::clone(&self.has_several));
        let replica = Replica::new(endpoint.clone(), address, &self.connector, changes, has_several);
        Arc::new(replica)
    }

    /// Asks several replicas what they are, unless that is known, and returns those that count.
    async fn introduce(&self, found: Vec<Arc<Replica>>) -> Vec<Arc<Replica>> {
        let asked = found.iter().map(|replica| async move {
            if !replica.is_to_be_asked() {
                return Introduction::Known;
            }
            match replica.introduce().await {
                Ok(state) => Introduction::Answered(state),
                Err(error) => {
                    tracing::debug!(%error, %replica, "a replica does not say what it is");
                    Introduction::Failed
                }
            }
        });
        let answers: Vec<Introduction> = join_all(asked).await;
        let pairs = || found.iter().zip(&answers);
        if !self.is_beside_store && answers.iter().all(|answer| *answer == Introduction::Failed) {
            // A store with several addresses, or a gateway that is too old: connections choose.
            self.note_foreign(found.iter());
            let mut chosen: Vec<Arc<Replica>> = Vec::new();
            for replica in &found {
                let endpoint = replica.endpoint();
                if chosen.iter().all(|known| known.endpoint() != endpoint) {
                    chosen.push(self.replica_at(endpoint, None));
                }
            }
            return chosen;
        }
        let is_reached = |replica: &Arc<Replica>, address: IpAddr| {
            pairs().any(|(other, answer)| {
                let is_of_other_family = other
                    .address()
                    .is_some_and(|other| other.is_ipv4() != address.is_ipv4());
                *answer != Introduction::Failed
                    && is_of_other_family
                    && other.endpoint() == replica.endpoint()
            })
        };
        // A host may have an address of a family that this network does not route.
        let is_unrouted = |(replica, answer): &(&Arc<Replica>, &Introduction)| {
            **answer == Introduction::Failed
                && replica
                    .address()
                    .is_some_and(|address| is_reached(replica, address))
        };
        let (unrouted, counted): (Vec<_>, Vec<_>) = pairs().partition(is_unrouted);
        self.note_foreign(unrouted.into_iter().map(|(replica, _)| replica));
        // Those that do not serve are probed until they do.
        let lost = counted.iter().filter(|(_, answer)| {
            !matches!(
                answer,
                Introduction::Known | Introduction::Answered(GatewayState::Serving)
            )
        });
        join_all(lost.map(|(replica, _)| replica.health().after_failure())).await;
        counted
            .into_iter()
            .map(|(replica, _)| Arc::clone(replica))
            .collect()
    }

    /// Notes addresses without a replica.
    fn note_foreign<'a>(&self, replicas: impl Iterator<Item = &'a Arc<Replica>>) {
        let mut known = self.known.lock();
        for replica in replicas {
            if let Some(address) = replica.address() {
                let key = (replica.endpoint().to_string(), address);
                known.foreign.insert(key, Instant::now());
            }
        }
    }

    /// Replaces the list by what is known of the replicas now.
    fn publish(&self, known: &mut Known) {
        known.listed_changes = self.changes.load(Relaxed);
        let list = ReplicaList::new(&known.at_addresses, self.is_beside_store);
        self.has_several.store(list.len() > 1, Relaxed);
        let is_changed = known.list.as_ref().is_none_or(|before| !before.has_ids_of(&list));
        if is_changed && list.len() > 1 {
            tracing::info!(replicas = ?list.ids(), "the gateway has several replicas");
        }
        let before = known.list.take();
        let listed = before.iter().flat_map(|list| list.ids().iter().zip(list.iter()));
        for (id, replica) in listed {
            // Another replica may have its address by now.
            let has_other_id = replica.id() != *id && !replica.is_named_by_address(id);
            if !list.contains(replica) || has_other_id {
                known.former.insert(Arc::clone(id), replica.leave(id));
            }
        }
        for replica in list.iter() {
            // It is back, perhaps at another address.
            if let Some(former) = known.former.remove(&replica.id()) {
                replica.count_samples(former.samples);
            }
        }
        while known.former.len() > MAX_FORMER {
            known.former.pop_first();
        }
        known.list = Some(Arc::new(list));
    }
}
