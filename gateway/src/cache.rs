//! The result cache: values that one request computed, for later requests that are authorized (law 6).

mod cells;
mod entry;
mod flight;
mod key;
mod levels;
mod mean_time;
mod objects;
mod open;
mod quotas;
mod remembered;
mod saved_quotas;
mod source;
mod status;
mod value;
mod writes;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderValue, Method, request::Parts};
use parking_lot::Mutex;
use pushdown::{Kind, Limits, Pipeline, Sample, pipeline::Digest};
use tokio::time::Instant;

use crate::{
    compute::Tenant,
    config::Scope,
    origin::{Authorization, ObjectId, OriginRequest},
    telemetry::Metrics,
};
use cells::CellFlights;
pub use cells::{CellSource, Cells};
use entry::MAX_VALUE_BYTES;
pub use entry::{Entry, MAX_ENTRY_BYTES};
pub use flight::{Flights, Follower, Leader, LeaderWait, Role, Waiter};
use key::group_name;
pub use key::{Prefixes, ValueKey};
use levels::{Found, Levels};
use mean_time::HitTimes;
use objects::KnownObjects;
pub use open::Config;
pub use quotas::{CacheLevel, Hints};
use quotas::{Quotas, SetId};
use remembered::Remembered;
use saved_quotas::QuotasFile;
pub use source::SourceHead;
pub use status::CacheStatus;
use value::Owner;
pub use value::{Admission, CacheSample, CacheUnit, CachedValue, Candidate, Hit};
pub use writes::PendingWrite;

/// The result cache, or none. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ResultCache {
    inner: Option<Arc<Inner>>,
    /// Who shares values, those in flight too.
    scope: Scope,
}

#[derive(Debug)]
struct Inner {
    levels: Levels,
    objects: KnownObjects,
    cell_flights: CellFlights,
    remembered: Option<Remembered>,
    quotas: Arc<Mutex<Quotas>>,
    saved_quotas: Option<QuotasFile>,
    scope: Scope,
    /// Of the limits under which values are computed.
    limits: Digest,
    /// When the gateway was started, and the time of the quotas then.
    started: Instant,
    started_at: Duration,
    hit_times: HitTimes,
    metrics: Metrics,
}

