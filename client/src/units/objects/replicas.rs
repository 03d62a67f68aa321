//! How a reader uses the replicas of its gateway: which ones, for which samples, and what they state together.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use pushdown::{
    plan::MIN_SAMPLES_PER_REPLICA,
    wire::{CachedRatios, Demand, object_hash},
};
use pushdown_exec::sync::Mutex;

use super::{BatchJob, Session};
use crate::{
    epoch::BatchProgress,
    error::Result,
    measure::{GatewayCpus, ReplicaAnswers},
    objects::Objects,
    planning::{Event, SamplesLeft},
    store::{InFlightSamples, Replica, ReplicaList, ReplicaVersion},
};

/// What a reader knows of replicas beyond what all readers of its store do.
#[derive(Debug, Default)]
pub(crate) struct ReplicaUse {
    /// Tells this reader apart from others of its tenant: a random number.
    reader_id: String,
    /// Upper bound of the samples of this reader in flight.
    max_samples_in_flight: u64,
    /// The number of several replicas that the last batch used.
    used_count: AtomicU64,
    limits: Mutex<Vec<ReplicaLimit>>,
    answers: Mutex<ReplicaAnswers>,
    /// The progress of the batch that began last.
    last_batch: Mutex<Option<Arc<BatchProgress>>>,
}

/// A replica that may run fewer steps than others: its values are not those of this host, or it lacks a feature.
#[derive(Debug)]
struct ReplicaLimit {
    replica: Weak<Replica>,
    /// Another one at the same address has no limit.
    version: ReplicaVersion,
    /// The steps that it may run.
    stage: usize,
}

/// Samples of a batch that are requested from one replica.
#[derive(Debug)]
pub(super) struct PlacedSamples {
    pub(super) replica: Arc<Replica>,
    pub(super) slots: Vec<usize>,
    pub(super) in_flight: InFlightSamples,
}

/// A batch request in flight at a replica, until this is dropped.
#[derive(Debug)]
pub(super) struct PendingRequest<'a> {
    replicas: &'a ReplicaUse,
    id: Arc<str>,
}

impl ReplicaUse {
    /// A reader that has at most this many samples in flight.
    pub(crate) fn new(max_samples_in_flight: u64) -> Self {
        Self {
            reader_id: format!("{:016x}", rand::random::<u64>()),
            max_samples_in_flight,
            ..Self::default()
        }
    }

    /// The steps that a replica may run, if it may not run all that others may.
    fn limit(&self, replica: &Arc<Replica>) -> Option<usize> {
        let mut limits = self.limits.lock();
        if limits.is_empty() {
            return None;
        }
        limits.retain(|limit| limit.replica.strong_count() > 0);
        let version = replica.version();
        let own = limits
            .iter()
            .filter(|limit| Weak::as_ptr(&limit.replica) == Arc::as_ptr(replica) && limit.version == version);
        own.map(|limit| limit.stage).min()
    }

    /// The replicas that this reader uses: as many as its samples in flight are enough for, of those that serve, compute the values of this
    /// host and are not `avoided`. All ranks use the same ones for a data set.
    fn used(&self, list: &ReplicaList, objects: &Objects, avoided: &[Arc<Replica>]) -> Vec<usize> {
        let placement = list.placement();
        let count = placement.count_for(self.max_samples_in_flight);
        let first_key = if objects.is_empty() { "" } else { objects.key(0) };
        placement.subset(object_hash(objects.bucket(), first_key), count, |index| {
            let replica = list.get(index);
            let is_avoided = avoided.iter().any(|avoided| Arc::ptr_eq(avoided, replica));
            !is_avoided && list.is_usable(replica) && self.limit(replica).is_none()
        })
    }

    /// A batch has begun. The next one may begin as well while the replicas have too few samples in flight.
    pub(super) fn batch_began(&self, progress: &Arc<BatchProgress>) {
        *self.last_batch.lock() = Some(Arc::clone(progress));
    }

