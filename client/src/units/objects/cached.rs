//! Reads values from the value cache before anything is requested, and adds new ones.
//!
//! Of the processes that share a cache folder, one fetches each value, and the others wait for it. They cannot wait for each
//! other in a circle: a batch that waits holds no claim, because it first fetches what it has claimed, and the CPU pool
//! stores a value and removes its claim whether or not the batch waits. A batch does not wait while its reader is past its
//! prefetch budget, since younger batches, which may hold claims, then wait for the oldest one. And no batch waits longer
//! than the lease of a claim.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use pushdown::{Context, Kind, Sample, wire::Split};
use tokio::time::{Instant, sleep};

use super::{BatchJob, Session, intake::Intake};
use crate::{
    epoch::Charge,
    error::Result,
    stats::{Counters, add},
    value_cache::{CachedStage, Claim, LEASE, ListedSample, Lookup, NotCachedReason, ValueCache},
};

/// The most requests for ETags in flight, per batch.
const ETAG_REQUESTS: usize = 16;
/// The first and the longest pause before looking again for values that other processes fetch.
const PAUSES: Range<Duration> = Duration::from_millis(5)..Duration::from_millis(50);

/// The missing values of a batch, while other processes may fetch some of them.
#[derive(Debug)]
pub(super) struct Lookups {
    /// Slots whose values other processes fetch.
    held: BTreeSet<usize>,
    pause: Duration,
    /// When the batch stops waiting.
    deadline: Option<Instant>,
}

/// Whether the value of an object is cached.
enum CachedValueOf<'a> {
    /// At this stage.
    Stage(&'a ValueCache, &'a CachedStage),
    /// It is not, for this reason.
    NotCached(NotCachedReason),
    /// The reader has no value cache.
    NoCache,
}

impl Lookups {
    pub(super) const fn new() -> Self {
        Self {
            held: BTreeSet::new(),
            pause: PAUSES.start,
            deadline: None,
        }
    }

    /// Takes every value of the batch that is cached, waits for those that other processes fetch, and returns the slots to
    /// fetch next; none once the batch is complete.
    pub(super) async fn next_slots(
        &mut self,
        session: &Arc<Session>,
        job: &BatchJob,
        intake: &Intake<'_>,
    ) -> Result<Vec<usize>> {
        let mut slots = intake.missing();
        if session.value_cache.is_none() {
            return Ok(slots);
        }
        slots.retain(|slot| !self.held.contains(slot));
        loop {
            let to_fetch = self.look_up(session, job, intake, slots).await?;
            if !to_fetch.is_empty() || self.held.is_empty() {
                return Ok(to_fetch);
            }
            slots = self.wait(session, job).await?;
        }
    }

    /// Takes the cached values of these slots, and returns those to fetch.
    async fn look_up(
        &mut self,
        session: &Arc<Session>,
        job: &BatchJob,
        intake: &Intake<'_>,
        slots: Vec<usize>,
    ) -> Result<Vec<usize>> {
        let indices = slots.iter().map(|slot| job.samples[*slot].index);
        session.ask_for_etags(indices).await;
        let may_wait = self.may_wait(job);
        let lookups: Vec<_> = slots
            .into_iter()
            .map(|slot| {
                let (session, index) = (Arc::clone(session), job.samples[slot].index);
                let cpu = session.cpu.clone();
                let lookup = move || session.load_or_claim(index, may_wait);
                (slot, cpu.run_for(job.number, lookup))
            })
            .collect();
        let mut to_fetch = Vec::new();
        for (slot, lookup) in lookups {
            match lookup.await? {
                (stage, Lookup::Cached(value)) => {
                    intake.cached(slot, stage, value)?;
                    self.pause = PAUSES.start;
                }
                (_, Lookup::Claimed(claim)) => {
                    intake.claim(slot, claim);
                    to_fetch.push(slot);
                }
                (_, Lookup::Held) => _ = self.held.insert(slot),
                (_, Lookup::Unclaimed) => to_fetch.push(slot),
            }
        }
        Ok(to_fetch)
    }

