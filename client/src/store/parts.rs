//! An object that is read in parts, all of them of one version.

mod flow;

use std::{fmt, ops::Range};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_RANGE, ETAG, IF_MATCH, RANGE},
};
use parking_lot::Mutex;
use pushdown::{Limits, Suffix};

use super::{
    Failure, GetValue, Store, ValueStream,
    rate::{Rate, Seen},
};
use crate::{
    error::{Error, ErrorKind, Result},
    retry::Backoff,
    sign::object_path,
    transport::Answer,
};

/// What stands behind the footer of a Parquet file: its length, and `PAR1`.
const TRAILER: u64 = 8;

/// One version of an object, read by ranges: the first answer tells which.
pub(super) struct Parts {
    store: Store,
    name: String,
    /// What the sample is known by; its suffix may tell the format.
    key: String,
    path: String,
    limits: Limits,
    rate: Rate,
    version: Mutex<Option<Version>>,
    fault: Mutex<Option<Error>>,
}

/// What all parts are of, by the first answer.
#[derive(Debug, Clone)]
enum Version {
    Parts {
        etag: HeaderValue,
        total: u64,
        /// Its last bytes: a table's footer is read once.
        end: Bytes,
    },
    /// The endpoint knows no ranges, or the object is empty.
    Whole(Bytes),
}

// === impl Parts ===

impl Parts {
    pub(super) fn new(store: Store, bucket: &str, key: &str, limits: &Limits) -> Self {
        Self {
            store,
            name: format!("s3://{bucket}/{key}"),
            key: key.to_owned(),
            path: object_path(bucket, key),
            limits: *limits,
            rate: Rate::default(),
            version: Mutex::default(),
            fault: Mutex::default(),
        }
    }

    /// The ETag of the version that is read, once it is known.
    pub(super) fn etag(&self) -> Option<HeaderValue> {
        match &*self.version.lock() {
            Some(Version::Parts { etag, .. }) => Some(etag.clone()),
            Some(Version::Whole(_)) | None => None,
        }
    }

    /// At what rate parts have come.
    pub(super) fn seen(&self) -> Seen {
        self.rate.seen(self.store.traffic())
    }

    /// Bytes that have come from the endpoint, these parts among them.
    pub(super) fn come(&self) -> u64 {
        self.store.traffic().down()
    }

    /// What the gateway makes of the object, in pieces: of its version at that time.
    pub(super) async fn value(&self, what: &GetValue<'_>) -> Result<ValueStream> {
        self.store.stream_at(&self.path, &self.name, what).await
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

    /// The error that was kept.
    pub(super) fn fault(&self) -> Option<Error> {
        self.fault.lock().take()
    }

    pub(super) async fn suffix(&self, length: u64) -> Result<Suffix> {
        let version = self.version.lock().clone();
        match version {
            Some(Version::Whole(bytes)) => return Ok(end_of(&bytes, length)),
            Some(Version::Parts { total, .. }) => {
                let bytes = self.part(total.saturating_sub(length)..total).await?;
                return Ok(Suffix { bytes, total });
            }
            None => {}
        }
        let mut backoff = self.store.backoff();
        loop {
            match self.first(length).await {
                Ok(suffix) => {
                    backoff.succeeded();
                    return Ok(suffix);
                }
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
        let end = bytes.clone();
        *self.version.lock() = Some(Version::Parts { etag, total, end });
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

    pub(super) async fn part(&self, range: Range<u64>) -> Result<Bytes> {
        let version = self.version.lock().clone();
        let (etag, total) = match version {
            Some(Version::Parts { etag, total, end }) => {
                match slice(&end, total - end.len() as u64, &range) {
                    Some(part) => return Ok(part),
                    None => (etag, total),
                }
            }
            Some(Version::Whole(bytes)) => {
                let part = slice(&bytes, 0, &range);
                return part.ok_or_else(|| malformed("a range lies beyond its end"));
            }
            None => return Err(Error::internal("a table is read from its end")),
        };
        let mut backoff = self.store.backoff();
        let bytes = loop {
            match self.part_once(&range, &etag, total).await {
                Ok(bytes) => break bytes,
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        };
        backoff.succeeded();
        self.keep_end(&range, &bytes);
        Ok(bytes)
    }

    /// Keeps a footer that is longer than the end which was read first: row groups are read by it again and again.
    fn keep_end(&self, range: &Range<u64>, bytes: &[u8]) {
        if let Some(Version::Parts { total, end, .. }) = &mut *self.version.lock() {
            let start = *total - end.len() as u64;
            let is_footer = range.start < start && range.end.saturating_add(TRAILER) >= *total;
            let known = range.end.checked_sub(start).map(usize::try_from);
            if let (true, Some(Ok(known))) = (is_footer, known)
                && let Some(rest) = end.get(known..)
            {
                *end = [bytes, rest].concat().into();
            }
        }
    }

    async fn part_once(&self, range: &Range<u64>, etag: &HeaderValue, total: u64) -> Result<Bytes, Failure> {
        let text = format!("{}-{}", range.start, range.end.saturating_sub(1));
        let mut on_its_way = self.rate.asked(self.store.traffic());
        let answer = self.ask(Some(&text), Some(etag)).await?;
        on_its_way.found(answer.length());
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
            Some((_, of)) if of != total => Err(self.replaced().into()),
            _ => Err(malformed("it answered a range with another one").into()),
        }
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
        if error.is_retryable() && backoff.pause(&error, asked).await {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Keeps an error while its text goes through the scan.
    pub(super) fn keep(&self, error: Error) -> pushdown::Error {
        let text = error.to_string();
        self.fault.lock().get_or_insert(error);
        pushdown::Error::new(pushdown::ErrorKind::Source, text)
    }
}

impl fmt::Debug for Parts {
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

/// A range of what `bytes` are a part of, from `start` on, if it lies in them.
fn slice(bytes: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let place = |position: u64| usize::try_from(position.checked_sub(start)?).ok();
    let (from, to) = (place(range.start)?, place(range.end)?);
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
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
