//! What the value of a sample is computed from: the object, a cached value, or a flight that several requests wait for.
//!
//! Each source waits for the memory that it needs, and then computes. If a flight or a cached value is gone by then, the request
//! goes on with the next source: a flight with a cached value or the object, a cached value with the object.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode};
use pushdown::{BytesKind, ImageHeader, Kind, Sample, limits::HEADER_BYTES};
use tokio::time::Instant;

use super::compute::{ComputedValue, FirstValue, ValueOrigin};
use crate::{
    body::Body,
    cache::{
        CacheSample, Candidate, Flights, Follower, Hit, Leader, MAX_ENTRY_BYTES, ResultCache, Role,
        SourceHead, Waiter,
    },
    compute::Permit,
    error::{Error, ErrorKind, Result},
    origin::{self, Authorization, OriginRequest, next_bytes},
    routes::{
        Services,
        http::{StoreRefusal, Timing},
        stage::StagedJob,
    },
};

/// A sample that the store has authorized the caller to read.
#[derive(Debug)]
pub(in crate::routes) struct OpenedSample {
    pub(in crate::routes) staged: Arc<StagedJob>,
    /// The store's answer without its body.
    pub(in crate::routes) headers: HeaderMap,
    /// Length of the object in bytes; `None` for a cached value whose object this gateway has not read.
    pub(in crate::routes) length: Option<u64>,
    /// What its first bytes show.
    pub(super) kind: BytesKind,
    pub(in crate::routes) timing: Timing,
    pub(super) source: Source,
}

/// What the value is computed from.
#[derive(Debug)]
pub(in crate::routes) enum Source<F = FlightSource> {
    /// The object, whose first bytes have been read. The rest is still at the store.
    Object(Box<ObjectStream>),
    /// A value in the result cache.
    Cached(Box<CachedSource>),
    /// A computation that others may wait for, too.
    Flight(Box<F>),
}

/// What a flight starts from: what the store has sent or authorized for the leader, never another flight.
pub(in crate::routes) type FlightStart = Source<Infallible>;
/// The result of a flight, with the memory of the value.
type FlightResult = Result<ComputedValue<Permit>>;
pub(in crate::routes) type ValueFlights = Flights<FlightStart, FlightResult>;
pub(super) type FlightRole = Role<FlightStart, FlightResult>;
pub(super) type FlightLeader = Leader<FlightStart, FlightResult>;
pub(super) type FlightFollower = Follower<FlightStart, FlightResult>;
type FlightWaiter = Waiter<FlightStart, FlightResult>;

/// The value of a sample, and its memory.
pub(in crate::routes) type ComputedSample = ComputedValue<ValueMemory>;

/// Holds the memory of a value until it is sent.
#[derive(Debug)]
pub(in crate::routes) enum ValueMemory {
    Own(Permit),
    Shared(FlightValue),
}

/// The value of a flight and its memory, held by all requests that send it.
#[derive(Debug)]
pub(in crate::routes) struct FlightValue {
    result: Arc<FlightResult>,
    /// As long as the value is being sent, further requests can join.
    waiter: FlightWaiter,
}

/// The bytes of an object.
#[derive(Debug)]
pub(in crate::routes) struct ObjectStream {
    /// What its first bytes show.
    pub(super) kind: BytesKind,
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

/// A cached value that the store has authorized the caller to have. It may be gone by the time there is memory for it.
#[derive(Debug)]
pub(in crate::routes) struct CachedSource {
    pub(super) candidate: Candidate,
    pub(super) authorization: Authorization,
    /// Reads the object, if the value is gone.
    pub(super) read: SourceRead,
    /// Time of the request to the store.
    pub(super) store_time: Duration,
}

/// A value that this request or another one computes, before it has waited for memory. It holds no memory of the value.
#[derive(Debug)]
pub(in crate::routes) struct FlightSource {
    pub(super) waiter: FlightWaiter,
    pub(super) authorization: Authorization,
    /// Reads the object, if the result is gone or another request failed to read it.
    pub(super) read: SourceRead,
    /// The computation starts from what the store sent for this request.
    pub(super) is_leader: bool,
}

/// A read of the object, for a request that the store has authorized once, and whose value was cached or shared.
#[derive(Debug, Clone)]
pub(super) struct SourceRead {
    pub(super) request: OriginRequest,
    /// The version that the answer has begun to describe.
    pub(super) etag: HeaderValue,
    /// The key of the values of the object.
    pub(super) sample: CacheSample,
}

impl OpenedSample {
    /// The stored object, if it was opened: its first bytes, and the stream of the rest.
    pub(in crate::routes) fn into_object(self) -> Option<(Bytes, Body)> {
        match self.source {
            Source::Object(stream) => Some((stream.head.into_bytes(), stream.body)),
            Source::Cached(_) | Source::Flight(_) => None,
        }
    }

