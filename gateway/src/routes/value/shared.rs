//! A computation that several requests share: from an object, or from a cached value before the last one.

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
    cache::{Flights, Follower, Leader, Member, Role, Waiter},
    error::{Error, ErrorKind, Result},
    origin::Authorization,
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// The result of a computation, with the memory of the value.
pub(in crate::routes) type SharedResult = Result<ComputedSample>;
pub(in crate::routes) type SharedFlights = Flights<FlightStart, SharedResult>;
pub(super) type SharedRole = Role<FlightStart, SharedResult>;
pub(super) type SharedLeader = Leader<FlightStart, SharedResult>;
pub(super) type SharedFollower = Follower<FlightStart, SharedResult>;
type SharedMember = Member<FlightStart, SharedResult>;

/// What the members of a flight compute from: what the store has sent or authorized for the leader.
#[derive(Debug)]
pub(in crate::routes) enum FlightStart {
    Object(Box<ObjectStream>),
    Cached(Box<CachedSample>),
}

/// This request's part in a computation, before it has waited for memory. It holds no memory of the value.
#[derive(Debug)]
pub(super) struct SharedComputation {
    member: SharedMember,
    authorization: Authorization,
    /// Reads the object, if the result is gone or another request failed to read it.
    source: SourceRead,
    part: MemberPart,
}

/// What a request is to its flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberPart {
    /// The computation starts from what the store sent for this request.
    pub(super) is_leader: bool,
    /// Rows of a batch wait for memory in their order, which is over once they are computed.
    pub(super) is_row: bool,
}

/// A computation for which some member has memory.
#[derive(Debug)]
pub(super) struct AdmittedComputation {
    waiter: Waiter<SharedResult>,
    member: SharedMember,
    source: SourceRead,
    /// Whether this request started it.
    is_own: bool,
    part: MemberPart,
}

/// A value and its memory, held by all requests that send it.
#[derive(Debug)]
pub(in crate::routes) struct SharedValue {
    result: Arc<SharedResult>,
    /// As long as the value is being sent, further requests can join.
    member: SharedMember,
}

impl SharedValue {
    /// The memory of the value alone, if no other request has it.
    pub(super) fn into_memory(self) -> std::result::Result<ValueMemory, Self> {
        let Self { result, member } = self;
        match Arc::try_unwrap(result) {
            Ok(Ok(computed)) => Ok(computed.memory),
            // Only a computation with a value is in this struct.
            Ok(failed) => Err(Self {
                result: Arc::new(failed),
                member,
            }),
            Err(result) => Err(Self { result, member }),
        }
    }
}

impl SharedComputation {
    pub(super) const fn new(
        member: SharedMember,
        authorization: Authorization,
        source: SourceRead,
        part: MemberPart,
    ) -> Self {
        Self {
            member,
            authorization,
            source,
            part,
        }
    }

    /// Waits until some member has the memory for the computation: this one, for `bytes`, or another one.
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
            member,
            authorization,
            source,
            part,
        } = self;
        let permit = tokio::select! {
            biased;
            () = member.started() => None,
            permit = services.memory.acquire(job.position.tenant(), bytes) => Some(permit?),
        };
        timing.add("queue", queued.elapsed());
        let is_own = permit.is_some_and(|permit| {
            let (services, job, prepared) = (services.clone(), job.clone(), prepared.clone());
            let object = member.source().kind;
            member.start(Result::is_ok, move |start, members| async move {
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
                let (payer, tenants) = (job.position.tenant(), members.tenants());
                services.cpu.share_cost(payer, &tenants, computed.compute_time);
                Ok(computed)
            })
        });
        let Some(waiter) = member.wait() else {
            // All who waited have gone with the result. It may be cached since.
            let object = member.source().kind;
            drop(member);
            let stages = 1..=prepared.stage;
            return match services.cache.find(source.sample(), source.etag(), stages) {
                Some(candidate) => {
                    let cached = CachedSample::from_source(candidate, authorization, source);
                    Box::pin(cached.admit(services, job, prepared, object, timing)).await
                }
                None => source.admit(services, job, prepared).await,
            };
        };
        let start = AdmittedStart::Shared(AdmittedComputation {
            waiter,
            member,
            source,
            is_own,
            part,
        });
        Ok(AdmittedSample { timing, start })
    }
}

impl AdmittedComputation {
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
            waiter,
            member,
            source,
            is_own,
            part,
        } = self;
        let can_retry = !(part.is_row || is_own && part.is_leader);
        let result = waiter.result().await;
        let result = result.ok_or_else(|| Error::new(ErrorKind::Internal, "a step panicked"))?;
        match &*result {
            Ok(computed) => Ok(computed.shared_with(
                is_own,
                timing,
                SharedValue {
                    result: Arc::clone(&result),
                    member,
                },
            )),
            Err(error) if can_retry && error.retry_after().is_some() => {
                drop((result, member));
                let admitted = source.admit(services, job, prepared).await?;
                Box::pin(admitted.compute(services, job, prepared)).await
            }
            Err(error) => Err(error.clone()),
        }
    }
}
