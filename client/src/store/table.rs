//! A stored table whose rows are computed on this host, by range reads.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use pushdown::{Context, Limits, Pipeline, Scan, Source, Suffix};

#[cfg(feature = "tables")]
use super::ObjectEnd;
use super::{GatewayRoute, Replica, Store, ValueRequest, ValueStream, versioned_object::VersionedObject};
use crate::{
    error::{Error, ErrorKind, Result},
    measure::RateSamples,
};

/// Ranges of one read that are fetched concurrently.
const CONCURRENT_RANGES: usize = 4;

/// An object whose rows are computed on this host, by range reads. Clones share its version and footer.
#[derive(Debug, Clone)]
pub struct StoredTable {
    object: Arc<VersionedObject>,
    arrival: ArrivalCallback,
}

/// Bytes of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangePart {
    /// So many arrived now.
    Received(u64),
    /// So many were known, so none of them was requested.
    Known(u64),
}

/// Called with each part of a range.
#[derive(Clone)]
struct ArrivalCallback(Arc<dyn Fn(RangePart) + Send + Sync>);

impl fmt::Debug for ArrivalCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivalCallback").finish_non_exhaustive()
    }
}

impl Store {
    /// A stored table. Reads nothing yet.
    pub fn table(&self, bucket: &str, key: &str, limits: &Limits) -> StoredTable {
        StoredTable::new(VersionedObject::new(self.clone(), bucket, key, limits))
    }

    /// A stored table in a version whose end has been read. Without one as [`table`](Self::table).
    #[cfg(feature = "tables")]
    pub(crate) fn table_with_end(
        &self,
        bucket: &str,
        key: &str,
        limits: &Limits,
        end: Option<ObjectEnd>,
    ) -> StoredTable {
        let object = VersionedObject::new(self.clone(), bucket, key, limits);
        StoredTable::new(match end {
            Some(end) => object.with_end(end),
            None => object,
        })
    }
}

impl StoredTable {
    fn new(object: VersionedObject) -> Self {
        Self {
            object: Arc::new(object),
            arrival: ArrivalCallback(Arc::new(|_part| ())),
        }
    }

    /// The same table. Its reads of ranges call `arrived` with each part.
    #[cfg(feature = "tables")]
    pub(crate) fn on_arrival(self, arrived: impl Fn(RangePart) + Send + Sync + 'static) -> Self {
        Self {
            arrival: ArrivalCallback(Arc::new(arrived)),
            ..self
        }
    }

    /// The version that is read and its end, once they are known. `None` if the endpoint does not support ranges.
    #[cfg(feature = "tables")]
    pub(crate) fn end(&self) -> Option<ObjectEnd> {
        self.object.end()
    }

    /// Reads the object's schema, row count and row groups.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] for an object that is not a table; errors of reading it.
    #[cfg(feature = "tables")]
    pub async fn describe(&self) -> Result<pushdown::Description> {
        let source = Arc::new(self.clone());
        let described = pushdown::describe(source, &self.context()).await;
        described.map_err(|error| self.map_error(error))
    }