    /// Waits for the memory of source, pixels and output, drops `guard`, and computes the value. Acquires all memory at once, so that
    /// no two samples wait for each other (deadlock). The rest of the object stays at the store during the wait.
    pub(in crate::routes) async fn compute<G>(self, guard: G) -> Result<ComputedSample> {
        let Self {
            staged,
            length,
            kind,
            timing,
            source,
            ..
        } = self;
        staged.check(&Kind::Bytes(kind))?;
        let bytes = length.unwrap_or_default() + staged.working_bytes();
        let computed: ComputedSample = match source {
            Source::Object(stream) => stream.compute(&staged, bytes, timing, guard).await?.into(),
            Source::Cached(cached) => cached.compute(&staged, timing, guard).await?.into(),
            Source::Flight(flight) => flight.compute(&staged, bytes, timing, guard).await?,
        };
        staged.services.metrics.count_value(computed.origin.name());
        Ok(computed)
    }
}

impl ObjectStream {
    /// Reads the first bytes of the store's answer with the status 200, until the header of an image is complete: they decide about the
    /// stage, and show the memory for the rest.
    pub(super) async fn open(
        length: u64,
        headers: &HeaderMap,
        mut body: Body,
        started: Instant,
    ) -> Result<Self> {
        let mut head = ObjectHead::Single(Bytes::new());
        let mut header = None;
        while header.is_none()
            && head.bytes().len() < HEADER_BYTES
            && let Some(data) = next_bytes(&mut body).await?
        {
            head.push(data);
            // No more than these bytes decide, however many have arrived.
            let first = head.bytes();
            header = ImageHeader::read(&first[..first.len().min(HEADER_BYTES)]);
        }
        let kind = BytesKind {
            length: Some(length),
            media: header.map(|header| header.media),
            header,
        };
        Ok(Self {
            kind,
            source: SourceHead::new(length, kind, headers).map(Arc::new),
            sample: None,
            length,
            head,
            body,
            origin_time: started.elapsed(),
        })
    }

    /// Adds the key of its values in `cache`, which remembers the version of the object.
    pub(super) fn set_cache_key(
        &mut self,
        cache: &ResultCache,
        sample: CacheSample,
        authorization: Authorization,
    ) {
        if let Some(source) = &self.source {
            cache.remember(sample.object, source);
            self.sample = Some((sample, authorization));
        }
    }

    /// Reads the rest of a small object that is not needed, so that its connection can be used again.
    pub(super) async fn drain(mut self) {
        if self.length <= origin::MAX_DRAINED_BYTES {
            while let Ok(Some(_)) = next_bytes(&mut self.body).await {}
        }
    }

    /// Waits for `bytes` of memory, drops `guard`, and computes the value.
    async fn compute<G>(
        self,
        staged: &StagedJob,
        bytes: u64,
        mut timing: Timing,
        guard: G,
    ) -> Result<ComputedValue<Permit>> {
        let queued = Instant::now();
        let tenant = staged.job.position.tenant();
        let permit = staged.services.memory.acquire(tenant, bytes).await?;
        timing.add("queue", queued.elapsed());
        drop(guard);
        self.compute_with(permit, timing, staged).await
    }

