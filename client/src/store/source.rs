//! A stored object that is read in parts: what table steps on this side read through.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_RANGE, ETAG, IF_MATCH, RANGE},
};
use parking_lot::Mutex;
use pushdown::{Context, Description, Limits, Pipeline, Scan, Source, Suffix};

use super::{Failure, Store};
use crate::{
    error::{Error, ErrorKind, Result},
    retry::Backoff,
    sign::object_path,
    transport::Answer,
};

/// Ranges of one read that are fetched at a time.
const SIDE_BY_SIDE: usize = 4;

/// An object whose rows are read here, by ranges. Clones share what is known of it.
#[derive(Debug, Clone)]
pub struct StoredTable(Arc<Inner>);

struct Inner {
    store: Store,
    name: String,
    /// What the sample is known by; its suffix may tell the format.
    key: String,
    path: String,
    limits: Limits,
    version: Mutex<Option<Version>>,
    fault: Mutex<Option<Error>>,
}

/// What all parts are of, by the first answer.
#[derive(Debug, Clone)]
enum Version {
    Parts {
        etag: HeaderValue,
        total: u64,
    },
    /// The endpoint knows no ranges, or the object is empty.
    Whole(Bytes),
}

impl Store {
    /// An object that is read in parts. Nothing is read yet.
    pub fn table(&self, bucket: &str, key: &str, limits: &Limits) -> StoredTable {
        StoredTable(Arc::new(Inner {
            store: self.clone(),
            name: format!("s3://{bucket}/{key}"),
            key: key.to_owned(),
            path: object_path(bucket, key),
            limits: *limits,
            version: Mutex::default(),
            fault: Mutex::default(),
        }))
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

    /// Starts to run a pipeline's table steps here: what the gateway would answer, from the bytes that it would read.
    ///
    /// # Errors
    /// [`ErrorKind::Pipeline`] for a pipeline whose first step makes no table; [`ErrorKind::Sample`] for an object that
    /// it cannot be applied to; and as reading the object fails.
    pub async fn scan(&self, pipeline: &Pipeline) -> Result<Scan> {
        let source = Arc::new(self.clone());
        let scan = pipeline.scan(0..pipeline.len(), source, &self.context()).await;
        scan.map_err(|error| self.fault(error))
    }

    fn context(&self) -> Context<'_> {
        Context {
            limits: self.0.limits,
            ..Context::new(self.0.key.as_bytes())
        }
    }

    /// An error of a scan of this object, as this library has it.
    pub fn fault(&self, error: pushdown::Error) -> Error {
        let kept = match error.kind() {
            pushdown::ErrorKind::Source => self.0.fault.lock().take(),
            pushdown::ErrorKind::InvalidPipeline | pushdown::ErrorKind::Internal => None,
            kind => Some(Error::new(
                ErrorKind::Sample,
                format!("{}: {}: {error}", self.0.name, kind.code()),
            )),
        };
        kept.unwrap_or_else(|| error.into())
    }
}

impl Source for StoredTable {
    fn suffix(&self, length: u64) -> BoxFuture<'static, pushdown::Result<Suffix>> {
        let inner = Arc::clone(&self.0);
        async move { inner.suffix(length).await.map_err(|error| inner.keep(error)) }.boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, pushdown::Result<Vec<Bytes>>> {
        let inner = Arc::clone(&self.0);
        let reads = ranges.into_iter().map(move |range| {
            let inner = Arc::clone(&inner);
            async move { inner.part(range).await.map_err(|error| inner.keep(error)) }
        });
        stream::iter(reads).buffered(SIDE_BY_SIDE).try_collect().boxed()
    }

    fn stream(&self) -> BoxStream<'static, pushdown::Result<Bytes>> {
        let inner = Arc::clone(&self.0);
        stream::once(async move { inner.flow().await.map_err(|error| inner.keep(error)) })
            .try_flatten()
            .boxed()
    }
}

// === impl Inner ===

impl Inner {
    async fn suffix(&self, length: u64) -> Result<Suffix> {
        let version = self.version.lock().clone();
        match version {
            Some(Version::Whole(bytes)) => return Ok(end_of(&bytes, length)),
            Some(Version::Parts { total, .. }) => {
                let bytes = self.part(total.saturating_sub(length)..total).await?;
                return Ok(Suffix { bytes, total });
            }
            None => {}
        }
        let mut backoff = Backoff::new(self.store.retry());
        loop {
            match self.first(length).await {
                Ok(suffix) => return Ok(suffix),
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        }
    }

    /// The first read: its answer tells which version all others have to be of.
    async fn first(&self, length: u64) -> Result<Suffix, Failure> {
        let answer = self.ask(Some(&format!("-{length}")), None).await?;
        let status = answer.status;
        let answer = match status {
            StatusCode::PARTIAL_CONTENT => answer,
            // Nothing has no end.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return self.whole(self.ask(None, None).await?, length).await;
            }
            _ => return self.whole(answer, length).await,
        };
        let range = content_range(&answer.headers).filter(|(range, total)| range.end == *total);
        let (range, total) = range.ok_or_else(|| malformed("its Content-Range is none of an end"))?;
        let etag = answer.headers.get(ETAG).cloned();
        let etag = etag.ok_or_else(|| malformed("it has no ETag"))?;
        let bytes = exactly(answer, range.end - range.start).await?;
        *self.version.lock() = Some(Version::Parts { etag, total });
        Ok(Suffix { bytes, total })
    }

