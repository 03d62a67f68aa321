//! An object read by ranges, all of them of one version.

mod stream;

use std::{fmt, ops::Range};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, RANGE},
};
use parking_lot::Mutex;
use pushdown::{Limits, Suffix};
use pushdown_s3::ContentRange;

use super::{Failure, Store, ValueRequest, ValueStream};
use crate::{
    error::{Error, ErrorKind, Result},
    planning::{RateSamples, ReadRate},
    retry::Backoff,
    sign::object_path,
    transport::Answer,
};

/// The bytes after the footer of a Parquet file: its length, and `PAR1`.
const TRAILER_BYTES: u64 = 8;

/// One version of an object, read by ranges. The first answer determines the version.
pub(super) struct VersionedObject {
    store: Store,
    name: String,
    /// The object's key. Its extension may determine the format.
    key: String,
    path: String,
    limits: Limits,
    rate: ReadRate,
    version: Mutex<Option<Version>>,
}

/// The version of all ranges, as determined by the first answer.
#[derive(Debug, Clone)]
enum Version {
    Ranges {
        etag: HeaderValue,
        total: u64,
        /// Its last bytes, so that a table's footer is read once.
        end: Bytes,
    },
    /// The endpoint does not support ranges, or the object is empty.
    Whole(Bytes),
}

// === impl VersionedObject ===

impl VersionedObject {
    pub(super) fn new(store: Store, bucket: &str, key: &str, limits: &Limits) -> Self {
        Self {
            store,
            name: format!("s3://{bucket}/{key}"),
            key: key.to_owned(),
            path: object_path(bucket, key),
            limits: *limits,
            rate: ReadRate::default(),
            version: Mutex::default(),
        }
    }

    /// The ETag of the version that is read, once it is known.
    #[cfg(feature = "tables")]
    pub(super) fn etag(&self) -> Option<HeaderValue> {
        match &*self.version.lock() {
            Some(Version::Ranges { etag, .. }) => Some(etag.clone()),
            Some(Version::Whole(_)) | None => None,
        }
    }

    /// The measured rate at which ranges arrive.
    pub(super) fn read_rate(&self) -> RateSamples {
        self.rate.samples(self.store.traffic())
    }

    /// Bytes received from the endpoint, including those of this object.
    pub(super) fn received_bytes(&self) -> u64 {
        self.store.traffic().received_bytes()
    }

