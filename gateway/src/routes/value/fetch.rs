//! Asks the store for a sample: whether the caller may read it, and for its bytes, unless a value of it is cached or being
//! computed.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use super::{
    cached::CachedSample,
    sample::{OpenedSample, Start},
    shared::{SharedComputation, SharedFollower},
    sharing::{SampleHints, Sharing},
    source_read::SourceRead,
};
use crate::{
    cache::{Candidate, Role},
    error::Result,
    origin::{OriginObject, OriginRequest, drain},
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
    /// only says whether the caller may have it.
    pub(in crate::routes) async fn fetch(
        services: &Services,
        job: &PipelineJob,
        request: &OriginRequest,
        hints: &SampleHints<'_>,
    ) -> Result<Self> {
        let Some(sharing) = Sharing::new(services, job, request, hints) else {
            return Self::read(services, request, None).await;
        };
        if let Some(opened) = sharing.remembered(request) {
            sharing.observe(&opened.kind);
            return Ok(Self::Opened(Box::new(opened)));
        }
        let candidate = match sharing.candidate() {
            Some(candidate) if !sharing.has_steps_after(&candidate) => {
                return Self::revalidate(services, request, &sharing, candidate).await;
            }
            candidate => candidate,
        };
        let leader = match sharing.enter_flight().await {
            Role::Leader(leader) => Some(leader),
            Role::Follower(follower) => {
                return Self::follow(services, job, request, &sharing, follower).await;
            }
            Role::Single => None,
        };
        let fetched = match candidate {
            Some(candidate) => Self::revalidate(services, request, &sharing, candidate).await,
            None => Self::read(services, request, Some(&sharing)).await,
        };
        Ok(match (fetched?, leader) {
            (Self::Opened(opened), Some(leader)) => {
                Self::Opened(Box::new(sharing.share(*opened, leader, request)))
            }
            (fetched, _) => fetched,
        })
    }

    /// Sends the request, and opens the object.
    async fn read(
        services: &Services,
        request: &OriginRequest,
        sharing: Option<&Sharing<'_>>,
    ) -> Result<Self> {
        let started = Instant::now();
        let object = services.origin.read(request.clone()).await?;
        Self::open(services, object, request, sharing, started).await
    }

    /// Opens the object in an answer to a request without a condition of the gateway.
    async fn open(
        services: &Services,
        object: OriginObject,
        request: &OriginRequest,
        sharing: Option<&Sharing<'_>>,
        started: Instant,
    ) -> Result<Self> {
        if object.status != StatusCode::OK {
            if let Some(sharing) = sharing {
                sharing.refused(object.status);
            }
            return Ok(Self::Refused(object));
        }
        let authorization = sharing.and_then(|sharing| sharing.authorization(&object));
        let mut opened = OpenedSample::open(services, object, started).await?;
        if let (Some(sharing), Some(authorization)) = (sharing, authorization) {
            services.cache.remember_authorization(request, &authorization);
            opened = sharing
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
        sharing: &Sharing<'_>,
        started: Instant,
    ) -> Result<Self> {
        if answer.status == StatusCode::NOT_MODIFIED {
            // For another version.
            return Self::read(services, request, Some(sharing)).await;
        }
        Self::open(services, answer, request, Some(sharing), started).await
    }

    /// Asks the store whether the caller may have the value of `candidate`.
    async fn revalidate(
        services: &Services,
        request: &OriginRequest,
        sharing: &Sharing<'_>,
        candidate: Candidate,
    ) -> Result<Self> {
        let started = Instant::now();
        let answer = services.origin.read_if_changed(request, &candidate.etag).await?;
        services.metrics.count_revalidation(answer.status);
        match sharing.authorization_for(&answer, &candidate.etag) {
            Some(authorization) => {
                services.cache.remember_authorization(request, &authorization);
                let source = sharing.known_at(&candidate.etag);
                let cached = CachedSample::new(
                    candidate,
                    sharing.sample(),
                    authorization,
                    request.clone(),
                    started.elapsed(),
                );
                let start = Start::Cached(Box::new(cached));
                let opened = OpenedSample::without_body(&answer, source.as_deref(), start, started);
                drain(answer).await;
                sharing.observe(&opened.kind);
                Ok(Self::Opened(Box::new(opened)))
            }
            None => Self::open_changed(services, answer, request, sharing, started).await,
        }
    }

    /// Asks the store whether the caller may have the value that is being computed.
    async fn follow(
        services: &Services,
        job: &PipelineJob,
        request: &OriginRequest,
        sharing: &Sharing<'_>,
        follower: SharedFollower,
    ) -> Result<Self> {
        let started = Instant::now();
        let etag = follower.etag().clone();
        let answer = services.origin.read_if_changed(request, &etag).await?;
        services.metrics.count_revalidation(answer.status);
        let authorization = sharing.authorization_for(&answer, &etag);
        if let Some(authorization) = &authorization {
            services.cache.remember_authorization(request, authorization);
        }
        let member = authorization.and_then(|authorization| {
            let member = follower.join(&sharing.object(), &authorization, job.position.tenant())?;
            Some((member, authorization))
        });
        match member {
            // Of another kind than the version that this request knew: its stage may be another one.
            Some((member, _)) if !sharing.has_flight_stage(&member.source().kind) => {
                Self::read(services, request, Some(sharing)).await
            }
            Some((member, authorization)) => {
                let source = Arc::clone(member.source());
                let read = SourceRead::new(request.clone(), etag, sharing.sample());
                let part = sharing.follower_part();
                let shared = SharedComputation::new(member, authorization, read, part);
                let start = Start::Shared(Box::new(shared));
                let opened = OpenedSample::without_body(&answer, Some(&source), start, started);
                drain(answer).await;
                sharing.observe(&opened.kind);
                Ok(Self::Opened(Box::new(opened)))
            }
            None => Self::open_changed(services, answer, request, sharing, started).await,
        }
    }
}