    /// Reads the rest of the object, and computes the value. The permit covers only the source if the memory of the steps was
    /// unknown: the header was not in the first bytes.
    async fn compute_with(
        self,
        mut permit: Permit,
        mut timing: Timing,
        staged: &StagedJob,
    ) -> Result<ComputedValue<Permit>> {
        let (head, mut body, reading) = (self.head, self.body, Instant::now());
        let object = origin::read_to_end(head.bytes(), &mut body, self.length).await?;
        drop(head);
        let read_time = reading.elapsed();
        timing.add("read", read_time);
        if staged.peak_memory.is_none() {
            let kind = Kind::of_object(Some(object.len() as u64), &object);
            let staged = staged.with_memory_for(&kind);
            staged.check(&kind)?;
            // Without a known header, decoding will fail, or the value is small.
            let bytes = staged
                .peak_memory
                .map_or(object.len() as u64, |peak| peak.working_bytes);
            staged.services.memory.grow(&mut permit, bytes)?;
        }
        let first = FirstValue {
            sample: Sample::Bytes(object),
            stage: 0,
            time: self.origin_time + read_time,
            cacheable: self.sample.map(|(sample, _)| sample).zip(self.source),
            hit: None,
            key: None,
            origin: ValueOrigin::Computed,
        };
        first.compute(permit, timing, staged).await
    }
}

impl CachedSource {
    /// Waits for the memory of the value and of the steps that are left, takes the value out of the cache, drops `guard`, and runs
    /// these steps. If the value is gone, or larger than the request allows, the object is read.
    async fn compute<G>(
        self,
        staged: &StagedJob,
        mut timing: Timing,
        guard: G,
    ) -> Result<ComputedValue<Permit>> {
        let (queued, stage) = (Instant::now(), self.candidate.stage);
        let StagedJob { services, job, .. } = staged;
        let (kind, tenant) = (staged.kind_at(stage), job.position.tenant());
        let value_bytes = self.candidate.bytes.or_else(|| kind.bytes());
        let value_bytes =
            value_bytes.unwrap_or_else(|| services.memory.total_bytes().min(MAX_ENTRY_BYTES as u64));
        let working = job.pipeline.peak_memory(stage..staged.stage, kind);
        let bytes = value_bytes + working.map_or(0, |peak| peak.working_bytes);
        let mut permit = services.memory.acquire(tenant, bytes).await?;
        timing.add("queue", queued.elapsed());
        let loading = Instant::now();
        let Some(mut value) = self.release(staged).await else {
            drop(permit);
            return self.read.compute(staged, guard).await;
        };
        if working.is_none() {
            // The memory of value and steps follows only from the value.
            let value_kind = Kind::from(&value.sample);
            let working = job.pipeline.peak_memory(stage..staged.stage, &value_kind);
            let bytes = value.sample.bytes() + working.map_or(0, |peak| peak.working_bytes);
            if bytes > permit.bytes() {
                // Acquires all of it at once, so that no two samples wait for each other (deadlock).
                drop((value, permit));
                permit = services.memory.acquire(tenant, bytes).await?;
                let Some(again) = self.release(staged).await else {
                    drop(permit);
                    return self.read.compute(staged, guard).await;
                };
                value = again;
            } else {
                permit.shrink_to(bytes);
            }
        }
        if stage == staged.stage && job.is_too_large(value.sample.bytes()) {
            drop((permit, value));
            return self.read.compute(&staged.for_stored_object(), guard).await;
        }
        timing.add("cache", loading.elapsed());
        drop(guard);
        value.compute(permit, timing, staged).await
    }

    /// Computes the value for the waiters of a flight, with their memory for all steps from the object. If the cached value is
    /// gone, the object is read.
    async fn compute_with(self, permit: Permit, staged: &StagedJob) -> Result<ComputedValue<Permit>> {
        let Some(value) = self.release(staged).await else {
            drop(permit);
            return self.read.compute(staged, ()).await;
        };
        value.compute(permit, Timing::default(), staged).await
    }

