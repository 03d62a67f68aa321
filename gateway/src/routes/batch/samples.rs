//! A batch request, and what its samples share.

use std::sync::{Arc, OnceLock};

use http::{HeaderValue, uri::PathAndQuery};
use pushdown::Pipeline;

use super::{InFlightBatch, ReservedRequest, TenantBatches};
use crate::{
    compute::{QueuePosition, Tenant},
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    routes::{Services, job::PipelineJob},
};

/// A batch request that is being answered.
#[derive(Debug)]
pub(in crate::routes) struct Batch {
    pub(in crate::routes) services: Services,
    pub(in crate::routes) request: ReservedRequest,
    pub(in crate::routes) pipeline: Arc<Pipeline>,
    /// The tenant that the signatures claim.
    pub(in crate::routes) tenant: Tenant,
    host: HeaderValue,
    tenant_batches: TenantBatches,
    /// Set by the first sample that the store authorizes: before that the tenant is only claimed.
    in_flight: OnceLock<InFlightBatch>,
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
        Self {
            services,
            pipeline: Arc::new(request.pipeline.clone()),
            request,
            tenant,
            host,
            tenant_batches,
            in_flight: OnceLock::new(),
        }
    }

    /// The job of a sample, at `position` in the queue of the tenant.
    pub(in crate::routes) fn job(&self, index: usize, position: QueuePosition) -> PipelineJob {
        PipelineJob::for_sample(&self.request, index, &self.pipeline, position)
    }

    /// The presigned request for a sample's object.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for an invalid path.
    pub(in crate::routes) fn origin_request(&self, index: usize) -> Result<OriginRequest> {
        let sample = &self.request.samples[index];
        let target: PathAndQuery = sample.target(&self.request.presign).parse().map_err(|error| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("invalid path `{}`: {error}", sample.path),
            )
        })?;
        Ok(OriginRequest::presigned(self.host.clone(), target))
    }

    /// Counts the batch as in flight until it is dropped, because the store has authorized a sample.
    pub(in crate::routes) fn mark_authorized(&self) {
        self.in_flight
            .get_or_init(|| self.tenant_batches.enter(&self.tenant));
    }
}