    /// Requests the value that the gateway computes from the object, as a stream, in the version at that time.
    pub(super) async fn value(&self, request: &ValueRequest<'_>) -> Result<ValueStream> {
        self.store.stream_at(&self.path, &self.name, request).await
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) async fn suffix(&self, length: u64) -> Result<Suffix> {
        let version = self.version.lock().clone();
        match version {
            Some(Version::Whole(bytes)) => return Ok(end_of(&bytes, length)),
            Some(Version::Ranges { total, .. }) => {
                let bytes = self.range(total.saturating_sub(length)..total).await?;
                return Ok(Suffix { bytes, total });
            }
            None => {}
        }
        let mut backoff = self.store.backoff();
        loop {
            match self.first_suffix(length).await {
                Ok(suffix) => {
                    backoff.succeeded();
                    return Ok(suffix);
                }
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        }
    }

    /// The first read. Its answer determines the version of all others.
    async fn first_suffix(&self, length: u64) -> Result<Suffix, Failure> {
        let answer = self.send(Some(&format!("-{length}")), None).await?;
        let status = answer.status;
        let answer = match status {
            StatusCode::PARTIAL_CONTENT => answer,
            // An empty object has no satisfiable range.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return self.whole(self.send(None, None).await?, length).await;
            }
            _ => return self.whole(answer, length).await,
        };
        let part = ContentRange::from_headers(&answer.headers).filter(ContentRange::is_suffix);
        let part = part.ok_or_else(|| malformed("Content-Range does not match the requested suffix"))?;
        let total = part.total_bytes;
        let etag = answer.headers.get(ETAG).cloned();
        let etag = etag.ok_or_else(|| malformed("expected an ETag"))?;
        let bytes = exactly(answer, part.length()).await?;
        let end = bytes.clone();
        *self.version.lock() = Some(Version::Ranges { etag, total, end });
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

    pub(super) async fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let version = self.version.lock().clone();
        let (etag, total) = match version {
            Some(Version::Ranges { etag, total, end }) => {
                match slice(&end, total - end.len() as u64, &range) {
                    Some(part) => return Ok(part),
                    None => (etag, total),
                }
            }
            Some(Version::Whole(bytes)) => {
                let part = slice(&bytes, 0, &range);
                return part.ok_or_else(|| malformed("a range lies beyond its end"));
            }
            None => return Err(Error::internal("the end of a table must be read first")),
        };
        let mut backoff = self.store.backoff();
        let bytes = loop {
            match self.range_once(&range, &etag, total).await {
                Ok(bytes) => break bytes,
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        };
        backoff.succeeded();
        self.extend_end(&range, &bytes);
        Ok(bytes)
    }

    /// Keeps a footer that is longer than the end that was read first: every row group needs it.
    fn extend_end(&self, range: &Range<u64>, bytes: &[u8]) {
        if let Some(Version::Ranges { total, end, .. }) = &mut *self.version.lock() {
            let start = *total - end.len() as u64;
            let is_footer = range.start < start && range.end.saturating_add(TRAILER_BYTES) >= *total;
            let known = range.end.checked_sub(start).map(usize::try_from);
            if let (true, Some(Ok(known))) = (is_footer, known)
                && let Some(rest) = end.get(known..)
            {
                *end = [bytes, rest].concat().into();
            }
        }
    }

    async fn range_once(&self, range: &Range<u64>, etag: &HeaderValue, total: u64) -> Result<Bytes, Failure> {
        let text = format!("{}-{}", range.start, range.end.saturating_sub(1));
        let mut pending = self.rate.begin_read(self.store.traffic());
        let answer = self.send(Some(&text), Some(etag)).await?;
        pending.on_headers(answer.length());
        if answer.status != StatusCode::PARTIAL_CONTENT {
            return Err(self.unexpected_status(answer).await);
        }
        // Not every store supports If-Match.
        if answer.headers.get(ETAG) != Some(etag) {
            return Err(self.replaced().into());
        }
        match ContentRange::from_headers(&answer.headers) {
            Some(found) if found.total_bytes != total => Err(self.replaced().into()),
            Some(found) if found.range == *range => exactly(answer, found.length()).await,
            _ => Err(malformed("Content-Range does not match the requested range").into()),
        }
    }

    /// Sends a GET and returns its answer, with any status.
    async fn send(&self, range: Option<&str>, etag: Option<&HeaderValue>) -> Result<Answer, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(range) = range {
            let value = HeaderValue::from_str(&format!("bytes={range}"));
            let value =
                value.map_err(|error| Error::internal("a range is not a header value").with_source(error))?;
            headers.insert(RANGE, value);
        }
        if let Some(etag) = etag {
            headers.insert(IF_MATCH, etag.clone());
        }
        self.store.send_get(&self.path, headers).await
    }

    /// The failure of a range request that was not answered with 206.
    async fn unexpected_status(&self, answer: Answer) -> Failure {
        match answer.status {
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => self.replaced().into(),
            status if status.is_success() => malformed(&format!(
                "the store answered a range request with {} and the whole object (expected 206)",
                status.as_u16()
            ))
            .into(),
            _ => Failure::Refused(answer.refusal().await),
        }
    }

    fn replaced(&self) -> Error {
        let text = format!("{} was replaced while it was read: read it again", self.name);
        Error::new(ErrorKind::Sample, text)
    }

    /// Waits before the next attempt. Returns the error if no attempt is left.
    async fn pause(&self, failure: Failure, backoff: &mut Backoff) -> Result<()> {
        let (error, retry_after) = failure.into_error(&self.name);
        if error.is_retryable() && backoff.pause(&error, retry_after).await {
            Ok(())
        } else {
            Err(error)
        }
    }
}

impl fmt::Debug for VersionedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

async fn exactly(answer: Answer, length: u64) -> Result<Bytes, Failure> {
    match answer.collect(length).await? {
        Some(bytes) if bytes.len() as u64 == length => Ok(bytes),
        _ => Err(malformed("its length does not match its range").into()),
    }
}

/// A range of an object of which `bytes` is the part from `start` on; `None` if the range is not inside that part.
fn slice(bytes: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let offset = |position: u64| usize::try_from(position.checked_sub(start)?).ok();
    let (from, to) = (offset(range.start)?, offset(range.end)?);
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
}

fn end_of(bytes: &Bytes, length: u64) -> Suffix {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
    Suffix {
        bytes: bytes.slice(bytes.len() - length..),
        total: bytes.len() as u64,
    }
}

fn malformed(reason: &str) -> Error {
    Error::protocol(format!("invalid answer from the endpoint: {reason}"))
}