    /// Takes the value out of the cache; `None` if it is gone.
    async fn release(&self, staged: &StagedJob) -> Option<FirstValue> {
        let (candidate, key) = (&self.candidate, &self.read.sample);
        let StagedJob { services, job, .. } = staged;
        let (kind, limits) = (staged.kind_at(candidate.stage), services.sample_limits());
        let released = services.cache.release(
            candidate,
            &key.object,
            &self.authorization,
            &job.pipeline,
            kind,
            &limits,
        );
        let value = released.await?;
        services.cache.remember(key.object, &value.source);
        let time = self.store_time + value.time;
        Some(FirstValue {
            hit: Some(Hit {
                stage: value.stage,
                bytes: value.sample.bytes(),
                cost: value.cost,
                time,
            }),
            key: Some(candidate.key()),
            sample: value.sample,
            stage: value.stage,
            time,
            cacheable: Some((key.clone(), value.source)),
            origin: if value.stage == staged.stage {
                ValueOrigin::Cached(value.level)
            } else {
                ValueOrigin::Prefix(value.stage)
            },
        })
    }
}

impl FlightSource {
    /// Waits until some waiter has the memory for the computation, this one, for `bytes`, or another one. Then drops `guard`, and
    /// waits for the value. If another request could not read the object, this one tries by itself, unless it is a row: the client
    /// tries rows again.
    ///
    /// # Errors
    /// Those of the steps, for all requests that share them.
    async fn compute<G>(
        self,
        staged: &Arc<StagedJob>,
        bytes: u64,
        mut timing: Timing,
        guard: G,
    ) -> Result<ComputedSample> {
        let queued = Instant::now();
        let Self {
            waiter,
            authorization,
            read,
            is_leader,
        } = self;
        let StagedJob { services, job, .. } = &**staged;
        let permit = tokio::select! {
            biased;
            () = waiter.started() => None,
            permit = services.memory.acquire(job.position.tenant(), bytes) => Some(permit?),
        };
        timing.add("queue", queued.elapsed());
        // Before the start: a short computation can end at once, and keeps its result only for those who wait.
        let pending = waiter.pending_result();
        let is_own = permit.is_some_and(|permit| {
            let staged = Arc::clone(staged);
            waiter.start(Result::is_ok, move |start, waiters| async move {
                let computed = match start {
                    Source::Object(stream) => stream.compute_with(permit, Timing::default(), &staged).await,
                    Source::Cached(cached) => cached.compute_with(permit, &staged).await,
                    Source::Flight(never) => match *never {},
                }?;
                let (payer, tenants) = (staged.job.position.tenant(), waiters.tenants());
                let cpu = &staged.services.cpu;
                cpu.divide_cost(payer, &tenants, computed.compute_time);
                Ok(computed)
            })
        });
        let Some(pending) = pending else {
            // All who waited have gone with the result. It may be cached since.
            drop(waiter);
            let stages = 1..=staged.stage;
            let computed = match services.cache.find(&read.sample, &read.etag, stages) {
                Some(candidate) => {
                    let cached = CachedSource {
                        candidate,
                        authorization,
                        read,
                        store_time: Duration::ZERO,
                    };
                    cached.compute(staged, timing, guard).await
                }
                None => read.compute(staged, guard).await,
            };
            return computed.map(ComputedSample::from);
        };
        drop(guard);
        let can_retry = !(job.is_row || is_own && is_leader);
        let result = pending.result().await;
        let result = result.ok_or_else(|| Error::new(ErrorKind::Internal, "a step panicked"))?;
        match &*result {
            Ok(computed) => {
                if is_own {
                    timing.extend(&computed.timing);
                }
                Ok(ComputedSample {
                    stage: computed.stage,
                    sample: computed.sample.clone(),
                    timing,
                    compute_time: if is_own {
                        computed.compute_time
                    } else {
                        Duration::ZERO
                    },
                    origin: if is_own {
                        computed.origin
                    } else {
                        ValueOrigin::Shared
                    },
                    cached: computed.cached,
                    memory: ValueMemory::Shared(FlightValue {
                        result: Arc::clone(&result),
                        waiter,
                    }),
                })
            }
            Err(error) if can_retry && error.retry_after().is_some() => {
                drop((result, waiter));
                read.compute(staged, ()).await.map(ComputedSample::from)
            }
            Err(error) => Err(error.clone()),
        }
    }
}

impl SourceRead {
    /// Opens the object, waits for the memory of source, pixels and output, drops `guard`, and computes the value.
    ///
    /// # Errors
    /// [`ErrorKind::Replaced`] if it has another version now: the answer has begun to describe the earlier one.
    async fn compute<G>(self, staged: &StagedJob, guard: G) -> Result<ComputedValue<Permit>> {
        // Boxed: rare, and larger than what it is part of.
        let opened = Box::pin(self.open(&staged.services)).await?;
        let (kind, mut timing) = (Kind::Bytes(opened.kind), Timing::default());
        timing.add("origin", opened.origin_time);
        // The memory of the steps follows from the object, which this request had not read yet.
        let staged = staged.with_memory_for(&kind);
        staged.check(&kind)?;
        let bytes = opened.length + staged.working_bytes();
        Box::pin(opened.compute(&staged, bytes, timing, guard)).await
    }

