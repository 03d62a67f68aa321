//! A sample in flight: several requests wait for one computation, from an object or from a cached value before the last one.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    cached::CachedSample,
    compute::compute_object,
    computed::{ComputedSample, ValueMemory},
    sample::{AdmittedSample, AdmittedStart, ObjectStream},
    source_read::SourceRead,
};
use crate::{
    cache::{Flights, Follower, Leader, PendingResult, Role, Waiter},
    error::{Error, ErrorKind, Result},
    origin::Authorization,
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// The result of a computation, with the memory of the value.
pub(in crate::routes) type FlightResult = Result<ComputedSample>;
pub(in crate::routes) type ValueFlights = Flights<FlightStart, FlightResult>;
pub(super) type FlightRole = Role<FlightStart, FlightResult>;
pub(super) type FlightLeader = Leader<FlightStart, FlightResult>;
pub(super) type FlightFollower = Follower<FlightStart, FlightResult>;
type FlightWaiter = Waiter<FlightStart, FlightResult>;

/// What the waiters of a flight compute from: what the store has sent or authorized for the leader.
#[derive(Debug)]
pub(in crate::routes) enum FlightStart {
    Object(Box<ObjectStream>),
    Cached(Box<CachedSample>),
}

/// A sample whose value this request or another one computes, before it has waited for memory. It holds no memory of the value.
#[derive(Debug)]
pub(super) struct FlightSample {
    waiter: FlightWaiter,
    authorization: Authorization,
    /// Reads the object, if the result is gone or another request failed to read it.
    source: SourceRead,
    kind: WaiterKind,
}

/// What a request is to its flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaiterKind {
    /// The computation starts from what the store sent for this request.
    pub(super) is_leader: bool,
    /// Rows of a batch wait for memory in their order, which is over once they are computed.
    pub(super) is_row: bool,
}

/// A flight of which some waiter has the memory.
#[derive(Debug)]
pub(super) struct AdmittedFlight {
    pending: PendingResult<FlightResult>,
    waiter: FlightWaiter,
    source: SourceRead,
    /// Whether this request started it.
    is_own: bool,
    kind: WaiterKind,
}

/// The value of a flight and its memory, held by all requests that send it.
#[derive(Debug)]
pub(in crate::routes) struct FlightValue {
    result: Arc<FlightResult>,
    /// As long as the value is being sent, further requests can join.
    waiter: FlightWaiter,
}

impl FlightValue {
    /// The memory of the value alone, if no other request has it.
    pub(super) fn into_memory(self) -> std::result::Result<ValueMemory, Self> {
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

impl FlightSample {
    pub(super) const fn new(
        waiter: FlightWaiter,
        authorization: Authorization,
        source: SourceRead,
        kind: WaiterKind,
    ) -> Self {
        Self {
            waiter,
            authorization,
            source,
            kind,
        }
    }

    /// Waits until some waiter has the memory for the computation: this one, for `bytes`, or another one.
    pub(super) async fn admit(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
        bytes: u64,
        mut timing: Timing,
    ) -> Result<AdmittedSample> {
        let queued = Instant::now();
        let Self {
            waiter,
            authorization,
            source,
            kind,
        } = self;
        let permit = tokio::select! {
            biased;
            () = waiter.started() => None,
            permit = services.memory.acquire(job.position.tenant(), bytes) => Some(permit?),
        };
        timing.add("queue", queued.elapsed());
        let is_own = permit.is_some_and(|permit| {
            let (services, job, prepared) = (services.clone(), job.clone(), prepared.clone());
            let object = waiter.source().kind;
            waiter.start(Result::is_ok, move |start, waiters| async move {
                let timing = Timing::default();
                let computed = match start {
                    FlightStart::Object(stream) => {
                        compute_object(*stream, permit, timing, &services, &job, &prepared).await
                    }
                    FlightStart::Cached(cached) => {
                        cached
                            .compute(permit, timing, &services, &job, &prepared, object)
                            .await
                    }
                }?;
                let (payer, tenants) = (job.position.tenant(), waiters.tenants());
                services.cpu.divide_cost(payer, &tenants, computed.compute_time);
                Ok(computed)
            })
        });
        let Some(pending) = waiter.pending_result() else {
            // All who waited have gone with the result. It may be cached since.
            let object = waiter.source().kind;
            drop(waiter);
            let stages = 1..=prepared.stage;
            return match services.cache.find(source.sample(), source.etag(), stages) {
                Some(candidate) => {
                    let cached = CachedSample::from_source(candidate, authorization, source);
                    Box::pin(cached.admit(services, job, prepared, object, timing)).await
                }
                None => source.admit(services, job, prepared).await,
            };
        };
        let start = AdmittedStart::Flight(AdmittedFlight {
            pending,
            waiter,
            source,
            is_own,
            kind,
        });
        Ok(AdmittedSample { timing, start })
    }
}

impl AdmittedFlight {
    /// Waits for the value. If another request could not read the object, this one tries by itself, unless it is a row: the
    /// client tries rows again.
    ///
    /// # Errors
    /// Those of the steps, for all requests that share them.
    pub(super) async fn result(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
        timing: Timing,
    ) -> Result<ComputedSample> {
        let Self {
            pending,
            waiter,
            source,
            is_own,
            kind,
        } = self;
        let can_retry = !(kind.is_row || is_own && kind.is_leader);
        let result = pending.result().await;
        let result = result.ok_or_else(|| Error::new(ErrorKind::Internal, "a step panicked"))?;
        match &*result {
            Ok(computed) => Ok(computed.shared_with(
                is_own,
                timing,
                FlightValue {
                    result: Arc::clone(&result),
                    waiter,
                },
            )),
            Err(error) if can_retry && error.retry_after().is_some() => {
                drop((result, waiter));
                let admitted = source.admit(services, job, prepared).await?;
                Box::pin(admitted.compute(services, job, prepared)).await
            }
            Err(error) => Err(error.clone()),
        }
    }
}