    /// Waits until a value that another process fetches may have arrived or is nobody's, and returns these slots.
    async fn wait(&mut self, session: &Arc<Session>, job: &BatchJob) -> Result<Vec<usize>> {
        // The link is idle, so the next batch may begin.
        job.progress.allow_next();
        self.deadline.get_or_insert_with(|| Instant::now() + LEASE);
        loop {
            if !self.may_wait(job) {
                return Ok(std::mem::take(&mut self.held).into_iter().collect());
            }
            sleep(self.pause).await;
            self.pause = (2 * self.pause).min(PAUSES.end);
            let indices: Vec<_> = self.held.iter().map(|slot| job.samples[*slot].index).collect();
            let (session, cpu) = (Arc::clone(session), session.cpu.clone());
            let are_held = cpu
                .run_for(job.number, move || session.are_held(&indices))
                .await?;
            let held = self.held.iter().zip(are_held);
            let changed: Vec<usize> = held
                .filter(|(_, is_held)| !is_held)
                .map(|(slot, _)| *slot)
                .collect();
            if !changed.is_empty() {
                self.held.retain(|slot| changed.binary_search(slot).is_err());
                return Ok(changed);
            }
        }
    }

    /// Whether the batch may wait for other processes.
    fn may_wait(&self, job: &BatchJob) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        !is_over && !job.charge.as_deref().is_some_and(Charge::is_blocking)
    }
}

impl Session {
    /// Asks the store for the ETags of these objects, where neither their list nor the store has said. It is no error if it does not
    /// answer: their values are then not cached.
    async fn ask_for_etags(&self, indices: impl Iterator<Item = usize>) {
        let Some(cache) = &self.value_cache else {
            return;
        };
        let is_needed = |index: &usize| {
            self.cached_stage(*index).is_some() && cache.needs_etag(ListedSample::new(&self.objects, *index))
        };
        let needed: Vec<usize> = indices.filter(is_needed).collect();
        let answers = stream::iter(needed).map(|index| async move {
            let answer = self.store.etag(self.objects.bucket(), self.objects.key(index));
            (index, answer.await)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(ETAG_REQUESTS));
        while let Some((index, answer)) = answers.next().await {
            let etag = answer.unwrap_or_else(|error| {
                tracing::debug!(%error, "no value is cached");
                None
            });
            cache.set_etag(index, etag.as_deref());
        }
    }

    /// The cache and the stage at which it has an object's value, if it is to have one.
    fn cached_stage(&self, index: usize) -> Option<(&ValueCache, &CachedStage)> {
        match self.cached_value_of(index) {
            CachedValueOf::Stage(cache, stage) => Some((cache, stage)),
            CachedValueOf::NotCached(_) | CachedValueOf::NoCache => None,
        }
    }

    fn cached_value_of(&self, index: usize) -> CachedValueOf<'_> {
        let Some(cache) = &self.value_cache else {
            return CachedValueOf::NoCache;
        };
        match cache.stage(self.objects.bytes(index)) {
            Some(stage) if stage.stage < self.first_stage => {
                CachedValueOf::NotCached(NotCachedReason::NoModels)
            }
            Some(_) if cache.has_no_etag(ListedSample::new(&self.objects, index)) => {
                CachedValueOf::NotCached(NotCachedReason::NoEtag)
            }
            Some(stage) => CachedValueOf::Stage(cache, stage),
            None => CachedValueOf::NotCached(cache.too_large_reason()),
        }
    }

    /// The cached value of an object and its stage, or who fetches it. Claims nothing and waits for nobody unless `may_wait` is set.
    fn load_or_claim(&self, index: usize, may_wait: bool) -> (u8, Lookup) {
        let Some((cache, stage)) = self.cached_stage(index) else {
            return (0, Lookup::Unclaimed);
        };
        let Ok(number) = u8::try_from(stage.stage) else {
            return (0, Lookup::Unclaimed);
        };
        let sample = ListedSample::new(&self.objects, index);
        let lookup = if may_wait && self.is_worth_claiming(index, stage) {
            cache.load_or_claim(sample, stage, &self.pipeline, &self.limits)
        } else {
            let value = cache.load(sample, stage, &self.pipeline, &self.limits);
            value.map_or(Lookup::Unclaimed, Lookup::Cached)
        };
        (number, lookup)
    }

