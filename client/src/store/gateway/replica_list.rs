//! The replicas of a gateway at a moment, and how objects are placed on them.

use std::{collections::BTreeSet, sync::Arc};

use pushdown::{plan::Placement, wire::Features};

use super::{GatewayState, Replica};
use crate::measure::float;

/// The replicas at a moment, never none.
#[derive(Debug)]
pub(crate) struct ReplicaList {
    replicas: Vec<Arc<Replica>>,
    /// The ids that they had when the list was made, in the same order.
    ids: Vec<Arc<str>>,
    placement: Placement,
    is_beside_store: bool,
}

impl ReplicaList {
    /// The replicas at these addresses. `is_beside_store`: each has to fetch from the store what is signed for the store.
    pub(super) fn new(at_addresses: &[Arc<Replica>], is_beside_store: bool) -> Self {
        let mut replicas: Vec<Arc<Replica>> = Vec::with_capacity(at_addresses.len());
        for replica in at_addresses {
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
        let ids: Vec<_> = replicas.iter().map(|replica| replica.id()).collect();
        let cores = replicas.iter().map(|replica| replica.cores().unwrap_or(f64::NAN));
        Self {
            placement: Placement::new(ids.iter().map(|id| &**id).zip(cores)),
            replicas,
            ids,
            is_beside_store,
        }
    }

    /// The ids that all replicas had when the list was made, in its order.
    pub(crate) fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    /// Whether both have the same replicas, in any order.
    pub(super) fn has_ids_of(&self, other: &Self) -> bool {
        self.ids.iter().collect::<BTreeSet<_>>() == other.ids.iter().collect()
    }

    /// Whether a replica is in the list. One that is at another address now is not.
    pub(crate) fn contains(&self, replica: &Arc<Replica>) -> bool {
        self.replicas.iter().any(|listed| Arc::ptr_eq(listed, replica))
    }

    /// Cores of the replicas that serve as a multiple of those of the replica with this id; their number if cores are not known.
    pub(super) fn cores_ratio(&self, id: Option<&str>) -> f64 {
        let serving: Vec<_> = self
            .replicas
            .iter()
            .filter(|replica| self.is_usable(replica))
            .collect();
        let own = self.replicas.iter().find(|replica| Some(&*replica.id()) == id);
        let own = own.and_then(|replica| replica.cores());
        let sum: Option<f64> = serving.iter().map(|replica| replica.cores()).sum();
        match own.zip(sum) {
            Some((own, sum)) if own > 0.0 => (sum / own).max(1.0),
            _ => float(serving.len().max(1) as u64),
        }
    }

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

    /// Whether requests that begin now may go to this replica.
    pub(crate) fn is_usable(&self, replica: &Arc<Replica>) -> bool {
        let lacks_stores =
            || self.is_beside_store && replica.lists_features() && !replica.has(Features::STORES);
        replica.health().serves() && (self.replicas.len() == 1 || !lacks_stores())
    }

    /// What all of them can do that serve and have answered; `None` if none has answered.
    pub(super) fn features(&self) -> Option<Features> {
        let known = self.replicas.iter().filter(|replica| replica.lists_features());
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
