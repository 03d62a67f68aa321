//! Where the value of a sample may be already: in the result cache, or in flight.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode, header};
use pushdown::{BytesKind, Kind, pipeline::Digest, wire::CachedRatios};

use super::{
    cached::CachedSample,
    flight::{FlightLeader, FlightRole, WaiterKind},
    sample::{OpenedSample, Start},
};
use crate::{
    cache::{CacheSample, Candidate, Hints, LeaderWait, SourceHead},
    config::Scope,
    origin::{Authorization, ObjectId, OriginObject, OriginRequest},
    routes::{Services, job::PipelineJob},
};

/// What the caller says about a sample. Nothing in it is trusted: it only tells where to look.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::routes) struct SampleHints<'a> {
    /// The ETag of the object in the caller's listing.
    pub(in crate::routes) etag: Option<&'a HeaderValue>,
    /// Whether the answer is a row, which has no headers of the object.
    pub(in crate::routes) is_row: bool,
    /// What the caller plans.
    pub(in crate::routes) plans: Option<Hints>,
}

/// Looks for the value of a sample among those that other requests have computed or compute.
#[derive(Debug)]
pub(super) struct ValueLookup<'a> {
    services: &'a Services,
    job: &'a PipelineJob,
    hints: &'a SampleHints<'a>,
    sample: CacheSample,
    /// The version that the request requires, as that of a member of a shard does.
    required: Option<HeaderValue>,
    /// The version that the gateway read last, if it is not another one than the required one.
    known: Option<Arc<SourceHead>>,
}

/// How much of an object's data set is cached, at the last deterministic stage up to each of `stages`. Only for a caller
/// that the store has authorized to read the object.
pub(in crate::routes) fn cached_ratios(
    services: &Services,
    job: &PipelineJob,
    object: ObjectId,
    stages: impl IntoIterator<Item = usize>,
) -> CachedRatios {
    let sample = job.cache_sample(object);
    let ratio = |stage| {
        let stage = sample.prefixes.last_deterministic(stage);
        let ratio = services.cache.cached_ratio(&sample, stage);
        (ratio > 0.0).then_some((u8::try_from(stage).ok()?, ratio))
    };
    stages.into_iter().filter_map(ratio).collect()
}

impl<'a> ValueLookup<'a> {
    /// `None` if an answer to this request must not be shared.
    pub(super) fn new(
        services: &'a Services,
        job: &'a PipelineJob,
        request: &OriginRequest,
        hints: &'a SampleHints<'a>,
    ) -> Option<Self> {
        if !request.is_shareable() {
            return None;
        }
        let (object, required) = (request.object_id(), request.required_version().cloned());
        let known = services.cache.known_object(&object);
        let is_accepted = |known: &Arc<SourceHead>| required.as_ref().is_none_or(|etag| *etag == known.etag);
        Some(Self {
            services,
            job,
            hints,
            known: known.filter(is_accepted),
            required,
            sample: job.cache_sample(object),
        })
    }

    pub(super) const fn object(&self) -> ObjectId {
        self.sample.object
    }

    pub(super) fn sample(&self) -> CacheSample {
        self.sample.clone()
    }

    /// The stage of the answer, as far as it is known before the object is read.
    fn stage(&self) -> Option<usize> {
        let known = self.known.as_ref().map(|source| &source.kind);
        self.job.stage_for(known).filter(|stage| *stage > 0)
    }

    /// The cached value for a request whose authorization the operator allows to remember.
    pub(super) fn remembered(&self, request: &OriginRequest) -> Option<OpenedSample> {
        let authorization = self.services.cache.recall(request)?;
        let source = self.known.as_ref()?;
        let candidate = self.cached_at(&source.etag, self.stage()?)?;
        if !authorization.covers(&self.object(), &source.etag) {
            return None;
        }
        let cached = CachedSample::new(
            candidate,
            self.sample(),
            authorization,
            request.clone(),
            Duration::ZERO,
        );
        let start = Start::Cached(Box::new(cached));
        Some(OpenedSample::without_answer(source, start))
    }

    /// Whether the stage of an answer from this object is the one for which the request entered a flight.
    pub(super) fn has_flight_stage(&self, object: &BytesKind) -> bool {
        self.job.stage_for(Some(object)) == self.stage()
    }

    /// A value that may be cached, for the version that the gateway or the caller saw last.
    pub(super) fn candidate(&self) -> Option<Candidate> {
        let etag = match (&self.known, self.hints.etag) {
            (Some(known), _) => &known.etag,
            // An answer to a GET also needs the headers of the object.
            (None, Some(etag)) if self.hints.is_row => etag,
            (None, _) => return None,
        };
        self.cached_at(etag, self.stage()?)
    }

    /// The cached value with the most steps for an answer at `stage`.
    fn cached_at(&self, etag: &HeaderValue, stage: usize) -> Option<Candidate> {
        // Whether a value of unknown size is too large shows only at the end, when the object is needed instead.
        let is_exact = self.job.max_bytes.is_some() && self.job.pipeline.kinds()[stage].bytes().is_none();
        let first = if is_exact { stage } else { 1 };
        self.services.cache.find(&self.sample, etag, first..=stage)
    }