    /// Lets the next batch begin if the replicas in use have too few samples in flight.
    fn keep_busy(&self, list: &ReplicaList) {
        let wanted = MIN_SAMPLES_PER_REPLICA * self.used_count.load(Relaxed);
        if list.samples_in_flight() < wanted
            && let Some(progress) = &*self.last_batch.lock()
        {
            progress.allow_next_early();
        }
    }

    /// Counts a batch request to a replica.
    pub(super) fn begin(&self, replica: &Replica) -> PendingRequest<'_> {
        let id = replica.id();
        self.answers.lock().begin(&id);
        PendingRequest { replicas: self, id }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.replicas.answers.lock().end(&self.id);
    }
}

impl Session {
    /// Divides slots by the replicas that their samples are requested from, without those that are `avoided`. Nothing if this host does
    /// without those that are left.
    ///
    /// # Errors
    /// If there is certainly no gateway.
    pub(super) async fn place(
        &self,
        job: &BatchJob,
        slots: Vec<usize>,
        avoided: &[Arc<Replica>],
    ) -> Result<Vec<PlacedSamples>> {
        let list = self.store.replicas().await?;
        let place = |index: usize, slots: Vec<usize>| {
            let replica = Arc::clone(list.get(index));
            PlacedSamples {
                in_flight: replica.begin(slots.len() as u64),
                replica,
                slots,
            }
        };
        if list.len() == 1 {
            self.replica_use.used_count.store(1, Relaxed);
            if let Some(stage) = self.replica_use.limit(list.get(0)) {
                self.limit_stage(stage, "the only replica that is left does not run more");
            }
            return Ok(vec![place(0, slots)]);
        }
        let used = self.replica_use.used(&list, &self.objects, avoided);
        if used.is_empty() {
            if self.is_gateway_dispensable() {
                return Ok(Vec::new());
            }
            // The next attempts find one that serves again.
            let hash = object_hash(self.objects.bucket(), "");
            let index = list.index_of_choice(hash, |replica| self.replica_use.limit(replica).is_none());
            return Ok(vec![place(index, slots)]);
        }
        let hash = |slot: &usize| {
            let key = self.objects.key(job.samples[*slot].index);
            object_hash(self.objects.bucket(), key)
        };
        let hashes: Vec<u64> = slots.iter().map(hash).collect();
        let in_flight: Vec<u64> = list.iter().map(|replica| replica.samples_in_flight()).collect();
        let choices = list
            .placement()
            .assign(&hashes, &in_flight, |index| used.contains(&index));
        let mut by_replica = vec![Vec::new(); list.len()];
        for (slot, choice) in slots.into_iter().zip(choices) {
            by_replica[choice].push(slot);
        }
        let placed = by_replica.into_iter().enumerate();
        let placed = placed.filter(|(_, slots)| !slots.is_empty());
        let placed = placed.map(|(index, slots)| place(index, slots)).collect();
        self.replica_use.used_count.store(used.len() as u64, Relaxed);
        self.replica_use.keep_busy(&list);
        Ok(placed)
    }

    /// A sample has arrived, or failed, at one of several replicas.
    pub(super) fn observe_arrival(&self, in_flight: &mut InFlightSamples) {
        in_flight.release();
        if self.replica_use.used_count.load(Relaxed) > 1
            && let Some(list) = self.store.known_replicas()
        {
            self.replica_use.keep_busy(&list);
        }
    }

    /// Whether samples may still be requested from this replica: it is listed, serves, and has no limit.
    pub(super) fn may_request_from(&self, replica: &Arc<Replica>) -> bool {
        let list = self.store.known_replicas();
        list.is_none_or(|list| list.contains(replica) && list.is_usable(replica))
            && self.replica_use.limit(replica).is_none()
    }

    /// Whether this replica may not run all steps that others may.
    pub(super) fn is_limited_replica(&self, replica: &Arc<Replica>) -> bool {
        self.replica_use.limit(replica).is_some()
    }

