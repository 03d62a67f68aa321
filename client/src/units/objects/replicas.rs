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
    planning::{Event, SamplesLeft},
    store::{InFlightSamples, Replica, ReplicaList},
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
    /// How often it had recovered. After the next time it may be another version.
    recoveries: u64,
    /// The steps that it may run.
    stage: usize,
}

/// Samples of a batch that are requested from one replica.
#[derive(Debug)]
pub(super) struct PlacedSamples {
    pub(super) replica: Arc<Replica>,
    pub(super) slots: Vec<usize>,
    pub(super) in_flight: InFlightSamples,
    /// Whether another replica can take over.
    pub(super) has_others: bool,
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

    /// Whether another replica is to be asked in place of this one.
    fn is_limited(&self, replica: &Arc<Replica>) -> bool {
        self.limit(replica).is_some()
    }

    /// The steps that a replica may run, if it may not run all that others may.
    fn limit(&self, replica: &Arc<Replica>) -> Option<usize> {
        let recoveries = replica.health().recoveries();
        let mut limits = self.limits.lock();
        limits.retain(|limit| limit.replica.strong_count() > 0);
        let of_replica = limits.iter().filter(|limit| {
            limit.recoveries == recoveries && Weak::as_ptr(&limit.replica) == Arc::as_ptr(replica)
        });
        of_replica.map(|limit| limit.stage).min()
    }

    /// The replicas that this reader uses: as many as its samples in flight are enough for, of those that serve and compute the values of this
    /// host. All ranks use the same ones for a data set.
    fn used(&self, list: &ReplicaList, bucket: &str) -> Vec<usize> {
        let placement = list.placement();
        let count = placement.count_for(self.max_samples_in_flight);
        let ranking = placement.ranking(object_hash(bucket, ""));
        let usable = ranking.into_iter().filter(|index| {
            let replica = list.get(*index);
            list.is_usable(replica) && !self.is_limited(replica)
        });
        usable.take(count).collect()
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
            progress.allow_next();
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
    /// Divides slots by the replicas that their samples are requested from. Nothing if this host does without those that are left.
    ///
    /// # Errors
    /// If there is certainly no gateway.
    pub(super) async fn place(&self, job: &BatchJob, slots: Vec<usize>) -> Result<Vec<PlacedSamples>> {
        let list = self.store.replicas().await?;
        let place = |index: usize, slots: Vec<usize>, has_others: bool| {
            let replica = Arc::clone(list.get(index));
            PlacedSamples {
                in_flight: replica.begin(slots.len() as u64),
                replica,
                slots,
                has_others,
            }
        };
        if list.len() == 1 {
            self.replica_use.used_count.store(1, Relaxed);
            return Ok(vec![place(0, slots, false)]);
        }
        let used = self.replica_use.used(&list, self.objects.bucket());
        if used.is_empty() {
            if self.is_gateway_dispensable() {
                return Ok(Vec::new());
            }
            // The next attempts find one that serves again.
            let index = list.index_of_choice(object_hash(self.objects.bucket(), ""), |replica| {
                !self.replica_use.is_limited(replica)
            });
            return Ok(vec![place(index, slots, true)]);
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
        let placed = placed.map(|(index, slots)| place(index, slots, true)).collect();
        self.replica_use.used_count.store(used.len() as u64, Relaxed);
        self.replica_use.keep_busy(&list);
        Ok(placed)
    }

    /// A sample has arrived from one of several replicas.
    pub(super) fn observe_arrival(&self, placed: &mut InFlightSamples) {
        placed.arrived();
        if self.replica_use.used_count.load(Relaxed) > 1
            && let Some(list) = self.store.known_replicas()
        {
            self.replica_use.keep_busy(&list);
        }
    }

    /// Whether samples may be requested from this replica.
    pub(super) fn is_usable(&self, replica: &Arc<Replica>) -> bool {
        let list = self.store.known_replicas();
        list.is_none_or(|list| list.is_usable(replica)) && !self.replica_use.is_limited(replica)
    }

    /// Whether one of several replicas may be asked for the samples of another one.
    pub(super) fn has_usable_replica(&self) -> bool {
        let list = self.store.known_replicas().filter(|list| list.len() > 1);
        list.is_some_and(|list| !self.replica_use.used(&list, self.objects.bucket()).is_empty())
    }

    /// Lets a replica run only the first `stage` steps from now on: others take over. If all are limited, the gateway as a whole is.
    pub(super) fn limit_replica(&self, replica: &Arc<Replica>, stage: usize, why: &str) {
        let Some(list) = self.store.known_replicas().filter(|list| list.len() > 1) else {
            return self.limit_stage(stage, why);
        };
        if !self.replica_use.is_limited(replica) {
            tracing::warn!(why, %replica, "its samples go to other replicas");
            self.replica_use.limits.lock().push(ReplicaLimit {
                replica: Arc::downgrade(replica),
                recoveries: replica.health().recoveries(),
                stage,
            });
        }
        let limits: Option<Vec<usize>> = list
            .iter()
            .map(|replica| self.replica_use.limit(replica))
            .collect();
        if let Some(stage) = limits.and_then(|limits| limits.into_iter().min()) {
            self.limit_stage(stage, why);
            self.replica_use.limits.lock().clear();
        }
    }

    /// Takes what the head of an answer of a replica states about the gateway.
    pub(super) fn observe_answer_of(&self, replica: &Replica, cpus: GatewayCpus, ratios: CachedRatios) {
        let Some(adapter) = &self.adapter else {
            return;
        };
        let Some(list) = self.store.known_replicas().filter(|list| list.len() > 1) else {
            adapter.observe(Event::RequestAnswered(cpus));
            adapter.observe(Event::CachedRatiosAnnounced(ratios));
            return;
        };
        self.replica_use
            .answers
            .lock()
            .observe(&replica.id(), &cpus, ratios);
        let (cpus, ratios) = self.total(&list);
        adapter.observe(Event::RequestAnswered(cpus));
        adapter.observe(Event::CachedRatiosAnnounced(ratios));
    }

    /// A replica is lost: the samples that it has not delivered are planned for those that are left.
    pub(super) fn observe_lost_replica(&self, job: &BatchJob) {
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
        let used = self.replica_use.used(&list, self.objects.bucket());
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
        let used = self.replica_use.used(list, self.objects.bucket());
        let ids: Vec<Arc<str>> = list.iter().map(|replica| replica.id()).collect();
        let answers = self.replica_use.answers.lock();
        let placement = list.placement();
        (
            answers.total(placement, &ids, &used),
            answers.cached_ratios(placement, &ids, &used),
        )
    }
}