    /// Whether steps that are the same for every request are left after a cached value.
    pub(super) fn has_steps_after(&self, candidate: &Candidate) -> bool {
        let stage = self.stage().unwrap_or_default();
        self.known_at(&candidate.etag).is_some()
            && candidate.stage < self.sample.prefixes.last_deterministic(stage)
    }

    /// Publishes the computation of an opened sample to later requests, if it is for the stage of the flight.
    pub(super) fn publish(
        &self,
        opened: OpenedSample,
        leader: FlightLeader,
        request: &OriginRequest,
    ) -> OpenedSample {
        if !self.has_flight_stage(&opened.kind) {
            return opened;
        }
        let known = self.services.cache.known_object(&self.object());
        opened.publish(leader, known, request, self.job, self.hints.is_row)
    }

    /// What this request is to a flight that it joins.
    pub(super) const fn follower_kind(&self) -> WaiterKind {
        WaiterKind {
            is_leader: false,
            is_row: self.hints.is_row,
        }
    }

    /// Joins the computation of the same value by another request, or begins one.
    pub(super) async fn enter_flight(&self) -> FlightRole {
        let Some(key) = self.stage().and_then(|stage| self.flight_key(stage)) else {
            return FlightRole::Single;
        };
        // The time of a refusal would otherwise tell tenants who trust nobody that others read the same object.
        let wait = match self.services.cache.scope() {
            Scope::Shared => LeaderWait::Short,
            Scope::Tenant => LeaderWait::None,
        };
        self.services.flights.enter(key, self.object(), wait).await
    }

    /// Digest of everything but the version of the object that determines the value, and of the version that the request requires.
    /// `None` for a value that may be too large for this request alone.
    fn flight_key(&self, stage: usize) -> Option<Digest> {
        let job = self.job;
        let kind = &job.pipeline.kinds()[stage];
        if matches!(kind, Kind::Table(_)) || job.max_bytes.is_some() && kind.bytes().is_none() {
            return None;
        }
        let tenant = self.services.cache.scope_of(job.position.tenant());
        let prefix = self.sample.prefixes.digest(stage)?;
        let mut parts = vec![
            self.object().digest().as_bytes().to_vec(),
            prefix.as_bytes().to_vec(),
            tenant.as_bytes().to_vec(),
        ];
        if job.pipeline.is_random(stage) {
            parts.push(job.seed.unwrap_or_default().to_le_bytes().to_vec());
            parts.push(job.epoch.unwrap_or_default().to_le_bytes().to_vec());
            parts.push(job.sample_id.clone());
        }
        parts.extend(self.required.as_ref().map(|etag| etag.as_bytes().to_vec()));
        Some(Digest::from_parts(parts))
    }

    /// The store's authorization in an answer to this request.
    pub(super) fn authorization(&self, answer: &OriginObject) -> Option<Authorization> {
        Authorization::from_answer(self.object(), answer)
    }

    /// The same, if it is for the version `etag`. A store that ignores the condition sends the object with this ETag.
    pub(super) fn authorization_for(
        &self,
        answer: &OriginObject,
        etag: &HeaderValue,
    ) -> Option<Authorization> {
        self.authorization(answer)
            .filter(|authorization| authorization.covers(&self.object(), etag))
    }

    /// Forgets an object that the store no longer has. After a 403 it may still be there for others.
    pub(super) fn refused(&self, status: StatusCode) {
        if status == StatusCode::NOT_FOUND {
            self.services.cache.forget(&self.object());
        }
    }

    /// Counts the request, which the store has authorized, for the quota of its data set.
    pub(super) fn observe(&self, object: &BytesKind) {
        if self.services.cache.is_on()
            && let Some(stage) = self.job.stage_for(Some(object))
        {
            self.services
                .cache
                .observe_request(&self.sample, stage, self.hints.plans);
        }
    }

    /// The version that the gateway read last, if it is this one.
    pub(super) fn known_at(&self, etag: &HeaderValue) -> Option<Arc<SourceHead>> {
        self.known.clone().filter(|known| known.etag == *etag)
    }

    /// Remembers the object that the store has sent. If a value of this version is cached, that is used, and the rest of the
    /// object is not read.
    pub(super) async fn prefer_cached(
        &self,
        opened: OpenedSample,
        request: &OriginRequest,
        authorization: Authorization,
        store_time: Duration,
    ) -> OpenedSample {
        let mut opened = opened.with_cache_key(&self.services.cache, self.sample(), &authorization);
        if !self.services.cache.is_on() {
            return opened;
        }
        self.observe(&opened.kind);
        let stage = self.job.stage_for(Some(&opened.kind)).filter(|stage| *stage > 0);
        let etag = opened.headers.get(header::ETAG);
        let candidate = stage
            .zip(etag)
            .and_then(|(stage, etag)| self.cached_at(etag, stage));
        if let Some(candidate) = candidate {
            let cached = CachedSample::new(
                candidate,
                self.sample(),
                authorization,
                request.clone(),
                store_time,
            );
            let start = std::mem::replace(&mut opened.start, Start::Cached(Box::new(cached)));
            if let Start::Object(stream) = start {
                stream.drain().await;
            }
        }
        opened
    }
}
