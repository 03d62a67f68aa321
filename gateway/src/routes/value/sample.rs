//! One sample: opened on the caller's behalf, admitted to memory, and read.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pushdown::{BytesKind, Kind};
use tokio::time::Instant;

use super::{
    cached::{CachedSample, ReleasedValue},
    flight::{AdmittedFlight, FlightLeader, FlightSample, FlightStart, WaiterKind},
    object_head::ObjectHead,
    source_read::SourceRead,
};
use crate::{
    body::Body,
    cache::{CacheSample, ResultCache, SourceHead},
    compute::Permit,
    error::Result,
    origin::{self, Authorization, OriginObject, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// A sample that the store has authorized the caller to read.
#[derive(Debug)]
pub(in crate::routes) struct OpenedSample {
    /// The store's answer without its body.
    pub(in crate::routes) headers: HeaderMap,
    /// Length of the object in bytes; `None` for a cached value whose object this gateway has not read.
    pub(in crate::routes) length: Option<u64>,
    /// What its first bytes show.
    pub(in crate::routes) kind: BytesKind,
    pub(in crate::routes) timing: Timing,
    pub(super) start: Start,
}

/// What the value is computed from.
#[derive(Debug)]
pub(super) enum Start {
    /// The object, whose first bytes have been read. The rest is still at the store.
    Object(Box<ObjectStream>),
    /// A value in the result cache.
    Cached(Box<CachedSample>),
    /// A computation that others may wait for, too.
    Flight(Box<FlightSample>),
}

/// The bytes of an object.
#[derive(Debug)]
pub(in crate::routes) struct ObjectStream {
    /// What answers and cached values need of the object; `None` if its values must not be shared.
    pub(super) source: Option<Arc<SourceHead>>,
    /// The key of its values in the result cache, and the store's authorization; `None` if they must not be shared.
    pub(super) sample: Option<(CacheSample, Authorization)>,
    length: u64,
    head: ObjectHead,
    body: Body,
    /// Time until the first bytes came.
    pub(super) origin_time: Duration,
}

/// A sample with a memory reservation.
#[derive(Debug)]
pub(in crate::routes) struct AdmittedSample {
    pub(super) timing: Timing,
    pub(super) start: AdmittedStart,
}

#[derive(Debug)]
pub(super) enum AdmittedStart {
    /// The permit covers only the source if the memory of the steps was unknown: the header was not in the first bytes.
    Object(ObjectStream, Permit),
    Cached(ReleasedValue, Permit),
    /// A waiter of the flight has memory.
    Flight(AdmittedFlight),
}

impl OpenedSample {
    /// Reads the first bytes of the store's answer with the status 200, to estimate the memory for the rest.
    pub(super) async fn open(services: &Services, object: OriginObject, started: Instant) -> Result<Self> {
        let length = services.check_length(&object)?;
        let mut body = object.body;
        let (head, header) = ObjectHead::read(&mut body).await?;
        let kind = BytesKind {
            length: Some(length),
            media: header.map(|header| header.media),
            header,
        };
        let origin_time = started.elapsed();
        let mut timing = Timing::default();
        timing.add("origin", origin_time);
        let source = SourceHead::new(length, kind, &object.headers).map(Arc::new);
        Ok(Self {
            headers: object.headers,
            length: Some(length),
            kind,
            timing,
            start: Start::Object(Box::new(ObjectStream {
                source,
                sample: None,
                length,
                head,
                body,
                origin_time,
            })),
        })
    }

    /// A sample whose object the store has authorized the caller to read, without sending it. `source` is the object, as far
    /// as the gateway knows it.
    pub(super) fn without_body(
        answer: &OriginObject,
        source: Option<&SourceHead>,
        start: Start,
        started: Instant,
    ) -> Self {
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Self {
            // A 304 lacks headers of the object; a 200 has all of them.
            headers: match source {
                Some(source) if answer.status == StatusCode::NOT_MODIFIED => {
                    source.headers_with(&answer.headers)
                }
                _ => answer.headers.clone(),
            },
            length: source.map(|source| source.length),
            kind: source.map_or_else(BytesKind::default, |source| source.kind),
            timing,
            start,
        }
    }

    /// A sample of a request that the store is not asked about.
    pub(super) fn without_answer(source: &SourceHead, start: Start) -> Self {
        Self {
            headers: source.headers_with(&HeaderMap::new()),
            length: Some(source.length),
            kind: source.kind,
            timing: Timing::default(),
            start,
        }
    }

    /// Publishes the computation of the value to the flight that this request leads, so that later requests can join it.
    /// `known` is the version of the object that the gateway read last.
    pub(super) fn publish(
        self,
        leader: FlightLeader,
        known: Option<Arc<SourceHead>>,
        request: &OriginRequest,
        job: &PipelineJob,
        is_row: bool,
    ) -> Self {
        let kind = WaiterKind {
            is_leader: true,
            is_row,
        };
        let publish = |source, start, authorization, read| {
            let waiter = leader.publish(source, start, job.position.tenant());
            let sample = FlightSample::new(waiter, authorization, read, kind);
            Start::Flight(Box::new(sample))
        };
        let start = match self.start {
            Start::Object(stream) => match (&stream.source, &stream.sample) {
                (Some(source), Some((sample, authorization))) => {
                    let (source, authorization) = (Arc::clone(source), authorization.clone());
                    let read = SourceRead::new(request.clone(), source.etag.clone(), sample.clone());
                    publish(source, FlightStart::Object(stream), authorization, read)
                }
                _ => Start::Object(stream),
            },
            Start::Cached(cached) => {
                let (etag, authorization, read) = cached.flight_parts();
                match known.filter(|known| known.etag == *etag) {
                    Some(source) => publish(source, FlightStart::Cached(cached), authorization, read),
                    None => Start::Cached(cached),
                }
            }
            start @ Start::Flight(_) => start,
        };
        Self { start, ..self }
    }

    /// The same, with the key of the object's values in `cache`, which remembers the version of the object.
    pub(super) fn with_cache_key(
        mut self,
        cache: &ResultCache,
        sample: CacheSample,
        authorization: &Authorization,
    ) -> Self {
        if let Start::Object(stream) = &mut self.start
            && let Some(source) = &stream.source
        {
            cache.remember(sample.object, source);
            stream.sample = Some((sample, authorization.clone()));
        }
        self
    }

    /// The stored object, if it was opened: its first bytes, and the stream of the rest.
    pub(in crate::routes) fn into_object(self) -> Option<(Bytes, Body)> {
        match self.start {
            Start::Object(stream) => Some((stream.head.into_bytes(), stream.body)),
            Start::Cached(_) | Start::Flight(_) => None,
        }
    }

    /// Waits for the memory of source, pixels and output. Acquires all of it at once, so that no two samples wait for each
    /// other (deadlock). The rest of the object stays at the store during the wait.
    pub(in crate::routes) async fn admit(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<AdmittedSample> {
        prepared.check(services, job, &Kind::Bytes(self.kind))?;
        let (mut timing, queued) = (self.timing, Instant::now());
        let bytes =
            self.length.unwrap_or_default() + prepared.peak_memory.map_or(0, |peak| peak.working_bytes);
        let start = match self.start {
            Start::Object(stream) => {
                let permit = services.memory.acquire(job.position.tenant(), bytes).await?;
                AdmittedStart::Object(*stream, permit)
            }
            Start::Cached(cached) => return cached.admit(services, job, prepared, self.kind, timing).await,
            Start::Flight(flight) => return flight.admit(services, job, prepared, bytes, timing).await,
        };
        timing.add("queue", queued.elapsed());
        Ok(AdmittedSample { timing, start })
    }
}

impl ObjectStream {
    /// Key and head for values of the object in the result cache; `None` if they must not be cached.
    pub(super) fn cacheable(&self) -> Option<(CacheSample, Arc<SourceHead>)> {
        let (sample, _) = self.sample.as_ref()?;
        Some((sample.clone(), Arc::clone(self.source.as_ref()?)))
    }

    /// Reads the rest of a small object that is not needed, so that its connection can be used again.
    pub(super) async fn drain(mut self) {
        if self.length <= origin::MAX_DRAINED_BYTES {
            while let Ok(Some(_)) = origin::next_bytes(&mut self.body).await {}
        }
    }

    /// Reads the rest of the object. Returns it with the permit for its bytes and those of the steps, and
    /// with the times so far.
    pub(super) async fn read(
        self,
        mut permit: Permit,
        mut timing: Timing,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<(Bytes, Permit, Timing)> {
        let (head, mut body, reading) = (self.head, self.body, Instant::now());
        let source = origin::read_to_end(head.bytes(), &mut body, self.length).await?;
        drop(head);
        timing.add("read", reading.elapsed());
        if prepared.peak_memory.is_none() {
            let object = Kind::of_object(Some(source.len() as u64), &source);
            let prepared = prepared.with_peak_memory(job, &object);
            prepared.check(services, job, &object)?;
            // Without a known header, decoding will fail, or the value is small.
            let bytes = prepared
                .peak_memory
                .map_or(source.len() as u64, |peak| peak.working_bytes);
            services.memory.grow(&mut permit, bytes)?;
        }
        Ok((source, permit, timing))
    }
}