impl ResultCache {
    /// Whether there is a cache at all.
    pub const fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// Who shares values.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// The name of the group of tenants that share values with this one.
    pub fn scope_of<'a>(&self, tenant: &'a Tenant) -> &'a str {
        group_name(self.scope(), tenant)
    }

    /// The last known version of an object.
    pub fn known_object(&self, object: &ObjectId) -> Option<Arc<SourceHead>> {
        self.inner.as_ref()?.objects.get(object)
    }

    /// The authorization by an earlier answer of the store, if the operator allows to remember it: to a request with the same signed
    /// target, or to the gateway's own identity about an object that grants allow this request to read.
    pub fn recall(&self, request: &OriginRequest) -> Option<Authorization> {
        let remembered = self.inner.as_ref()?.remembered.as_ref()?;
        remembered.get(request, SystemTime::now())
    }

    /// Remembers the store's answer to a request, if the operator allows it.
    pub fn remember_authorization(&self, request: &OriginRequest, authorization: &Authorization) {
        if let Some(remembered) = self.inner.as_ref().and_then(|inner| inner.remembered.as_ref()) {
            remembered.insert(request, authorization, SystemTime::now());
        }
    }

    /// Remembers the version of an object that the store has just answered with.
    pub fn remember(&self, object: ObjectId, source: &Arc<SourceHead>) {
        if let Some(inner) = &self.inner {
            inner.objects.insert(object, Arc::clone(source));
        }
    }

    /// Forgets an object that the store no longer has.
    pub fn forget(&self, object: &ObjectId) {
        if let Some(inner) = &self.inner {
            inner.objects.remove(object);
            if let Some(writes) = inner.remembered.as_ref().and_then(Remembered::writes) {
                writes.mark(object);
            }
        }
    }

    /// The write that a plain request may be, if what is remembered of objects depends on it. It is to be held until the store's
    /// answer has ended.
    pub fn begin_write(&self, request: &Parts) -> Option<PendingWrite> {
        let writes = self.inner.as_ref()?.remembered.as_ref()?.writes()?;
        writes.begin(&request.method, &request.uri, &request.headers)
    }

    /// The same of a write that the gateway makes for a caller.
    pub fn begin_write_of(&self, request: &OriginRequest) -> Option<PendingWrite> {
        let writes = self.inner.as_ref()?.remembered.as_ref()?.writes()?;
        writes.begin(&Method::PUT, request.target(), request.headers())
    }

    /// The value with the most steps that may be cached for the version `etag` of the object, at one of these stages.
    pub fn find(
        &self,
        sample: &CacheSample,
        etag: &HeaderValue,
        stages: std::ops::RangeInclusive<usize>,
    ) -> Option<Candidate> {
        let inner = self.inner.as_ref()?;
        let last = sample.prefixes.last_deterministic(*stages.end());
        (*stages.start()..=last).rev().find_map(|stage| {
            let prefix = sample.prefixes.digest(stage)?;
            let key = inner.key(sample, etag, &prefix);
            let bytes = match inner.levels.find(&key)? {
                Found::Memory(bytes) => Some(bytes),
                Found::Disk => None,
            };
            let etag = etag.clone();
            Some(Candidate {
                key,
                stage,
                etag,
                bytes,
            })
        })
    }

    /// Releases the value of a candidate, of the type of `kind`. `None` without an authorization for exactly its version, and if it
    /// is no longer cached. A value that `pipeline` or `limits` do not accept is removed.
    pub async fn release(
        &self,
        candidate: &Candidate,
        object: &ObjectId,
        authorization: &Authorization,
        pipeline: &Pipeline,
        kind: &Kind,
        limits: &Limits,
    ) -> Option<CachedValue> {
        let inner = self.inner.as_ref()?;
        if !authorization.covers(object, &candidate.etag) {
            return None;
        }
        let (started, stage) = (Instant::now(), candidate.stage);
        let (entry, level) = inner.levels.get(&candidate.key).await?;
        let (source, cost) = entry
            .source()
            .filter(|(source, _)| source.etag == candidate.etag)?;
        let sample = entry.value(kind, limits);
        let Some(sample) = sample.filter(|sample| pipeline.accepts(stage, sample)) else {
            // Damaged, of an earlier version of the gateway, or above a limit that was larger then.
            inner.levels.remove(&candidate.key);
            return None;
        };
        Some(CachedValue {
            sample,
            stage,
            level,
            time: started.elapsed(),
            source: Arc::new(source),
            cost,
        })
    }

    /// Counts a request that the store has authorized, for the value at `stage`. It decides about the quota of its data set.
    /// With `keep`, its tenant pins the set for this time.
    pub fn observe_request(
        &self,
        sample: &CacheSample,
        stage: usize,
        hints: Option<Hints>,
        keep: Option<Duration>,
    ) {
        let stage = sample.prefixes.last_deterministic(stage);
        if let Some(inner) = &self.inner
            && stage > 0
            && let Some(set) = inner.set(sample, stage)
        {
            let (hash, now) = (sample.object.sample_hash(), inner.now());
            let mut quotas = inner.quotas.lock();
            quotas.observe_request(set, &sample.tenant, hash, hints, now);
            if let Some(keep) = keep {
                quotas.pin(set, &sample.tenant, keep, now);
                inner.metrics.set_cache_pinned_bytes(quotas.pinned_bytes());
            }
        }
    }

    /// Whether the value at `stage` is to be cached, or at least to be measured, as the first one of its data set.
    pub fn is_wanted(&self, sample: &CacheSample, stage: usize) -> bool {
        let Some(inner) = &self.inner else { return false };
        let Some(set) = inner.set(sample, stage) else {
            return false;
        };
        let quotas = inner.quotas.lock();
        quotas.placement(set, sample.object.sample_hash()).is_some() || quotas.is_unmeasured(set)
    }

    /// The part of the objects of this data set whose values at `stage` are cached.
    pub fn cached_ratio(&self, sample: &CacheSample, stage: usize) -> f64 {
        let ratio = |inner: &Arc<Inner>| {
            let set = inner.set(sample, stage)?;
            Some(inner.quotas.lock().cached_ratio(set))
        };
        self.inner.as_ref().and_then(ratio).unwrap_or_default()
    }

    /// Counts a value that answered a request from the cache.
    pub fn observe_hit(&self, sample: &CacheSample, hit: Hit) {
        if let Some(inner) = &self.inner
            && let Some(set) = inner.set(sample, hit.stage)
        {
            inner.hit_times.of(sample.unit).observe(hit.time);
            let hash = sample.object.sample_hash();
            let mut quotas = inner.quotas.lock();
            // If the values of a set are all of an earlier run, nothing else measures them.
            if quotas.is_hardly_measured(set) {
                let hit_seconds = inner.hit_times.of(sample.unit).seconds();
                // It had a place, so computing took longer than a hit.
                let cost_seconds = hit.cost.map_or(2.0 * hit_seconds, |cost| cost.as_secs_f64());
                let bytes = inner.levels.used_bytes(hit.bytes);
                quotas.observe_value(set, hash, bytes, cost_seconds - hit_seconds);
            }
            let saved = quotas.observe_hit(set, hash);
            drop(quotas);
            inner.metrics.count_cache_saved(saved);
        }
    }

    /// The place for a value that a request has computed at `stage`, with the time that it took from the object. `None` if it
    /// is not worth caching, or if there is no space for it.
    pub fn admit(&self, sample: &CacheSample, stage: usize, bytes: u64, cost: Duration) -> Option<Admission> {
        let inner = self.inner.as_ref().filter(|_| bytes <= MAX_VALUE_BYTES)?;
        let set = inner.set(sample, stage)?;
        let mut quotas = inner.quotas.lock();
        let hash = sample.object.sample_hash();
        let bytes = inner.levels.used_bytes(bytes);
        let saved_seconds = cost.as_secs_f64() - inner.hit_times.of(sample.unit).seconds();
        quotas.observe_value(set, hash, bytes, saved_seconds);
        Some(Admission {
            level: quotas.placement(set, hash)?,
            owner: Owner {
                set,
                object_hash: hash,
            },
            cost,
        })
    }

    /// Adds a value. Copies it. Returns its key; `None` if it has no form in the cache.
    pub fn insert(
        &self,
        sample: &CacheSample,
        stage: usize,
        source: &SourceHead,
        value: &Sample,
        admission: Admission,
    ) -> Option<ValueKey> {
        let inner = self.inner.as_ref()?;
        let prefix = sample.prefixes.digest(stage)?;
        let entry = Entry::new(source, value, admission.cost)?;
        let key = inner.key(sample, &source.etag, &prefix);
        inner
            .metrics
            .count_cache_insert(admission.level.name(), entry.as_bytes().len() as u64);
        inner.levels.insert(key, entry, admission.level, admission.owner);
        inner.metrics.set_cache_memory_bytes(inner.levels.memory_bytes());
        Some(key)
    }

    /// Whether a value is in the cache: in memory, or probably on the disk or on its way there.
    pub fn contains(&self, key: &ValueKey) -> bool {
        let found = self.inner.as_ref().and_then(|inner| inner.levels.find(key));
        found.is_some()
    }

    /// Waits until what has been added is on the disk, or was dropped because the disk is too slow.
    pub async fn flush(&self) {
        if let Some(inner) = &self.inner {
            inner.levels.flush().await;
        }
    }

    /// Counts a value by where it came from.
    fn count_value(&self, origin: &'static str) {
        if let Some(inner) = &self.inner {
            inner.metrics.count_value(origin);
        }
    }

    /// Writes what is still in buffers.
    pub async fn close(&self) {
        if let Some(inner) = &self.inner {
            inner.levels.close().await;
            inner.save_quotas(true).await;
        }
    }
}