    async fn whole(&self, answer: Answer, length: u64) -> Result<Suffix, Failure> {
        if !answer.status.is_success() {
            return Err(Failure::Refused(answer.refusal().await));
        }
        let limit = self.limits.max_object_bytes;
        let bytes = answer.collect(limit).await?.ok_or(Failure::TooLarge(limit))?;
        let suffix = end_of(&bytes, length);
        *self.version.lock() = Some(Version::Whole(bytes));
        Ok(suffix)
    }

    async fn part(&self, range: Range<u64>) -> Result<Bytes> {
        let version = self.version.lock().clone();
        let (etag, total) = match version {
            Some(Version::Parts { etag, total }) => (etag, total),
            Some(Version::Whole(bytes)) => {
                let place = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
                let (start, end) = (place(range.start), place(range.end));
                let part = (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end));
                return part.ok_or_else(|| malformed("a range lies beyond its end"));
            }
            None => return Err(Error::internal("a table is read from its end")),
        };
        let mut backoff = Backoff::new(self.store.retry());
        loop {
            match self.part_once(&range, &etag, total).await {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        }
    }

    async fn part_once(&self, range: &Range<u64>, etag: &HeaderValue, total: u64) -> Result<Bytes, Failure> {
        let text = format!("{}-{}", range.start, range.end.saturating_sub(1));
        let answer = self.ask(Some(&text), Some(etag)).await?;
        if answer.status != StatusCode::PARTIAL_CONTENT {
            return Err(self.not_this(answer).await);
        }
        // Not every store heeds If-Match.
        if answer.headers.get(ETAG) != Some(etag) {
            return Err(self.replaced().into());
        }
        match content_range(&answer.headers) {
            Some((found, of)) if found == *range && of == total => {
                exactly(answer, range.end - range.start).await
            }
            _ => Err(malformed("it answered a range with another one").into()),
        }
    }

    /// All of the object, once it is known which version that is.
    async fn flow(self: &Arc<Self>) -> Result<BoxStream<'static, pushdown::Result<Bytes>>> {
        let version = self.version.lock().clone();
        let (etag, total) = match version {
            Some(Version::Whole(bytes)) => return Ok(stream::iter([Ok(bytes)]).boxed()),
            Some(Version::Parts { etag, total }) => (etag, total),
            None => return Err(Error::internal("a table is read from its end")),
        };
        let answer = match self.ask(None, Some(&etag)).await {
            Ok(answer) if answer.status == StatusCode::OK => answer,
            Ok(answer) => return Err(self.not_this(answer).await.into_error(&self.name).0),
            Err(failure) => return Err(failure.into_error(&self.name).0),
        };
        if answer.headers.get(ETAG) != Some(&etag) || answer.length() != Some(total) {
            return Err(self.replaced());
        }
        let inner = Arc::clone(self);
        let pieces = stream::try_unfold(answer, move |mut answer| {
            let inner = Arc::clone(&inner);
            async move {
                let piece = answer.chunk().await.map_err(|error| inner.keep(error))?;
                Ok(piece.map(|piece| (piece, answer)))
            }
        });
        Ok(pieces.boxed())
    }

    /// Sends a GET, and gives whatever was answered.
    async fn ask(&self, range: Option<&str>, etag: Option<&HeaderValue>) -> Result<Answer, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(range) = range {
            let value = HeaderValue::from_str(&format!("bytes={range}"));
            let value = value.map_err(|error| Error::internal("a range is no header").with_source(error))?;
            headers.insert(RANGE, value);
        }
        if let Some(etag) = etag {
            headers.insert(IF_MATCH, etag.clone());
        }
        self.store.ask(&self.path, headers).await
    }

    /// Why an answer is none of this version.
    async fn not_this(&self, answer: Answer) -> Failure {
        match answer.status {
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => self.replaced().into(),
            status if status.is_success() => malformed("it answered a range with the whole object").into(),
            _ => Failure::Refused(answer.refusal().await),
        }
    }

    fn replaced(&self) -> Error {
        let text = format!("{} was replaced while it was read: read it again", self.name);
        Error::new(ErrorKind::Sample, text)
    }

    /// Waits before the next attempt, where there is to be one.
    async fn pause(&self, failure: Failure, backoff: &mut Backoff) -> Result<()> {
        let (error, asked) = failure.into_error(&self.name);
        if error.is_retryable() && backoff.pause(asked).await {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Keeps an error while its text goes through the scan.
    fn keep(&self, error: Error) -> pushdown::Error {
        let text = error.to_string();
        self.fault.lock().get_or_insert(error);
        pushdown::Error::new(pushdown::ErrorKind::Source, text)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

async fn exactly(answer: Answer, length: u64) -> Result<Bytes, Failure> {
    match answer.collect(length).await? {
        Some(bytes) if bytes.len() as u64 == length => Ok(bytes),
        _ => Err(malformed("its length is none of its range").into()),
    }
}

fn end_of(bytes: &Bytes, length: u64) -> Suffix {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
    Suffix {
        bytes: bytes.slice(bytes.len() - length..),
        total: bytes.len() as u64,
    }
}

fn malformed(what: &str) -> Error {
    Error::protocol(format!("the endpoint's answer makes no sense: {what}"))
}

/// The range that an answer has, and the size of the whole.
fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, total): (u64, u64, u64) =
        (first.parse().ok()?, last.parse().ok()?, total.parse().ok()?);
    (first <= last && last < total).then(|| (first..last + 1, total))
}
