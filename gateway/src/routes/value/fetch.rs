//! Asks the store for a sample: whether the caller may read it, and for its bytes, unless a value of it is cached or being
//! computed.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use super::{
    cached::CachedSample,
    flight::{FlightFollower, FlightSample},
    lookup::{SampleHints, ValueLookup},
    sample::{OpenedSample, Start},
    source_read::SourceRead,
};
use crate::{
    cache::{Candidate, Role},
    error::Result,
    origin::{EntryTicket, OriginObject, OriginRequest, drain},
    routes::{Services, job::PipelineJob},
};

/// The store's answer.
#[derive(Debug)]
pub(in crate::routes) enum FetchedSample {
    Opened(Box<OpenedSample>),
    /// The store decides (law 6), and its answer is forwarded to the caller.
    Refused(OriginObject),
}

impl FetchedSample {
    /// Sends the caller's request. If a value may be cached or is being computed, the request is conditional: then the store
    /// only says whether the caller may have it. `ticket` is that of a row of joined reads, for the request that reads the object.
    pub(in crate::routes) async fn fetch(
        services: &Services,
        job: &PipelineJob,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        hints: &SampleHints<'_>,
    ) -> Result<Self> {
        let Some(lookup) = ValueLookup::new(services, job, request, hints) else {
            return Self::read(services, request, ticket, None).await;
        };
        if let Some(opened) = lookup.remembered(request) {
            lookup.observe(&opened.kind);
            return Ok(Self::Opened(Box::new(opened)));
        }
        let candidate = match lookup.candidate() {
            Some(candidate) if !lookup.has_steps_after(&candidate) => {
                return Self::revalidate(services, request, ticket, &lookup, candidate).await;
            }
            candidate => candidate,
        };
        let leader = match lookup.enter_flight().await {
            Role::Leader(leader) => Some(leader),
            Role::Follower(follower) => {
                return Self::follow(services, job, request, ticket, &lookup, follower).await;
            }
            Role::Single => None,
        };
        let fetched = match candidate {
            Some(candidate) => Self::revalidate(services, request, ticket, &lookup, candidate).await,
            None => Self::read(services, request, ticket, Some(&lookup)).await,
        };
        Ok(match (fetched?, leader) {
            (Self::Opened(opened), Some(leader)) => {
                Self::Opened(Box::new(lookup.publish(*opened, leader, request)))
            }
            (fetched, _) => fetched,
        })
    }

    /// Sends the request, and opens the object.
    async fn read(
        services: &Services,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        lookup: Option<&ValueLookup<'_>>,
    ) -> Result<Self> {
        let started = Instant::now();
        let object = services.origin.read_joined(request.clone(), ticket).await?;
        Self::open(services, object, request, lookup, started).await
    }

    /// Opens the object in an answer to a request without a condition of the gateway.
    async fn open(
        services: &Services,
        object: OriginObject,
        request: &OriginRequest,
        lookup: Option<&ValueLookup<'_>>,
        started: Instant,
    ) -> Result<Self> {
        if object.status != StatusCode::OK {
            if let Some(lookup) = lookup {
                lookup.refused(object.status);
            }
            return Ok(Self::Refused(object));
        }
        let authorization = lookup.and_then(|lookup| lookup.authorization(&object));
        let mut opened = OpenedSample::open(services, object, started).await?;
        if let (Some(lookup), Some(authorization)) = (lookup, authorization) {
            services.cache.remember_authorization(request, &authorization);
            opened = lookup
                .prefer_cached(opened, request, authorization, started.elapsed())
                .await;
        }
        Ok(Self::Opened(Box::new(opened)))
    }

    /// Opens the object in an answer to a conditional request that is no authorization for the version in the condition.
    async fn open_changed(
        services: &Services,
        answer: OriginObject,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        lookup: &ValueLookup<'_>,
        started: Instant,
    ) -> Result<Self> {
        if answer.status == StatusCode::NOT_MODIFIED {
            // For another version.
            return Self::read(services, request, ticket, Some(lookup)).await;
        }
        Self::open(services, answer, request, Some(lookup), started).await
    }

    /// Asks the store whether the caller may have the value of `candidate`.
    async fn revalidate(
        services: &Services,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        lookup: &ValueLookup<'_>,
        candidate: Candidate,
    ) -> Result<Self> {
        let started = Instant::now();
        let answer = services.origin.read_if_changed(request, &candidate.etag).await?;
        services.metrics.count_revalidation(answer.status);
        match lookup.authorization_for(&answer, &candidate.etag) {
            Some(authorization) => {
                services.cache.remember_authorization(request, &authorization);
                let source = lookup.known_at(&candidate.etag);
                let cached = CachedSample::new(
                    candidate,
                    lookup.sample(),
                    authorization,
                    request.clone(),
                    started.elapsed(),
                );
                let start = Start::Cached(Box::new(cached));
                let opened = OpenedSample::without_body(&answer, source.as_deref(), start, started);
                drain(answer).await;
                lookup.observe(&opened.kind);
                Ok(Self::Opened(Box::new(opened)))
            }
            None => Self::open_changed(services, answer, request, ticket, lookup, started).await,
        }
    }

    /// Asks the store whether the caller may have the value that is being computed.
    async fn follow(
        services: &Services,
        job: &PipelineJob,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        lookup: &ValueLookup<'_>,
        follower: FlightFollower,
    ) -> Result<Self> {
        let started = Instant::now();
        let etag = follower.etag().clone();
        let answer = services.origin.read_if_changed(request, &etag).await?;
        services.metrics.count_revalidation(answer.status);
        let authorization = lookup.authorization_for(&answer, &etag);
        if let Some(authorization) = &authorization {
            services.cache.remember_authorization(request, authorization);
        }
        let waiter = authorization.and_then(|authorization| {
            let waiter = follower.join(&lookup.object(), &authorization, job.position.tenant())?;
            Some((waiter, authorization))
        });
        match waiter {
            // Of another kind than the version that this request knew: its stage may be another one.
            Some((waiter, _)) if !lookup.has_flight_stage(&waiter.source().kind) => {
                Self::read(services, request, ticket, Some(lookup)).await
            }
            Some((waiter, authorization)) => {
                let source = Arc::clone(waiter.source());
                let read = SourceRead::new(request.clone(), etag, lookup.sample());
                let kind = lookup.follower_kind();
                let sample = FlightSample::new(waiter, authorization, read, kind);
                let start = Start::Flight(Box::new(sample));
                let opened = OpenedSample::without_body(&answer, Some(&source), start, started);
                drain(answer).await;
                lookup.observe(&opened.kind);
                Ok(Self::Opened(Box::new(opened)))
            }
            None => Self::open_changed(services, answer, request, ticket, lookup, started).await,
        }
    }
}
