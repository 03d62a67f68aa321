//! Where the value of a sample may be already: in the result cache, or in flight.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use pushdown::{BytesKind, Kind, pipeline::Digest};
use tokio::time::Instant;

use super::source::{
    CachedSource, FlightFollower, FlightLeader, FlightRole, FlightSource, OpenedSample, Source, SourceRead,
};
use crate::{
    cache::{CacheSample, Candidate, Hints, LeaderWait, SourceHead, ValueKey},
    config::Scope,
    error::Result,
    origin::{Authorization, OriginObject, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob, stage::StagedJob},
};

/// What the caller says about a sample. Nothing in it is trusted: it only tells where to look.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::routes) struct SampleHints<'a> {
    /// The ETag of the object in the caller's listing.
    pub(in crate::routes) etag: Option<&'a HeaderValue>,
    /// What the caller plans.
    pub(in crate::routes) plans: Option<Hints>,
    /// How long the values of the data set are to stay in the result cache.
    pub(in crate::routes) keep: Option<Duration>,
}

/// Looks for the value of a sample among those that other requests have computed or compute.
#[derive(Debug)]
pub(super) struct ValueLookup<'a> {
    services: &'a Arc<Services>,
    job: &'a Arc<PipelineJob>,
    request: &'a OriginRequest,
    hints: &'a SampleHints<'a>,
    sample: CacheSample,
    is_shareable: bool,
    /// The version that the request requires, as that of a member of a shard does.
    required: Option<HeaderValue>,
    /// The version that the gateway read last, if it is not another one than the required one.
    known: Option<Arc<SourceHead>>,
    /// What was decided from it.
    staged: Option<Arc<StagedJob>>,
    /// The stage of the answer, as far as it is known before the object is read; `None` for the stored object, and if the answer
    /// must not be shared.
    stage: Option<usize>,
}

/// What the request to the store is conditional on: then the store only says whether the caller may have it.
#[derive(Debug)]
pub(super) enum Condition {
    /// A value that may be cached.
    Cached(Candidate),
    /// A value that another request computes.
    Flight(FlightFollower),
}

impl Condition {
    /// The version of the object.
    pub(super) fn etag(&self) -> &HeaderValue {
        match self {
            Self::Cached(candidate) => &candidate.etag,
            Self::Flight(follower) => follower.etag(),
        }
    }
}

impl<'a> ValueLookup<'a> {
    /// A lookup that finds nothing if an answer to the request must not be shared.
    pub(super) fn new(
        services: &'a Arc<Services>,
        job: &'a Arc<PipelineJob>,
        request: &'a OriginRequest,
        hints: &'a SampleHints<'a>,
    ) -> Self {
        let is_shareable = request.is_shareable() && job.accepts_others();
        let (object, required) = (request.object_id(), request.required_version().cloned());
        let known = services
            .cache
            .known_object(&object)
            .filter(|known| is_shareable && required.as_ref().is_none_or(|etag| *etag == known.etag));
        let staged = known
            .as_ref()
            .and_then(|known| StagedJob::decide(services, job, &known.kind).ok())
            .map(Arc::new);
        let stage = match (&known, &staged) {
            (Some(_), staged) => staged.as_ref().map(|staged| staged.stage),
            (None, _) => job.stage_from_text(),
        };
        Self {
            services,
            job,
            request,
            hints,
            sample: job.cache_sample(object),
            required,
            known,
            staged,
            stage: stage.filter(|stage| is_shareable && *stage > 0),
            is_shareable,
        }
    }

    /// Decides the stage for an object, unless that was done when the same was known of it.
    pub(super) fn decide(&self, object: &BytesKind) -> Result<Arc<StagedJob>> {
        match (&self.known, &self.staged) {
            (Some(known), Some(staged)) if known.kind == *object => Ok(Arc::clone(staged)),
            _ => StagedJob::decide(self.services, self.job, object).map(Arc::new),
        }
    }

    /// The key of the values of the object.
    pub(super) fn sample(&self) -> CacheSample {
        self.sample.clone()
    }

    /// The cached value of the version in `headers`, with the most steps for an answer at `stage`.
    pub(super) fn cached_version(
        &self,
        headers: &HeaderMap,
        stage: usize,
        authorization: Authorization,
        store_time: Duration,
    ) -> Option<Source> {
        if stage == 0 {
            return None;
        }
        let candidate = self.cached_at(headers.get(header::ETAG)?, stage)?;
        Some(self.cached_source(candidate, authorization, store_time))
    }

