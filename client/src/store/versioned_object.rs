//! An object read by ranges, all of them of one version.

mod range_get;
mod range_read;
mod stream;

use std::{fmt, ops::Range};

use bytes::Bytes;
use pushdown::{Limits, Suffix};
use pushdown_exec::sync::Mutex;
use pushdown_s3::{ObjectPart, ObjectVersion, ReadError, SuffixAnswer, read_suffix};

use self::{
    range_get::{RangeAnswer, RangeGet},
    range_read::RangeRead,
};
use super::{Failure, GatewayRoute, Store, ValueRequest, ValueStream, failure::malformed, table::RangePart};
use crate::{
    error::{Error, ErrorKind, Result},
    measure::{RateSamples, ReadRate},
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
    bucket: String,
    limits: Limits,
    rate: ReadRate,
    version: Mutex<Option<Version>>,
}

/// The version of all ranges, as determined by the first answer.
#[derive(Debug, Clone)]
enum Version {
    Ranges(ObjectEnd),
    /// The endpoint does not support ranges, or the object is empty.
    Whole(Bytes),
}

/// A version of an object, and its last bytes, so that a table's footer is read once.
#[derive(Debug, Clone)]
pub(crate) struct ObjectEnd {
    version: ObjectVersion,
    tail: ObjectPart,
}

impl ObjectEnd {
    /// The number of bytes.
    #[cfg(feature = "tables")]
    pub(crate) const fn len(&self) -> u64 {
        self.tail.bytes.len() as u64
    }
}

impl VersionedObject {
    pub(super) fn new(store: Store, bucket: &str, key: &str, limits: &Limits) -> Self {
        Self {
            store,
            name: format!("s3://{bucket}/{key}"),
            key: key.to_owned(),
            bucket: bucket.to_owned(),
            limits: *limits,
            rate: ReadRate::default(),
            version: Mutex::default(),
        }
    }

    /// The same object in a version whose end has been read.
    #[cfg(feature = "tables")]
    pub(super) fn with_end(self, end: ObjectEnd) -> Self {
        Self {
            version: Mutex::new(Some(Version::Ranges(end))),
            ..self
        }
    }

    /// The version that is read and its end, once they are known. `None` if the endpoint does not support ranges.
    #[cfg(feature = "tables")]
    pub(super) fn end(&self) -> Option<ObjectEnd> {
        match &*self.version.lock() {
            Some(Version::Ranges(end)) => Some(end.clone()),
            Some(Version::Whole(_)) | None => None,
        }
    }

    /// The ETag of the version that is read, once it is known. `None` if the endpoint does not support ranges.
    pub(super) fn etag(&self) -> Option<http::HeaderValue> {
        match &*self.version.lock() {
            Some(Version::Ranges(end)) => Some(end.version.etag.clone()),
            Some(Version::Whole(_)) | None => None,
        }
    }

    /// The measured rate at which ranges arrive.
    pub(super) fn read_rate(&self) -> RateSamples {
        self.rate.samples(self.store.traffic())
    }

    /// As [`read_rate`](Self::read_rate), measured since the last call.
    #[cfg(feature = "tables")]
    pub(super) fn take_read_rate(&self) -> RateSamples {
        self.rate.take_samples(self.store.traffic())
    }

    /// Bytes received from the endpoint, including those of this object.
    pub(super) fn received_bytes(&self) -> u64 {
        self.store.traffic().received_bytes()
    }

