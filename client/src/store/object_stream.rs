//! Streams a whole object, all of it of one version. An answer that breaks off is continued where it ended.

use bytes::{Buf as _, Bytes, BytesMut};
use futures::FutureExt as _;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, RANGE},
};
use pushdown::wire::RowError;
use pushdown_s3::ContentRange;

use super::{Failure, Store, shard::SHARD_REPLACED};
use crate::{
    error::{Error, Result},
    retry::Backoff,
    sign::object_path,
    stats::{Counters, add},
    transport::Answer,
};

/// Bytes of a piece, but for its last chunk. Chunks that have arrived are passed on together.
const PIECE_BYTES: usize = 256 << 10;

/// The bytes of an object, in pieces as they arrive. The request is sent with the first one.
#[derive(Debug)]
pub(crate) struct ObjectStream {
    store: Store,
    path: String,
    name: String,
    /// The version: known before, or from the first answer.
    etag: Option<HeaderValue>,
    /// Bytes that were handed over.
    position: u64,
    answer: Option<Answer>,
    /// Bytes at the beginning of the answer that were handed over before.
    repeated: u64,
    /// The error after which the answer is not read further.
    broken: Option<Error>,
    backoff: Backoff,
}

impl Store {
    /// Streams an object by one GET, in the version with this ETag if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an ETag that is no header value.
    pub(crate) fn stream_object(&self, bucket: &str, key: &str, etag: Option<&str>) -> Result<ObjectStream> {
        let etag = etag.map(HeaderValue::from_str).transpose().map_err(|error| {
            Error::config("the ETag of a shard is not a valid header value").with_source(error)
        })?;
        Ok(ObjectStream {
            store: self.clone(),
            path: object_path(bucket, key),
            name: format!("s3://{bucket}/{key}"),
            etag,
            position: 0,
            answer: None,
            repeated: 0,
            broken: None,
            backoff: self.backoff(),
        })
    }
}

impl ObjectStream {
    /// The ETag of the version that is read, if it is known and text.
    pub(crate) fn etag(&self) -> Option<&str> {
        self.etag.as_ref()?.to_str().ok()
    }

    /// The next piece; `None` at the end of the object. Retries are counted.
    ///
    /// # Errors
    /// If the object cannot be read further: the store refuses it, has another version by now, or the retries are exhausted.
    pub(crate) async fn next(&mut self, counters: &Counters) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.attempt().await {
                Ok(None) => {
                    self.backoff.succeeded();
                    return Ok(None);
                }
                // The backoff counts from 0 again: something arrived.
                Ok(Some(piece)) => {
                    self.backoff.progressed();
                    return Ok(Some(piece));
                }
                Err(failure) => self.pause(failure, counters).await?,
            }
        }
    }

    /// Waits before the next attempt. Returns the failure if no attempt is left.
    async fn pause(&mut self, failure: Failure, counters: &Counters) -> Result<(), Failure> {
        let (again, retry_after) = failure.retry();
        let subject = format!("{}: {failure}", self.name);
        if again && self.backoff.pause(&subject, retry_after).await {
            add(&counters.retries, 1);
            return Ok(());
        }
        Err(failure)
    }

    /// Reads a piece of the answer, of a new one if there is none. An answer that fails is not put back.
    async fn attempt(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(error) = self.broken.take() {
            return Err(error.into());
        }
        let mut answer = match self.answer.take() {
            Some(answer) => answer,
            None => self.open().await?,
        };
        loop {
            let Some(first) = answer.chunk().await? else {
                return Ok(None);
            };
            let mut piece = BytesMut::from(first);
            while piece.len() < PIECE_BYTES {
                match answer.chunk().now_or_never() {
                    Some(Ok(Some(chunk))) => piece.extend_from_slice(&chunk),
                    Some(Err(error)) => {
                        self.broken = Some(error);
                        break;
                    }
                    Some(Ok(None)) | None => break,
                }
            }
            let repeated = usize::try_from(self.repeated).unwrap_or(usize::MAX);
            let repeated = repeated.min(piece.len());
            piece.advance(repeated);
            self.repeated -= repeated as u64;
            if piece.is_empty() {
                match self.broken.take() {
                    Some(error) => return Err(error.into()),
                    None => continue,
                }
            }
            self.position += piece.len() as u64;
            if self.broken.is_none() {
                self.answer = Some(answer);
            }
            return Ok(Some(piece.freeze()));
        }
    }

    /// Requests the rest of the object, and waits for the head of the answer.
    async fn open(&mut self) -> Result<Answer, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(etag) = &self.etag {
            headers.insert(IF_MATCH, etag.clone());
        }
        if self.position > 0 {
            if self.etag.is_none() {
                let text =
                    "the answer broke off, and the store states no ETag by which it could be continued";
                return Err(Failure::Unusable(RowError::new("RequestTimeout", text)));
            }
            let range = HeaderValue::from_str(&format!("bytes={}-", self.position));
            let range =
                range.map_err(|error| Error::internal("a range is not a header value").with_source(error))?;
            headers.insert(RANGE, range);
        }
        let answer = self.store.send_get(&self.path, headers).await?;
        self.repeated = match answer.status {
            StatusCode::OK => self.position,
            StatusCode::PARTIAL_CONTENT => {
                let range = ContentRange::from_headers(&answer.headers);
                if range.is_none_or(|found| found.range.start != self.position) {
                    let text =
                        "invalid answer from the endpoint: Content-Range does not match the requested range";
                    return Err(Error::protocol(text).into());
                }
                0
            }
            StatusCode::PRECONDITION_FAILED => return Err(Failure::Unusable(replaced())),
            _ => return Err(Failure::Refused(answer.refusal().await)),
        };
        let found = answer.headers.get(ETAG);
        // Not every store evaluates `If-Match`.
        if self.etag.is_some() && found != self.etag.as_ref() {
            return Err(Failure::Unusable(replaced()));
        }
        self.etag = found.cloned();
        Ok(answer)
    }
}

fn replaced() -> RowError {
    let message = "the shard was replaced after its reading began";
    RowError::new(SHARD_REPLACED, message)
}