    /// The value of a version that may be cached, with the most steps for an answer at `stage`.
    fn cached_at(&self, etag: &HeaderValue, stage: usize) -> Option<Candidate> {
        // Whether a value of unknown size is too large shows only at the end, when the object is needed instead.
        let is_exact = self.job.max_bytes.is_some() && self.job.pipeline.kinds()[stage].bytes().is_none();
        let first = if is_exact { stage } else { 1 };
        self.services.cache.find(&self.sample, etag, first..=stage)
    }

    /// A value that may be cached, for the version that the gateway or the caller saw last.
    pub(super) fn candidate(&self) -> Option<Candidate> {
        let etag = match (&self.known, self.hints.etag) {
            (Some(known), _) => &known.etag,
            // An answer to a GET also needs the headers of the object.
            (None, Some(etag)) if self.job.is_row => etag,
            (None, _) => return None,
        };
        self.cached_at(etag, self.stage?)
    }

    /// The sample with the cached value of `candidate`, if the operator allows to remember the authorization of the request.
    pub(super) fn remembered(&self, candidate: &Candidate) -> Option<OpenedSample> {
        let authorization = self.services.cache.recall(self.request)?;
        let (source, staged) = self.known.as_ref().zip(self.staged.as_ref())?;
        if !authorization.covers(&self.sample.object, &source.etag) {
            return None;
        }
        self.observe(staged.stage);
        Some(OpenedSample {
            headers: source.headers_with(&HeaderMap::new()),
            length: Some(source.length),
            kind: source.kind,
            timing: Timing::default(),
            staged: Arc::clone(staged),
            source: self.cached_source(candidate.clone(), authorization, Duration::ZERO),
        })
    }

    /// Whether steps that are the same for every request are left after a cached value.
    pub(super) fn has_steps_after(&self, candidate: &Candidate) -> bool {
        let stage = self.stage.unwrap_or_default();
        self.known_at(&candidate.etag).is_some()
            && candidate.stage < self.sample.prefixes.last_deterministic(stage)
    }

    /// Joins the computation of the same value by another request, or begins one.
    pub(super) async fn enter_flight(&self) -> FlightRole {
        let Some(key) = self.stage.and_then(|stage| self.flight_key(stage)) else {
            return FlightRole::Single;
        };
        // The time of a refusal would otherwise tell tenants who trust nobody that others read the same object.
        let wait = match self.services.cache.scope() {
            Scope::Shared => LeaderWait::Short,
            Scope::Tenant => LeaderWait::None,
        };
        self.services.flights.enter(key, self.sample.object, wait).await
    }

    /// The sample, if the store's answer authorizes this request to have what the request was conditional on.
    ///
    /// # Errors
    /// For an object that a step cannot process.
    pub(super) fn authorized(
        &self,
        condition: Condition,
        answer: &OriginObject,
        started: Instant,
    ) -> Result<Option<OpenedSample>> {
        // A store that ignores the condition sends the object with this ETag.
        let authorization = self.authorization(answer);
        let authorization = authorization.filter(|found| found.covers(&self.sample.object, condition.etag()));
        let Some(authorization) = authorization else {
            return Ok(None);
        };
        let cache = &self.services.cache;
        cache.remember_authorization(self.request, &authorization);
        let (staged, known, source) = match condition {
            Condition::Cached(candidate) => {
                let known = self.known_at(&candidate.etag).cloned();
                let kind = known.as_ref().map_or_else(BytesKind::default, |known| known.kind);
                let source = self.cached_source(candidate, authorization, started.elapsed());
                (self.decide(&kind)?, known, source)
            }
            Condition::Flight(follower) => {
                let etag = follower.etag().clone();
                let tenant = self.job.position.tenant();
                let Some(waiter) = follower.join(&self.sample.object, &authorization, tenant) else {
                    return Ok(None);
                };
                let known = Arc::clone(waiter.source());
                let staged = self.decide(&known.kind).ok();
                // Of another kind than the version that this request knew: its stage may be another one.
                let Some(staged) = staged.filter(|staged| self.has_flight_stage(staged)) else {
                    return Ok(None);
                };
                let source = FlightSource {
                    waiter,
                    authorization,
                    read: self.read(etag),
                    is_leader: false,
                };
                (staged, Some(known), Source::Flight(Box::new(source)))
            }
        };
        self.observe(staged.stage);
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(Some(OpenedSample {
            // A 304 lacks headers of the object; a 200 has all of them.
            headers: match &known {
                Some(known) if answer.status == StatusCode::NOT_MODIFIED => {
                    known.headers_with(&answer.headers)
                }
                _ => answer.headers.clone(),
            },
            length: known.as_ref().map(|known| known.length),
            kind: known.map_or_else(BytesKind::default, |known| known.kind),
            timing,
            staged,
            source,
        }))
    }

