//! A stored table: its rows are read here, by ranges.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::HeaderValue;
use pushdown::{Context, Description, Limits, Pipeline, Scan, Source, Suffix};

use super::{GetValue, Store, ValueStream, parts::Parts, rate::Seen};
use crate::error::{Error, ErrorKind, Result};

/// Ranges of one read that are fetched at a time.
const SIDE_BY_SIDE: usize = 4;
/// An object whose rows are read here, by ranges. Clones share what is known of it.
#[derive(Debug, Clone)]
pub struct StoredTable(Arc<Parts>);

impl Store {
    /// An object that is read in parts. Nothing is read yet.
    pub fn table(&self, bucket: &str, key: &str, limits: &Limits) -> StoredTable {
        StoredTable(Arc::new(Parts::new(self.clone(), bucket, key, limits)))
    }
}

// === impl StoredTable ===

impl StoredTable {
    /// Reads what the object says of its rows.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] for an object that is no table, and as reading it fails.
    pub async fn describe(&self) -> Result<Description> {
        let source = Arc::new(self.clone());
        let described = pushdown::describe(source, &self.context()).await;
        described.map_err(|error| self.fault(error))
    }

    /// Starts to run a pipeline's table steps here: what the gateway would answer, from the bytes that it would read. Seed
    /// and epoch are those of random steps inside of `each`.
    ///
    /// # Errors
    /// [`ErrorKind::Pipeline`] for a pipeline whose first step makes no table; [`ErrorKind::Sample`] for an object that
    /// it cannot be applied to; and as reading the object fails.
    pub async fn scan(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<Scan> {
        let source = Arc::new(self.clone());
        let context = Context {
            seed,
            epoch: Some(epoch),
            ..self.context()
        };
        let scan = pipeline.scan(0..pipeline.len(), source, &context).await;
        scan.map_err(|error| self.fault(error))
    }

    /// What the gateway makes of the object, in pieces.
    pub(super) async fn value(&self, what: &GetValue<'_>) -> Result<ValueStream> {
        self.0.value(what).await
    }

    /// At what rate it has come so far.
    pub(super) fn seen(&self) -> Seen {
        self.0.seen()
    }

    /// Bytes that have come so far, of whatever the store was asked for.
    pub(super) fn come(&self) -> u64 {
        self.0.come()
    }

    /// Whether this is the ETag of the version that is read, as far as both are known.
    pub(crate) fn may_be(&self, etag: Option<&HeaderValue>) -> bool {
        let known = self.0.etag();
        known
            .as_ref()
            .zip(etag)
            .is_none_or(|(known, found)| known == found)
    }

    fn context(&self) -> Context<'_> {
        Context {
            limits: *self.0.limits(),
            ..Context::new(self.0.key().as_bytes())
        }
    }

    /// An error of a scan of this object, as this library has it.
    pub fn fault(&self, error: pushdown::Error) -> Error {
        let kept = match error.kind() {
            pushdown::ErrorKind::Source => self.0.fault(),
            pushdown::ErrorKind::InvalidPipeline | pushdown::ErrorKind::Internal => None,
            kind => Some(Error::new(
                ErrorKind::Sample,
                format!("{}: {}: {error}", self.0.name(), kind.code()),
            )),
        };
        kept.unwrap_or_else(|| error.into())
    }
}

impl Source for StoredTable {
    fn suffix(&self, length: u64) -> BoxFuture<'static, pushdown::Result<Suffix>> {
        let parts = Arc::clone(&self.0);
        async move { parts.suffix(length).await.map_err(|error| parts.keep(error)) }.boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, pushdown::Result<Vec<Bytes>>> {
        let parts = Arc::clone(&self.0);
        let reads = ranges.into_iter().map(move |range| {
            let parts = Arc::clone(&parts);
            async move { parts.part(range).await.map_err(|error| parts.keep(error)) }
        });
        stream::iter(reads).buffered(SIDE_BY_SIDE).try_collect().boxed()
    }

    fn stream(&self) -> BoxStream<'static, pushdown::Result<Bytes>> {
        let parts = Arc::clone(&self.0);
        stream::once(async move { parts.flow().await.map_err(|error| parts.keep(error)) })
            .try_flatten()
            .boxed()
    }
}