impl Inner {
    /// The time of the quotas.
    fn now(&self) -> Duration {
        self.started_at + self.started.elapsed()
    }

    /// Ends the leases on data sets whose time is over.
    fn end_leases(&self) {
        let mut quotas = self.quotas.lock();
        quotas.end_leases(self.now());
        self.metrics.set_cache_pinned_bytes(quotas.pinned_bytes());
    }

    fn key(&self, sample: &CacheSample, etag: &HeaderValue, prefix: &Digest) -> ValueKey {
        let prefix = Digest::from_parts([prefix.as_bytes(), self.limits.as_bytes()]);
        ValueKey::new(&sample.object, etag, &prefix, self.scope, &sample.tenant)
    }

    fn set(&self, sample: &CacheSample, stage: usize) -> Option<SetId> {
        let prefix = sample.prefixes.digest(stage)?;
        Some(self.set_at(sample, &prefix))
    }

    /// The data set of a value: all objects of a bucket, with the same prefix.
    fn set_at(&self, sample: &CacheSample, prefix: &Digest) -> SetId {
        let digest = Digest::from_parts([
            &sample.object.container().to_le_bytes()[..],
            prefix.as_bytes(),
            group_name(self.scope, &sample.tenant).as_bytes(),
        ]);
        let mut id = [0; 16];
        id.copy_from_slice(&digest.as_bytes()[..16]);
        SetId(id)
    }
}
