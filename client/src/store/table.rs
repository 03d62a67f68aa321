//! A stored table: its rows are read here, by ranges.

use std::{future::poll_fn, ops::Range, sync::Arc, task::Poll};

use arrow_array::RecordBatch;
use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::HeaderValue;
use pushdown::{Context, Description, Estimate, Limits, Pipeline, Scan, Source, Suffix};

use super::{Store, parts::Parts, rate::Seen};
use crate::error::{Error, ErrorKind, Result};

/// Ranges of one read that are fetched at a time.
const SIDE_BY_SIDE: usize = 4;
/// A link of which a measurement says this part of what it would need to have is a thin one.
const CLEAR: f64 = 4.0;
/// Measurements that are believed where they are close to it, the fastest of them,
const LOOKS: usize = 4;
/// and rows that are held until then, in bytes, at most.
const LOOKED_AT: usize = 16 << 20;

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

    /// The scan, where its rows come sooner by going on with it than from the gateway; else `None`. Where the rows are fewer
    /// bytes than what is read for them it is begun, to see at what rate that comes.
    ///
    /// # Errors
    /// As reading the object fails.
    pub async fn sooner_here(&self, mut scan: Scan) -> Result<Option<Scan>> {
        let estimate = *scan.estimate();
        if !estimate.rows_are_fewer_bytes() {
            return Ok(Some(scan));
        }
        if estimate.likely.is_none() {
            return Ok(None);
        }
        let mut taken = Taken::default();
        let begun = poll_fn(|task| {
            loop {
                match scan.poll_next_unpin(task) {
                    Poll::Ready(Some(Ok(rows))) => taken.push(rows),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(true)),
                    Poll::Pending if here(&estimate, self.0.seen(), &taken).is_none() => {
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
                if let Some(here) = here(&estimate, self.0.seen(), &taken) {
                    return Poll::Ready(Ok(here));
                }
            }
        });
        let here = begun.await.map_err(|error| self.fault(error))?;
        tracing::info!(here, seen = ?self.0.seen(), ?estimate, "looked where rows are there sooner");
        Ok(here.then(|| scan.behind(taken.rows)))
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

/// Rows that were taken to see at what rate they come.
#[derive(Debug, Default)]
struct Taken {
    rows: Vec<RecordBatch>,
    bytes: usize,
}

// === impl Taken ===

impl Taken {
    fn push(&mut self, rows: RecordBatch) {
        self.bytes += rows.get_array_memory_size();
        self.rows.push(rows);
    }
}

/// Whether rows are there sooner by going on here; `None` where that is not known yet.
///
/// What is seen at first is less than the link and the store can do: connections are new, and this end has rows to make.
/// So what speaks for the gateway has to be clear, or to be seen some times.
fn here(estimate: &Estimate, seen: Seen, taken: &Taken) -> Option<bool> {
    let there = |rate| estimate.sooner_beside_the_store(rate);
    if seen.times > 0 && !there(seen.fastest) {
        return Some(true);
    }
    let clear = seen.times > 0 && there(seen.fastest * CLEAR);
    (clear || seen.times >= LOOKS || taken.bytes >= LOOKED_AT).then_some(false)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_close_to_what_decides_is_looked_at_again() {
        let estimate = Estimate {
            read: Some(60_000_000),
            likely: Some(30_000_000),
            ..Estimate::default()
        };
        let after = |fastest, times, bytes| {
            let rows = Vec::new();
            here(&estimate, Seen { fastest, times }, &Taken { rows, bytes })
        };
        assert_eq!(after(0.0, 0, 0), None, "nothing is known");
        assert_eq!(after(5e6, 1, 0), Some(false), "a thin link");
        assert_eq!(after(400e6, 1, 0), Some(true), "a wide one: it can only be wider");
        assert_eq!(after(50e6, LOOKS - 1, 0), None, "it may become faster");
        assert_eq!(after(50e6, LOOKS, 0), Some(false));
        assert_eq!(
            after(0.0, 0, LOOKED_AT),
            Some(false),
            "no more rows are held for it"
        );
    }
}
