//! A batch request, and what its samples share.

use std::sync::{Arc, OnceLock};

use http::{HeaderValue, uri::PathAndQuery};
use pushdown::{Pipeline, wire::CachedRatios};

use super::{InFlightBatch, ReservedRequest, TenantBatches};
use crate::{
    cache::{Hints, Prefixes},
    compute::{QueuePosition, Tenant},
    error::{Error, ErrorKind, Result},
    origin::{OriginRequest, Signing},
    resign::Resign,
    routes::{
        Services,
        job::PipelineJob,
        value::{SampleHints, cached_ratios},
    },
};

/// A batch request that is being answered.
#[derive(Debug)]
pub(in crate::routes) struct Batch {
    pub(in crate::routes) services: Services,
    pub(in crate::routes) request: ReservedRequest,
    pub(in crate::routes) pipeline: Arc<Pipeline>,
    prefixes: Prefixes,
    /// The tenant that the signatures claim.
    pub(in crate::routes) tenant: Tenant,
    host: HeaderValue,
    tenant_batches: TenantBatches,
    /// Set by the first sample that the store authorizes, with its index: before that the tenant is only claimed.
    in_flight: OnceLock<(usize, InFlightBatch)>,
}

impl Batch {
    /// The batch of `request`, whose samples are signed for `host`.
    pub(super) fn new(
        services: Services,
        tenant_batches: TenantBatches,
        request: ReservedRequest,
        host: HeaderValue,
        tenant: Tenant,
    ) -> Self {
        let pipeline = Arc::new(request.pipeline.clone());
        Self {
            services,
            prefixes: Prefixes::new(Arc::clone(&pipeline)),
            pipeline,
            request,
            tenant,
            host,
            tenant_batches,
            in_flight: OnceLock::new(),
        }
    }

    /// The job of a sample, at `position` in the queue of the tenant.
    pub(in crate::routes) fn job(&self, index: usize, position: QueuePosition) -> PipelineJob {
        PipelineJob::for_sample(&self.request, index, &self.pipeline, &self.prefixes, position)
    }

    /// What the caller says about a sample.
    pub(in crate::routes) fn hints<'a>(&self, etag: Option<&'a HeaderValue>) -> SampleHints<'a> {
        SampleHints {
            etag,
            is_row: true,
            plans: self.request.cache.map(|plans| Hints {
                epochs: plans.epochs,
                samples: plans.samples,
            }),
        }
    }

    /// The ETag of a sample's object in the caller's listing.
    pub(in crate::routes) fn listed_etag(&self, index: usize) -> Option<HeaderValue> {
        let etag = self.request.samples[index].etag.as_deref()?;
        HeaderValue::from_str(etag).ok()
    }

    /// The presigned request for a sample's object.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for an invalid path; in re-sign mode, if the sample's signature is refused.
    pub(in crate::routes) fn origin_request(&self, index: usize) -> Result<OriginRequest> {
        let sample = &self.request.samples[index];
        let target: PathAndQuery = sample.target(&self.request.presign).parse().map_err(|error| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("invalid path `{}`: {error}", sample.path),
            )
        })?;
        let request = OriginRequest::presigned(self.host.clone(), target);
        let Some(resign) = &self.services.resign else {
            return Ok(request);
        };
        let parts = resign.admit(request.into_parts(), true)?;
        if let Some(signing) = parts.extensions.get::<Signing>() {
            Resign::check_models(signing, &self.pipeline)?;
        }
        Ok(OriginRequest::from_caller(&parts))
    }

    /// How much of the data set is cached, at each of `stages`: the set of the first sample that the store has authorized.
    pub(super) fn cached_ratios(&self, stages: &[usize]) -> CachedRatios {
        let ratios = || {
            let index = self.in_flight.get()?.0;
            let job = self.job(index, self.tenant.position_now());
            let request = self.origin_request(index).ok()?;
            Some(cached_ratios(
                &self.services,
                &job,
                &request,
                stages.iter().copied(),
            ))
        };
        ratios().unwrap_or_default()
    }

    /// Counts the batch as in flight until it is dropped, because the store has authorized the sample `index`.
    pub(in crate::routes) fn mark_authorized(&self, index: usize) {
        self.in_flight
            .get_or_init(|| (index, self.tenant_batches.enter(&self.tenant)));
    }
}