    /// The cached value of a version that the store has authorized this request to read.
    fn cached_source(
        &self,
        candidate: Candidate,
        authorization: Authorization,
        store_time: Duration,
    ) -> Source {
        Source::Cached(Box::new(CachedSource {
            read: self.read(candidate.etag.clone()),
            candidate,
            authorization,
            store_time,
        }))
    }

    /// Publishes the computation of an opened sample to the flight that this request leads, if it leads one for this stage. Then
    /// later requests can join it.
    pub(super) fn publish(&self, opened: OpenedSample, leader: Option<FlightLeader>) -> OpenedSample {
        let Some(leader) = leader.filter(|_| self.has_flight_stage(&opened.staged)) else {
            return opened;
        };
        let publish = |source, start, authorization, read| {
            let waiter = leader.publish(source, start, self.job.position.tenant());
            Source::Flight(Box::new(FlightSource {
                waiter,
                authorization,
                read,
                is_leader: true,
            }))
        };
        let source = match opened.source {
            Source::Object(stream) => match (&stream.source, &stream.sample) {
                (Some(source), Some((_, authorization))) => {
                    let (source, authorization) = (Arc::clone(source), authorization.clone());
                    let read = self.read(source.etag.clone());
                    publish(source, Source::Object(stream), authorization, read)
                }
                _ => Source::Object(stream),
            },
            Source::Cached(cached) => {
                let known = self.services.cache.known_object(&self.sample.object);
                match known.filter(|known| known.etag == cached.candidate.etag) {
                    Some(known) => {
                        let (authorization, read) = (cached.authorization.clone(), cached.read.clone());
                        publish(known, Source::Cached(cached), authorization, read)
                    }
                    None => Source::Cached(cached),
                }
            }
            source @ Source::Flight(_) => source,
        };
        OpenedSample { source, ..opened }
    }

    /// The store's authorization in an answer to this request; `None` if the answer must not be shared.
    pub(super) fn authorization(&self, answer: &OriginObject) -> Option<Authorization> {
        let authorization = Authorization::from_answer(self.sample.object, answer);
        authorization.filter(|_| self.is_shareable)
    }

    /// Forgets an object that the store no longer has. After a 403 it may still be there for others.
    pub(super) fn refused(&self, status: StatusCode) {
        if self.is_shareable && status == StatusCode::NOT_FOUND {
            self.services.cache.forget(&self.sample.object);
        }
    }

    /// Counts the request, which the store has authorized, for the quota of its data set.
    pub(super) fn observe(&self, stage: usize) {
        let SampleHints { plans, keep, .. } = *self.hints;
        self.services
            .cache
            .observe_request(&self.sample, stage, plans, keep);
    }

    /// Another read of the object, if its value at `etag` is gone.
    fn read(&self, etag: HeaderValue) -> SourceRead {
        SourceRead {
            request: self.request.clone(),
            etag,
            sample: self.sample.clone(),
        }
    }

    /// The version that the gateway read last, if it is this one.
    fn known_at(&self, etag: &HeaderValue) -> Option<&Arc<SourceHead>> {
        self.known.as_ref().filter(|known| known.etag == *etag)
    }

    /// Whether the answer is at the stage for which the request entered a flight.
    fn has_flight_stage(&self, staged: &StagedJob) -> bool {
        self.stage == Some(staged.stage)
    }

    /// The key of everything but the version of the object that determines the value, and of the version that the request requires.
    /// `None` for a value that may be too large for this request alone.
    fn flight_key(&self, stage: usize) -> Option<ValueKey> {
        let job = self.job;
        let kind = &job.pipeline.kinds()[stage];
        if matches!(kind, Kind::Table(_)) || job.max_bytes.is_some() && kind.bytes().is_none() {
            return None;
        }
        let tenant = self.services.cache.scope_of(job.position.tenant());
        let prefix = self.sample.prefixes.digest(stage)?;
        let mut parts = vec![
            self.sample.object.digest().as_bytes().to_vec(),
            prefix.as_bytes().to_vec(),
            tenant.as_bytes().to_vec(),
        ];
        if job.pipeline.is_random(stage) {
            parts.push(job.seed.unwrap_or_default().to_le_bytes().to_vec());
            parts.push(job.epoch.unwrap_or_default().to_le_bytes().to_vec());
            parts.push(job.sample_id.clone());
        }
        parts.extend(self.required.as_ref().map(|etag| etag.as_bytes().to_vec()));
        Some(ValueKey::from(Digest::from_parts(parts)))
    }
}
