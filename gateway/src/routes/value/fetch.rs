//! Asks the store for a sample: whether the caller may read it, and for its bytes, unless a value of it is cached or being
//! computed.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use super::{
    lookup::{Condition, SampleHints, ValueLookup},
    source::{ObjectStream, OpenedSample, Source},
};
use crate::{
    cache::Role,
    error::Result,
    origin::{EntryTicket, OriginObject, OriginRequest, drain},
    routes::{Services, http::Timing, job::PipelineJob},
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
    ///
    /// The stage of the answer is decided here, since this is where the head of the object is known first.
    pub(in crate::routes) async fn fetch(
        services: &Arc<Services>,
        job: &Arc<PipelineJob>,
        request: &OriginRequest,
        ticket: Option<EntryTicket>,
        hints: &SampleHints<'_>,
    ) -> Result<Self> {
        let (origin, cache) = (&services.origin, &services.cache);
        let lookup = ValueLookup::new(services, job, request, hints);
        let candidate = lookup.candidate();
        if let Some(candidate) = &candidate
            && let Some(opened) = lookup.remembered(candidate)
        {
            return Ok(Self::Opened(Box::new(opened)));
        }
        let has_steps = candidate
            .as_ref()
            .is_none_or(|candidate| lookup.has_steps_after(candidate));
        let cached = candidate.map(Condition::Cached);
        let (condition, leader) = if has_steps {
            match lookup.enter_flight().await {
                Role::Leader(leader) => (cached, Some(leader)),
                Role::Follower(follower) => (Some(Condition::Flight(follower)), None),
                Role::Single => (cached, None),
            }
        } else {
            (cached, None)
        };
        let mut started = Instant::now();
        let answer = match condition {
            None => origin.read_joined(request.clone(), ticket).await?,
            Some(condition) => {
                let answer = origin.read_if_changed(request, condition.etag()).await?;
                services.metrics.count_revalidation(answer.status);
                match lookup.authorized(condition, &answer, started)? {
                    Some(opened) => {
                        drain(answer).await;
                        return Ok(Self::Opened(Box::new(lookup.publish(opened, leader))));
                    }
                    // For another version.
                    None if answer.status == StatusCode::NOT_MODIFIED => {
                        started = Instant::now();
                        origin.read_joined(request.clone(), ticket).await?
                    }
                    None => answer,
                }
            }
        };
        if answer.status != StatusCode::OK {
            lookup.refused(answer.status);
            return Ok(Self::Refused(answer));
        }
        let authorization = lookup.authorization(&answer);
        let length = services.check_length(&answer)?;
        let OriginObject { headers, body, .. } = answer;
        let mut stream = ObjectStream::open(length, &headers, body, started).await?;
        let (kind, mut timing) = (stream.kind, Timing::default());
        timing.add("origin", stream.origin_time);
        if let Some(authorization) = &authorization {
            cache.remember_authorization(request, authorization);
            stream.set_cache_key(cache, lookup.sample(), authorization.clone());
        }
        let staged = lookup.decide(&kind)?;
        let mut source = Source::Object(Box::new(stream));
        if let Some(authorization) = authorization {
            lookup.observe(staged.stage);
            let store_time = started.elapsed();
            let cached = lookup.cached_version(&headers, staged.stage, authorization, store_time);
            // If a value of this version is cached, the rest of the object is not read.
            if let Some(cached) = cached
                && let Source::Object(stream) = std::mem::replace(&mut source, cached)
            {
                stream.drain().await;
            }
        }
        let opened = OpenedSample {
            staged,
            headers,
            length: Some(length),
            kind,
            timing,
            source,
        };
        Ok(Self::Opened(Box::new(lookup.publish(opened, leader))))
    }
}
