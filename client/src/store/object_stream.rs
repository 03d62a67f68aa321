//! Streams a whole object, all of it of one version. An answer that breaks off is continued where it ended.

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http::HeaderValue;
use pushdown::wire::RowError;
use pushdown_s3::{Attempt, ReadError, ResumableGet};

use super::{Failure, NamedFailure, Store, object_get::ObjectGet, shard::SHARD_REPLACED};
use crate::{
    error::{Error, Result},
    retry::Retries,
    stats::Counters,
    transport::Answer,
};

/// Bytes of a piece, but for its last chunk. Chunks that have arrived are passed on together.
const PIECE_BYTES: usize = 256 << 10;

/// The bytes of an object, in pieces as they arrive. The request is sent with the first one, and its retries are counted.
#[derive(Debug)]
pub(crate) struct ObjectStream<'a> {
    pieces: Pieces,
    retries: Retries<'a>,
}

/// The attempts to read the next piece.
#[derive(Debug)]
struct Pieces {
    name: String,
    transport: ObjectGet,
    get: ResumableGet<Answer>,
    /// The failure after the last piece.
    broken: Option<Failure>,
}

impl Store {
    /// Streams an object by one GET, in the version with this ETag if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an ETag that is no header value.
    pub(crate) fn stream_object<'a>(
        &self,
        bucket: &str,
        key: &str,
        etag: Option<&str>,
        counters: &'a Counters,
    ) -> Result<ObjectStream<'a>> {
        let etag = etag.map(HeaderValue::from_str).transpose().map_err(|error| {
            Error::config("the ETag of a shard is not a valid header value").with_source(error)
        })?;
        let pieces = Pieces {
            name: format!("s3://{bucket}/{key}"),
            transport: ObjectGet {
                store: self.clone(),
                bucket: bucket.to_owned(),
                key: key.to_owned(),
            },
            get: ResumableGet::whole(etag),
            broken: None,
        };
        Ok(ObjectStream {
            pieces,
            retries: self.counted_retries(counters),
        })
    }
}

impl ObjectStream<'_> {
    /// The ETag of the version that is read, if it is known and text.
    pub(crate) fn etag(&self) -> Option<&str> {
        self.pieces.get.etag()?.to_str().ok()
    }

    /// The next piece; `None` at the end of the object.
    ///
    /// # Errors
    /// If the object cannot be read further: the store refuses it, has another version by now, or the retries are exhausted.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = self.retries.advance(&mut self.pieces).await;
        let next = next.map_err(|failed| failed.failure)?;
        if next.is_none() {
            self.retries.succeeded();
        }
        Ok(next)
    }
}

impl Attempt for Pieces {
    type Output = Option<Bytes>;
    type Error = NamedFailure;

    async fn run(&mut self) -> Result<Option<Bytes>, NamedFailure> {
        let piece = self.piece().await;
        piece.map_err(|failure| failure.named(self.name.clone()))
    }
}

impl Pieces {
    /// The chunks that have arrived, of a new answer if none is being read.
    async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(failure) = self.broken.take() {
            return Err(failure);
        }
        let Some(first) = self.chunk().await? else {
            return Ok(None);
        };
        let mut piece = BytesMut::from(first);
        while piece.len() < PIECE_BYTES {
            match self.chunk().now_or_never() {
                Some(Ok(Some(chunk))) => piece.extend_from_slice(&chunk),
                Some(Err(failure)) => {
                    self.broken = Some(failure);
                    break;
                }
                Some(Ok(None)) | None => break,
            }
        }
        Ok(Some(piece.freeze()))
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let error = match self.get.chunk(&self.transport).await {
            Ok(chunk) => return Ok(chunk),
            Err(error) => error,
        };
        let unusable = |code, message| Failure::Unusable(RowError::new(code, message));
        if matches!(error, ReadError::MissingEtag) {
            let message = "the answer broke off, and the store states no ETag by which it could be continued";
            return Err(unusable("RequestTimeout", message));
        }
        let replaced = || unusable(SHARD_REPLACED, "the shard was replaced after its reading began");
        Err(Failure::of_read(error, replaced).await)
    }
}
