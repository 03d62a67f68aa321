//! The replicas of a gateway: the addresses of its names, looked up again from time to time, and the placement of samples on them.
//!
//! Replicas know nothing of each other. A reader learns them from the names that it was given, asks each what it is, and places samples by
//! [`Placement`], so that readers with equal lists agree.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared, join_all},
};
use pushdown::{plan::Placement, wire::Features};
use pushdown_exec::sync::Mutex;
use tokio::{runtime::Handle, time::Instant};

use super::{GatewayState, Replica};
use crate::transport::{Endpoint, GatewayConnector};

/// How often names are looked up.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);
/// How soon after a look-up a failed connect leads to another one.
const MIN_LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

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
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The replicas at all addresses.
    at_addresses: Vec<Arc<Replica>>,
    /// What follows from them; `None` before the first look-up.
    list: Option<Arc<ReplicaList>>,
    /// The number of changes that the list accounts for.
    listed_changes: u64,
    looked_up: Option<Instant>,
    /// The look-up in flight, for which all wait who need one.
    in_flight: Option<WeakShared<BoxFuture<'static, ()>>>,
}

/// The replicas at a moment, never none.
#[derive(Debug)]
pub(crate) struct ReplicaList {
    replicas: Vec<Arc<Replica>>,
    placement: Placement,
    is_beside_store: bool,
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
            known: Mutex::default(),
        })
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The replicas as far as they are known. Looks names up if that has not been done, and in the background if it was long ago.
    pub(super) async fn list(self: &Arc<Self>) -> Arc<ReplicaList> {
        loop {
            if let Some(list) = self.known_list() {
                let looked_up = self.known.lock().looked_up;
                if looked_up.is_none_or(|time| time.elapsed() >= LOOKUP_INTERVAL) {
                    self.look_up_in_background();
                }
                return list;
            }
            self.look_up().await;
        }
    }

    /// The replicas as far as they are known; `None` before the first look-up.
    pub(super) fn known_list(&self) -> Option<Arc<ReplicaList>> {
        let mut known = self.known.lock();
        if known.list.is_some() && known.listed_changes != self.changes.load(Relaxed) {
            self.publish(&mut known);
        }
        known.list.clone()
    }

    /// A connection has failed: names may have other addresses by now.
    pub(super) fn observe_failed_connect(self: &Arc<Self>) {
        let looked_up = self.known.lock().looked_up;
        if looked_up.is_none_or(|time| time.elapsed() >= MIN_LOOKUP_INTERVAL) {
            self.look_up_in_background();
        }
    }

    fn look_up_in_background(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.look_up());
        }
    }

    /// Looks names up, or joins the look-up in flight.
    fn look_up(self: &Arc<Self>) -> Shared<BoxFuture<'static, ()>> {
        let mut known = self.known.lock();
        let in_flight = known.in_flight.as_ref().and_then(WeakShared::upgrade);
        if let Some(in_flight) = in_flight.filter(|look_up| look_up.peek().is_none()) {
            return in_flight;
        }
        known.looked_up = Some(Instant::now());
        let replicas = Arc::clone(self);
        let look_up = async move { replicas.update().await }.boxed().shared();
        known.in_flight = look_up.downgrade();
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
        let found = self.connector.addresses(endpoint).await;
        let known = self.known.lock().at_addresses.clone();
        let mut of_endpoint = known.into_iter().filter(|replica| replica.endpoint() == endpoint);
        let addresses: Vec<Option<IpAddr>> = match found {
            Ok(addresses) => addresses.into_iter().map(Some).collect(),
            Err(error) => {
                tracing::debug!(%error, "the last list of replicas stays");
                let kept: Vec<_> = of_endpoint.collect();
                return if kept.is_empty() {
                    vec![self.replica(endpoint, None)]
                } else {
                    kept
                };
            }
        };
        let known: Vec<_> = of_endpoint.by_ref().collect();
        let replica_at = |address: Option<IpAddr>| {
            let known = known.iter().find(|replica| replica.is_at(endpoint, address));
            known.cloned().unwrap_or_else(|| self.replica(endpoint, address))
        };
        addresses.into_iter().map(replica_at).collect()
    }

    fn replica(&self, endpoint: &Endpoint, address: Option<IpAddr>) -> Arc<Replica> {
        let shared = (Arc::clone(&self.changes), Arc::clone(&self.has_several));
        Arc::new(Replica::new(endpoint.clone(), address, &self.connector, shared))
    }

    /// Asks several replicas what they are, unless they have said so, and returns those that count.
    async fn introduce(&self, found: Vec<Arc<Replica>>) -> Vec<Arc<Replica>> {
        let asked = found.iter().map(|replica| async move {
            if replica.is_known() {
                return true;
            }
            match replica.introduce().await {
                Ok(()) => true,
                Err(error) => {
                    tracing::debug!(%error, %replica, "a replica does not say what it is");
                    false
                }
            }
        });
        let answered = join_all(asked).await;
        if !self.is_beside_store && !found.iter().any(|replica| replica.is_known()) {
            // A store with several addresses, or a gateway that is too old: connections choose.
            let mut names: Vec<&Endpoint> = Vec::new();
            for replica in &found {
                if !names.contains(&replica.endpoint()) {
                    names.push(replica.endpoint());
                }
            }
            return names
                .into_iter()
                .map(|endpoint| self.replica(endpoint, None))
                .collect();
        }
        let is_reached = |endpoint: &Endpoint, is_ipv4: bool| {
            found.iter().zip(&answered).any(|(replica, answered)| {
                let is_of_family = replica
                    .address()
                    .is_some_and(|address| address.is_ipv4() == is_ipv4);
                *answered && is_of_family && replica.endpoint() == endpoint
            })
        };
        let mut counted = Vec::with_capacity(found.len());
        for (replica, answered) in found.iter().zip(&answered) {
            // A host may have an address of a family that this network does not route.
            let is_other_family = replica
                .address()
                .is_some_and(|address| is_reached(replica.endpoint(), !address.is_ipv4()));
            if *answered || !is_other_family {
                counted.push(Arc::clone(replica));
            }
            if !answered && !is_other_family {
                // It is probed until it answers.
                replica.health().after_failure().await;
            }
        }
        counted
    }

    /// Replaces the list by what is known of the replicas now.
    fn publish(&self, known: &mut Known) {
        known.listed_changes = self.changes.load(Relaxed);
        let mut replicas: Vec<Arc<Replica>> = Vec::with_capacity(known.at_addresses.len());
        for replica in &known.at_addresses {
            // One replica may have several addresses, of which one is enough.
            let same = replicas.iter_mut().find(|listed| listed.id() == replica.id());
            match same {
                Some(listed) if listed.health().state() == GatewayState::Gone => {
                    *listed = Arc::clone(replica);
                }
                Some(_) => {}
                None => replicas.push(Arc::clone(replica)),
            }
        }
        self.has_several.store(replicas.len() > 1, Relaxed);
        let ids: Vec<_> = replicas.iter().map(|replica| replica.id()).collect();
        let is_changed = known.list.as_ref().is_none_or(|list| !list.is_of(&ids));
        if is_changed && ids.len() > 1 {
            tracing::info!(replicas = ?ids, "the gateway has several replicas");
        }
        let cores = replicas.iter().map(|replica| replica.cores());
        let placement = Placement::new(ids.iter().map(|id| &**id).zip(cores));
        known.list = Some(Arc::new(ReplicaList {
            replicas,
            placement,
            is_beside_store: self.is_beside_store,
        }));
    }
}