    /// Whether a value will probably be cached: others would wait in vain for one that turns out to be larger than its object.
    fn is_worth_claiming(&self, index: usize, stage: &CachedStage) -> bool {
        if stage.is_known_to_fit(self.objects.bytes(index)) {
            return true;
        }
        let Counters {
            cache_hits,
            cache_writes,
            not_cached,
            ..
        } = &self.counters;
        let cached = cache_hits.load(Relaxed) + cache_writes.load(Relaxed);
        cached >= not_cached.snapshot().total()
    }

    /// Which of these objects have no cached value yet, and are fetched by another process.
    fn are_held(&self, indices: &[usize]) -> Vec<bool> {
        let Some(cache) = &self.value_cache else {
            return vec![false; indices.len()];
        };
        cache.are_held(indices.iter().map(|index| {
            let (_, stage) = self.cached_stage(*index)?;
            Some((ListedSample::new(&self.objects, *index), stage))
        }))
    }

    /// Whether a value at `stage` is to be cached, then or at a later stage. Counts the reason if not.
    pub(super) fn should_cache(&self, index: usize, stage: u8) -> bool {
        let reason = match self.cached_value_of(index) {
            CachedValueOf::NoCache => return false,
            CachedValueOf::Stage(_, cached) if cached.stage >= usize::from(stage) => return true,
            CachedValueOf::Stage(..) if self.objects.bytes(index).is_none() => NotCachedReason::Unlisted,
            CachedValueOf::Stage(..) => NotCachedReason::AfterRandom,
            CachedValueOf::NotCached(reason) => reason,
        };
        self.counters.not_cached.count(reason);
        false
    }

    /// Runs `steps`, and caches the value of the cached stage together with the further columns. The claim is held until then.
    pub(super) fn run_and_cache(
        &self,
        index: usize,
        steps: Range<usize>,
        (sample, columns): (Sample, &[Option<Bytes>]),
        claim: Option<Claim>,
        context: &Context<'_>,
    ) -> pushdown::Result<Sample> {
        let Some((cache, stage)) = self.cached_stage(index) else {
            return self.run_steps(index, steps, sample, context);
        };
        let arrived = match &sample {
            Sample::Bytes(object) if steps.start == 0 => Some(object.len() as u64),
            _ => None,
        };
        let stored = self.objects.bytes(index).or(arrived);
        if let (Sample::Bytes(bytes), 0) = (&sample, steps.start) {
            // The object's head determines the sizes of its values: if the value is too large, run all steps at once.
            let kinds = self.pipeline.kinds_for(&Kind::of_object(arrived, bytes));
            let value = kinds.ok().and_then(|kinds| kinds.get(stage.stage)?.bytes());
            if value > stored {
                self.counters.not_cached.count(cache.too_large_reason());
                drop(claim);
                return self.run_steps(index, steps, sample, context);
            }
        }
        let value = self.run_steps(index, steps.start..stage.stage, sample, context)?;
        let listed = ListedSample::new(&self.objects, index);
        match cache.store(listed, stored, stage, (&value, columns)) {
            Ok(()) => add(&self.counters.cache_writes, 1),
            Err(reason) => self.counters.not_cached.count(reason),
        }
        drop(claim);
        self.run_steps(index, stage.stage..steps.end, value, context)
    }

    /// Limits the split to the cached stage, if its value is known to be no larger than the object: a later value could not
    /// be cached.
    pub(super) fn clamp_to_cached_stage(&self, index: usize, split: Split) -> Split {
        let Some((_, stage)) = self.cached_stage(index) else {
            return split;
        };
        let Ok(cached) = u8::try_from(stage.stage) else {
            return split;
        };
        match split {
            _ if !stage.is_known_to_fit(self.objects.bytes(index)) => split,
            Split::At(stage) => Split::At(stage.min(cached)),
            Split::Full | Split::Smallest => Split::At(cached),
        }
    }
}