    /// Whether another replica, not one of those that are `avoided`, may be asked for the samples of this one.
    pub(super) fn has_usable_other(&self, replica: &Arc<Replica>, avoided: &[Arc<Replica>]) -> bool {
        let Some(list) = self.store.known_replicas() else {
            return false;
        };
        let used = self.replica_use.used(&list, &self.objects, avoided);
        used.iter().any(|index| !Arc::ptr_eq(list.get(*index), replica))
    }

    /// Lets a replica run only the first `stage` steps from now on: others take over. If all are limited, the gateway as a whole is.
    pub(super) fn limit_replica(&self, replica: &Arc<Replica>, stage: usize, why: &str) {
        let Some(list) = self.store.known_replicas().filter(|list| list.len() > 1) else {
            return self.limit_stage(stage, why);
        };
        if self.replica_use.limit(replica).is_none() {
            tracing::warn!(why, %replica, "its samples go to other replicas");
            replica.suspect();
            self.replica_use.limits.lock().push(ReplicaLimit {
                replica: Arc::downgrade(replica),
                version: replica.version(),
                stage,
            });
        }
        let limits: Option<Vec<usize>> = list
            .iter()
            .map(|replica| self.replica_use.limit(replica))
            .collect();
        if let Some(stage) = limits.and_then(|limits| limits.into_iter().max()) {
            self.limit_stage(stage, why);
            self.replica_use.limits.lock().clear();
        }
    }

    /// Takes what the head of an answer of a replica states about the gateway.
    pub(super) fn observe_answer_of(&self, replica: &Replica, cpus: GatewayCpus, ratios: CachedRatios) {
        let Some(adapter) = &self.adapter else {
            return;
        };
        let list = self.store.known_replicas();
        let mut answers = self.replica_use.answers.lock();
        // Once there were several, what one states goes on where their sum was.
        let Some(list) = list.filter(|list| list.len() > 1 || !answers.is_empty()) else {
            drop(answers);
            adapter.observe(Event::RequestAnswered(cpus));
            adapter.observe(Event::CachedRatiosAnnounced(ratios));
            return;
        };
        answers.observe(&replica.id(), &cpus, ratios);
        answers.retain(list.ids());
        drop(answers);
        let (cpus, ratios) = self.total(&list);
        adapter.observe(Event::RequestAnswered(cpus));
        adapter.observe(Event::CachedRatiosAnnounced(ratios));
    }

    /// Samples go to other replicas: those that have not arrived are planned for the ones that are left.
    pub(super) fn observe_displacement(&self, job: &BatchJob) {
        let list = self.store.known_replicas().filter(|list| list.len() > 1);
        if let (Some(adapter), Some(list)) = (&self.adapter, list) {
            let (cpus, _) = self.total(&list);
            adapter.observe(Event::RequestAnswered(cpus));
            adapter.observe(adapter.gateway_change(SamplesLeft {
                samples: job.samples_left,
                later_epochs: self.epochs_left(job.epoch) - 1,
            }));
        }
    }

    /// What this reader demands of a replica: its part of the cores that the reader could use. `None` without a plan.
    pub(super) fn demand_on(&self, replica: &Arc<Replica>) -> Option<Demand> {
        let cores = self.adapter.as_ref()?.demand_cores()?;
        let list = self.store.known_replicas()?;
        let used = self.replica_use.used(&list, &self.objects, &[]);
        let weight = |index: &usize| list.placement().fraction(*index);
        let own = used.iter().find(|index| Arc::ptr_eq(list.get(**index), replica));
        let part = own.map_or(0.0, weight) / used.iter().map(weight).sum::<f64>().max(f64::MIN_POSITIVE);
        Some(Demand {
            reader: self.replica_use.reader_id.clone(),
            cores: cores * part,
        })
    }

    /// What the replicas in use state together.
    fn total(&self, list: &ReplicaList) -> (GatewayCpus, CachedRatios) {
        let used = self.replica_use.used(list, &self.objects, &[]);
        let ids = list.ids();
        let answers = self.replica_use.answers.lock();
        let placement = list.placement();
        (
            answers.total(placement, ids, &used),
            answers.cached_ratios(placement, ids, &used),
        )
    }
}