impl ReplicaList {
    pub(crate) fn len(&self) -> usize {
        self.replicas.len()
    }

    /// All replicas.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.replicas.iter()
    }

    pub(crate) fn get(&self, index: usize) -> &Arc<Replica> {
        &self.replicas[index]
    }

    /// How samples are placed on all of them.
    pub(crate) const fn placement(&self) -> &Placement {
        &self.placement
    }

    fn is_of(&self, ids: &[Arc<str>]) -> bool {
        self.replicas
            .iter()
            .map(|replica| replica.id())
            .eq(ids.iter().cloned())
    }

    /// Whether requests that begin now may go to this replica.
    pub(crate) fn is_usable(&self, replica: &Arc<Replica>) -> bool {
        let lacks_stores = || self.is_beside_store && replica.is_known() && !replica.has(Features::STORES);
        replica.health().serves() && (self.replicas.len() == 1 || !lacks_stores())
    }

    /// What all of them can do that serve and have answered; `None` if none has answered.
    pub(super) fn features(&self) -> Option<Features> {
        let known = self.replicas.iter().filter(|replica| replica.is_known());
        let (serving, others): (Vec<_>, Vec<_>) =
            known.partition(|replica| replica.health().state() == GatewayState::Serving);
        let counted = if serving.is_empty() { others } else { serving };
        let features = counted.iter().map(|replica| replica.features());
        features.reduce(|all, features| all.intersection(&features))
    }

    /// Whether one of them serves.
    pub(crate) fn serves(&self) -> bool {
        self.serving_count() > 0
    }

    /// How many of them serve. All are looked at, since each that does not serve has to be probed.
    pub(crate) fn serving_count(&self) -> usize {
        let serving = self.replicas.iter().filter(|replica| self.is_usable(replica));
        serving.count()
    }

    /// Samples in flight at all replicas.
    pub(crate) fn samples_in_flight(&self) -> u64 {
        self.replicas
            .iter()
            .map(|replica| replica.samples_in_flight())
            .sum()
    }

    /// The first choice of an object among the replicas that serve; among all of them if none does.
    pub(crate) fn choice(&self, object_hash: u64) -> &Arc<Replica> {
        &self.replicas[self.index_of_choice(object_hash, |replica| self.is_usable(replica))]
    }

    /// The number of the first choice of an object among the replicas that satisfy `is_candidate`; among all of them if none does.
    pub(crate) fn index_of_choice(
        &self,
        object_hash: u64,
        is_candidate: impl Fn(&Arc<Replica>) -> bool,
    ) -> usize {
        let candidates: Vec<bool> = self.replicas.iter().map(is_candidate).collect();
        let has_candidate = candidates.contains(&true);
        let is_allowed = |index: usize| !has_candidate || candidates[index];
        let choice = self.placement.assign(&[object_hash], &[], is_allowed);
        choice.first().copied().unwrap_or_default()
    }
}
