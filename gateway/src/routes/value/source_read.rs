//! Reads the object of a request whose value was cached or shared, and is gone.

use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, StatusCode};
use pushdown::Kind;
use tokio::time::Instant;

use super::sample::{AdmittedSample, OpenedSample};
use crate::{
    cache::CacheSample,
    error::{Error, ErrorKind, Result},
    origin::{Authorization, OriginRequest},
    routes::{Services, http::StoreRefusal, job::PipelineJob, prepared::Prepared},
};

/// A read of the object, for a request that the store has authorized once.
#[derive(Debug, Clone)]
pub(super) struct SourceRead {
    request: OriginRequest,
    /// The version that the answer has begun to describe.
    etag: HeaderValue,
    sample: CacheSample,
}

impl SourceRead {
    pub(super) const fn new(request: OriginRequest, etag: HeaderValue, sample: CacheSample) -> Self {
        Self {
            request,
            etag,
            sample,
        }
    }

    /// The key of the values of the object.
    pub(super) const fn sample(&self) -> &CacheSample {
        &self.sample
    }

    /// The version.
    pub(super) const fn etag(&self) -> &HeaderValue {
        &self.etag
    }

    /// Opens the object, and waits for the memory of source, pixels and output.
    ///
    /// # Errors
    /// [`ErrorKind::Replaced`] if it has another version now: the answer has begun to describe the earlier one.
    pub(super) fn admit<'a>(
        self,
        services: &'a Services,
        job: &'a PipelineJob,
        prepared: &'a Prepared,
    ) -> BoxFuture<'a, Result<AdmittedSample>> {
        async move { self.admit_object(services, job, prepared).await }.boxed()
    }

    async fn admit_object(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<AdmittedSample> {
        let started = Instant::now();
        let object = services.origin.read(self.request).await?;
        if object.status != StatusCode::OK {
            return Err(StoreRefusal::read(object).await.into());
        }
        let authorization = Authorization::from_answer(self.sample.object, &object);
        let mut opened = OpenedSample::open(services, object, started).await?;
        if let Some(authorization) = &authorization {
            opened = opened.with_cache_key(&services.cache, self.sample.clone(), authorization);
        }
        if !authorization.is_some_and(|found| found.covers(&self.sample.object, &self.etag)) {
            return Err(Error::new(
                ErrorKind::Replaced,
                "the object was replaced while it was read; try again",
            ));
        }
        // The memory of the steps follows from the object, which this request had not read yet.
        let prepared = prepared.with_peak_memory(job, &Kind::Bytes(opened.kind));
        opened.admit(services, job, &prepared).await
    }
}