    /// Requests the value that the gateway computes from the object, as a stream, in the version at that time. If the gateway `is_dispensable`
    /// and does not answer, nothing is requested again.
    pub(super) async fn value(
        &self,
        request: &ValueRequest<'_>,
        is_dispensable: bool,
    ) -> Result<ValueStream> {
        let route = GatewayRoute::to(&self.bucket, &self.key).dispensable_if(is_dispensable);
        self.store
            .stream_value_from(&self.bucket, &self.key, request, route)
            .await
    }

    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn bucket(&self) -> &str {
        &self.bucket
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
            Some(Version::Ranges(end)) => {
                let total = end.version.total_bytes;
                let bytes = self.range(total.saturating_sub(length)..total).await?;
                return Ok(Suffix { bytes, total });
            }
            None => {}
        }
        let first = || self.first_suffix(length);
        self.store.with_retries(&self.name, first).await
    }

    /// The first read. Its answer determines the version of all others.
    async fn first_suffix(&self, length: u64) -> Result<Suffix, Failure> {
        match read_suffix(&self.get(), length).await {
            Ok(SuffixAnswer::Part {
                version,
                range,
                answer,
            }) => {
                let bytes = exactly(answer, range.length()).await?;
                let (total, offset) = (version.total_bytes, range.range.start);
                let tail = ObjectPart {
                    offset,
                    bytes: bytes.clone(),
                };
                *self.version.lock() = Some(Version::Ranges(ObjectEnd { version, tail }));
                Ok(Suffix { bytes, total })
            }
            Ok(SuffixAnswer::Other(answer)) => self.whole(answer.answer, length).await,
            Err(error) => Err(self.failure(error).await),
        }
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
        self.range_observed(range, &|_| ()).await
    }

    /// The same. Calls `arrived` with each part; what is known is not requested.
    pub(super) async fn range_observed(
        &self,
        range: Range<u64>,
        arrived: &(dyn Fn(RangePart) + Send + Sync),
    ) -> Result<Bytes> {
        let known = |part: &Bytes| arrived(RangePart::Known(part.len() as u64));
        let version = self.version.lock().clone();
        let version = match version {
            Some(Version::Ranges(end)) => match end.tail.slice(&range) {
                Some(part) => return Ok(part).inspect(known),
                None => end.version,
            },
            Some(Version::Whole(bytes)) => {
                let part = ObjectPart { offset: 0, bytes }.slice(&range);
                let part = part.ok_or_else(|| malformed("a range lies beyond its end"));
                return part.inspect(known);
            }
            None => return Err(Error::internal("the end of a table must be read first")),
        };
        let mut read = RangeRead::new(self, &version, &range, arrived);
        let bytes = self.store.retries().complete(&mut read).await;
        let bytes = bytes.map_err(|failed| failed.error)?;
        self.extend_end(&range, &bytes);
        Ok(bytes)
    }

    /// Keeps a footer that is longer than the end that was read first: every row group needs it.
    fn extend_end(&self, range: &Range<u64>, bytes: &[u8]) {
        if let Some(Version::Ranges(ObjectEnd { version, tail })) = &mut *self.version.lock() {
            let is_footer =
                range.start < tail.offset && range.end.saturating_add(TRAILER_BYTES) >= version.total_bytes;
            let known = range.end.checked_sub(tail.offset).map(usize::try_from);
            if let (true, Some(Ok(known))) = (is_footer, known)
                && let Some(rest) = tail.bytes.get(known..)
            {
                *tail = ObjectPart {
                    offset: range.start,
                    bytes: [bytes, rest].concat().into(),
                };
            }
        }
    }

    /// GETs whose rate is not measured.
    const fn get(&self) -> RangeGet<'_> {
        RangeGet {
            object: self,
            is_measured: false,
        }
    }

    async fn failure(&self, error: ReadError<RangeAnswer<'_>, Failure>) -> Failure {
        // Measured until the refusal has arrived.
        let mut pending = None;
        let error = error.map_answer(|refused| {
            pending = refused.pending;
            refused.answer
        });
        match error {
            ReadError::UnexpectedStatus(answer) if answer.status.is_success() => malformed(&format!(
                "the store answered a range request with {} and the whole object (expected 206)",
                answer.status.as_u16()
            ))
            .into(),
            error => {
                let replaced = || {
                    let text = format!("{} was replaced while it was read: read it again", self.name);
                    Error::new(ErrorKind::Sample, text).into()
                };
                Failure::of_read(error, replaced).await
            }
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

/// Reads the body of an answer to a range request. The measurement ends with the body.
async fn exactly(answer: RangeAnswer<'_>, length: u64) -> Result<Bytes, Failure> {
    let RangeAnswer {
        answer,
        pending: _pending,
    } = answer;
    match answer.collect(length).await? {
        Some(bytes) if bytes.len() as u64 == length => Ok(bytes),
        _ => Err(malformed("its length does not match its range").into()),
    }
}

fn end_of(bytes: &Bytes, length: u64) -> Suffix {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
    Suffix {
        bytes: bytes.slice(bytes.len() - length..),
        total: bytes.len() as u64,
    }
}