    /// Starts to run a pipeline's table steps on this host. The rows and the bytes read are the same as at the gateway. Seed
    /// and epoch are those of random steps inside `each`.
    ///
    /// # Errors
    /// [`ErrorKind::Pipeline`] for a pipeline whose first step does not make a table; [`ErrorKind::Sample`] for an object that
    /// it does not apply to; errors of reading the object.
    pub async fn scan(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<Scan> {
        self.scan_steps(pipeline, pipeline.len(), seed, epoch).await
    }

    /// As [`scan`](Self::scan), of the first `steps` steps.
    pub(crate) async fn scan_steps(
        &self,
        pipeline: &Pipeline,
        steps: usize,
        seed: Option<u64>,
        epoch: u32,
    ) -> Result<Scan> {
        let source = Arc::new(self.clone());
        let context = Context {
            seed,
            epoch: Some(epoch),
            ..self.context()
        };
        let scan = pipeline.scan(0..steps, source, &context).await;
        scan.map_err(|error| self.map_error(error))
    }

    pub(super) fn store(&self) -> &Store {
        self.object.store()
    }

    /// Requests the value that the gateway computes from the object, as a stream. If the gateway `is_dispensable` and does not answer, nothing is
    /// requested again.
    pub(super) async fn value(
        &self,
        request: &ValueRequest<'_>,
        is_dispensable: bool,
    ) -> Result<ValueStream> {
        self.object.value(request, is_dispensable).await
    }

    /// Whether there may be a gateway that serves, and can fetch what is signed for the store. Logs why one cannot.
    pub(super) async fn has_usable_gateway(&self) -> bool {
        let store = self.object.store();
        if !store.has_gateway() {
            return false;
        }
        let is_beside = store.has_gateway_beside();
        if is_beside && !store.gateway_serves() {
            return false;
        }
        let route = GatewayRoute::to(self.object.bucket(), self.object.key());
        let check = |replica: Arc<Replica>| async move {
            let checked = store.check_reads_stores(&replica).await;
            if is_beside && checked.as_ref().is_err_and(Error::is_retryable) {
                replica.health().after_failure().await;
            }
            checked
        };
        let checked = store.at_replica(route.dispensable_if(is_beside), check).await;
        // The outage is logged.
        if is_beside && checked.as_ref().is_err_and(Error::is_retryable) && !store.gateway_serves() {
            return false;
        }
        if let Err(why) = &checked {
            tracing::warn!(%why, "falling back to plain reading: the rows are computed on this host");
        }
        checked.is_ok()
    }

    /// The measured rate at which it arrives.
    pub(crate) fn read_rate(&self) -> RateSamples {
        self.object.read_rate()
    }

    /// As [`read_rate`](Self::read_rate), measured since the last call.
    #[cfg(feature = "tables")]
    pub(crate) fn take_read_rate(&self) -> RateSamples {
        self.object.take_read_rate()
    }

    /// Bytes received so far, over all requests to the store.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.object.received_bytes()
    }

    /// Whether `etag` is that of the version that is read, as far as both are known.
    #[cfg(feature = "tables")]
    pub(crate) fn matches_etag(&self, etag: Option<&http::HeaderValue>) -> bool {
        let known = self.object.etag();
        known
            .as_ref()
            .zip(etag)
            .is_none_or(|(known, found)| known == found)
    }

    fn context(&self) -> Context<'_> {
        Context {
            limits: *self.object.limits(),
            ..Context::new(self.object.key().as_bytes())
        }
    }

    /// Converts an error of a scan of this object.
    pub fn map_error(&self, error: pushdown::Error) -> Error {
        let known = match error.kind() {
            pushdown::ErrorKind::Source
            | pushdown::ErrorKind::InvalidPipeline
            | pushdown::ErrorKind::Internal => None,
            kind => Some(Error::new(
                ErrorKind::Sample,
                format!("{}: {}: {error}", self.object.name(), kind.code()),
            )),
        };
        known.unwrap_or_else(|| error.into())
    }
}

impl Source for StoredTable {
    fn suffix(&self, length: u64) -> BoxFuture<'static, pushdown::Result<Suffix>> {
        let object = Arc::clone(&self.object);
        async move { Ok(object.suffix(length).await?) }.boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, pushdown::Result<Vec<Bytes>>> {
        let table = self.clone();
        let reads = ranges.into_iter().map(move |range| {
            let Self { object, arrival } = table.clone();
            async move { Ok(object.range_observed(range, &*arrival.0).await?) }
        });
        stream::iter(reads)
            .buffered(CONCURRENT_RANGES)
            .try_collect()
            .boxed()
    }

    fn stream(&self) -> BoxStream<'static, pushdown::Result<Bytes>> {
        let object = Arc::clone(&self.object);
        stream::once(async move { Ok::<_, pushdown::Error>(object.stream().await?) })
            .try_flatten()
            .boxed()
    }
}