    async fn open(self, services: &Services) -> Result<ObjectStream> {
        let started = Instant::now();
        let answer = services.origin.read(self.request).await?;
        if answer.status != StatusCode::OK {
            return Err(StoreRefusal::read(answer).await.into());
        }
        let authorization = Authorization::from_answer(self.sample.object, &answer);
        let length = services.check_length(&answer)?;
        let mut opened = ObjectStream::open(length, &answer.headers, answer.body, started).await?;
        let is_same_version = authorization
            .as_ref()
            .is_some_and(|found| found.covers(&self.sample.object, &self.etag));
        if let Some(authorization) = authorization {
            opened.set_cache_key(&services.cache, self.sample, authorization);
        }
        if !is_same_version {
            return Err(Error::new(
                ErrorKind::Replaced,
                "the object was replaced while it was read; try again",
            ));
        }
        Ok(opened)
    }
}

impl ValueMemory {
    /// Whether other requests have the value, or can still have it.
    pub(in crate::routes) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// The same memory, no longer shared if no other request has the value: then none can join any more.
    pub(in crate::routes) fn into_own(self) -> Self {
        match self {
            Self::Own(permit) => Self::Own(permit),
            Self::Shared(value) => value.into_memory().map_or_else(Self::Shared, Self::Own),
        }
    }
}

impl FlightValue {
    /// The memory of the value alone, if no other request has it.
    fn into_memory(self) -> std::result::Result<Permit, Self> {
        let Self { result, waiter } = self;
        match Arc::try_unwrap(result) {
            Ok(Ok(computed)) => Ok(computed.memory),
            // Only a computation with a value is in this struct.
            Ok(failed) => Err(Self {
                result: Arc::new(failed),
                waiter,
            }),
            Err(result) => Err(Self { result, waiter }),
        }
    }
}

impl From<ComputedValue<Permit>> for ComputedSample {
    fn from(computed: ComputedValue<Permit>) -> Self {
        Self {
            stage: computed.stage,
            sample: computed.sample,
            memory: ValueMemory::Own(computed.memory),
            timing: computed.timing,
            compute_time: computed.compute_time,
            origin: computed.origin,
            cached: computed.cached,
        }
    }
}

/// The first bytes of an object: usually a single piece, else several pieces joined.
#[derive(Debug)]
enum ObjectHead {
    Single(Bytes),
    Joined(BytesMut),
}

impl ObjectHead {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Single(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Single(bytes) => bytes,
            Self::Joined(bytes) => bytes.freeze(),
        }
    }

    fn push(&mut self, data: Bytes) {
        match self {
            Self::Single(first) if first.is_empty() => *first = data,
            Self::Single(first) => {
                let mut joined = BytesMut::from(&**first);
                joined.extend_from_slice(&data);
                *self = Self::Joined(joined);
            }
            Self::Joined(joined) => joined.extend_from_slice(&data),
        }
    }
}
