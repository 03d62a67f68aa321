//! A sample whose value is in the result cache.

use std::{sync::Arc, time::Duration};

use http::HeaderValue;
use pushdown::{BytesKind, Kind, Sample};
use tokio::time::Instant;

use super::{
    compute::continue_cached,
    computed::ComputedSample,
    sample::{AdmittedSample, AdmittedStart},
    source_read::SourceRead,
};
use crate::{
    cache::{CacheLevel, CacheSample, Candidate, Hit, MAX_ENTRY_BYTES, SourceHead},
    compute::Permit,
    error::Result,
    origin::{Authorization, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// A cached value that the store has authorized the caller to have. It may be gone by the time there is memory for it.
#[derive(Debug)]
pub(in crate::routes) struct CachedSample {
    candidate: Candidate,
    authorization: Authorization,
    /// Reads the object, if the value is gone.
    source: SourceRead,
    /// Time of the request to the store.
    store_time: Duration,
}

/// A value from the result cache.
#[derive(Debug)]
pub(super) struct ReleasedValue {
    pub(super) sample: Sample,
    pub(super) stage: usize,
    pub(super) level: CacheLevel,
    pub(super) key: CacheSample,
    pub(super) source: Arc<SourceHead>,
    /// Time of the store's answer and of reading the value.
    pub(super) time: Duration,
    /// The time that the value took from the object, if that is known.
    cost: Option<Duration>,
}

impl ReleasedValue {
    fn hit(&self) -> Hit {
        Hit {
            stage: self.stage,
            bytes: self.sample.bytes(),
            cost: self.cost,
            time: self.time,
        }
    }
}

impl CachedSample {
    pub(super) fn new(
        candidate: Candidate,
        sample: CacheSample,
        authorization: Authorization,
        request: OriginRequest,
        store_time: Duration,
    ) -> Self {
        Self {
            source: SourceRead::new(request, candidate.etag.clone(), sample),
            candidate,
            authorization,
            store_time,
        }
    }

    /// The same, for a request that has become one for a cached value only now.
    pub(super) const fn from_source(
        candidate: Candidate,
        authorization: Authorization,
        source: SourceRead,
    ) -> Self {
        Self {
            candidate,
            authorization,
            source,
            store_time: Duration::ZERO,
        }
    }

    /// Waits for the memory of the value and of the steps that are left, and then takes the value out of the cache. If it is
    /// gone, or larger than the request allows, the object is read.
    pub(super) async fn admit(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
        object: BytesKind,
        mut timing: Timing,
    ) -> Result<AdmittedSample> {
        let (queued, stage) = (Instant::now(), self.candidate.stage);
        let kinds = job.pipeline.kinds_for(&Kind::Bytes(object))?;
        let kind = &kinds[stage];
        let value_bytes = self.candidate.bytes.or_else(|| kind.bytes());
        let value_bytes =
            value_bytes.unwrap_or_else(|| services.memory.total_bytes().min(MAX_ENTRY_BYTES as u64));
        let working = job.pipeline.peak_memory(stage..prepared.stage, kind);
        let bytes = value_bytes + working.map_or(0, |peak| peak.working_bytes);
        let mut permit = services.memory.acquire(job.position.tenant(), bytes).await?;
        timing.add("queue", queued.elapsed());
        let loading = Instant::now();
        let Some(mut value) = self.release(services, job, kind).await else {
            drop(permit);
            return self.source.admit(services, job, prepared).await;
        };
        if working.is_none() {
            // The memory of value and steps follows only from the value.
            let value_kind = Kind::from(&value.sample);
            let working = job.pipeline.peak_memory(stage..prepared.stage, &value_kind);
            let bytes = value.sample.bytes() + working.map_or(0, |peak| peak.working_bytes);
            if bytes > permit.bytes() {
                // Acquires all of it at once, so that no two samples wait for each other (deadlock).
                drop((value, permit));
                permit = services.memory.acquire(job.position.tenant(), bytes).await?;
                let Some(again) = self.release(services, job, kind).await else {
                    drop(permit);
                    return self.source.admit(services, job, prepared).await;
                };
                value = again;
            } else {
                permit.shrink_to(bytes);
            }
        }
        if stage == prepared.stage && job.is_too_large(value.sample.bytes()) {
            drop((permit, value));
            let stored = prepared.for_stored_object(object);
            return self.source.admit(services, job, &stored).await;
        }
        timing.add("cache", loading.elapsed());
        services.cache.observe_hit(self.source.sample(), value.hit());
        let start = AdmittedStart::Cached(value, permit);
        Ok(AdmittedSample { timing, start })
    }

    /// Computes the value for the waiters of a flight, with their memory for all steps from the object. If the cached value is
    /// gone, the object is read.
    pub(super) async fn compute(
        self,
        permit: Permit,
        timing: Timing,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
        object: BytesKind,
    ) -> Result<ComputedSample> {
        let stage = self.candidate.stage;
        let kinds = job.pipeline.kinds_for(&Kind::Bytes(object))?;
        let Some(value) = self.release(services, job, &kinds[stage]).await else {
            drop(permit);
            let admitted = self.source.admit(services, job, prepared).await?;
            return Box::pin(admitted.compute(services, job, prepared)).await;
        };
        services.cache.observe_hit(self.source.sample(), value.hit());
        continue_cached(value, permit, timing, services, job, prepared).await
    }

    /// What a flight needs of this request to share the value: the version, the authorization, and a read of the object.
    pub(super) fn flight_parts(&self) -> (&HeaderValue, Authorization, SourceRead) {
        (
            &self.candidate.etag,
            self.authorization.clone(),
            self.source.clone(),
        )
    }

    async fn release(&self, services: &Services, job: &PipelineJob, kind: &Kind) -> Option<ReleasedValue> {
        let (loading, key) = (Instant::now(), self.source.sample());
        let released = services
            .cache
            .release(&self.candidate, &key.object, &self.authorization);
        let cached = released.await?;
        let sample = cached.value(kind, &services.sample_limits());
        let Some(sample) = sample.filter(|sample| job.pipeline.accepts(cached.stage, sample)) else {
            // Of an earlier version of the gateway, or above a limit that was larger then.
            services.cache.discard(&self.candidate);
            return None;
        };
        services.cache.remember(key.object, &cached.source);
        Some(ReleasedValue {
            sample,
            stage: cached.stage,
            level: cached.level,
            cost: cached.cost,
            key: key.clone(),
            source: cached.source,
            time: self.store_time + loading.elapsed(),
        })
    }
}
