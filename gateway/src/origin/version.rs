//! Reads of ranges of one version of an object.
//!
//! Each read is the caller's signed GET with an unsigned `Range`, and with the first answer's ETag as `If-Match`.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pushdown_s3::{
    AnswerHead, ObjectPart, ObjectVersion, RangeTransport, ReadError, SuffixAnswer, read_suffix,
};

use super::{Authorization, EntryTicket, ObjectId, Origin, OriginObject, OriginRequest, frames};
use crate::error::{Error, ErrorKind, Result};

/// The end of an object.
#[derive(Debug)]
pub enum ObjectTail {
    /// The end, and a handle to read the rest.
    Part(Box<TailPart>),
    /// The whole object, its body unread: the store does not support ranges, the object is empty, or it is a member of a shard.
    Whole(OriginObject),
}

/// The store's answer to a request for the end of an object.
#[derive(Debug)]
pub enum FetchedTail {
    /// The end of the object.
    Tail(ObjectTail),
    /// Any status except 200 and 206: the store's answer to the caller.
    Refused(OriginObject),
}

/// The last bytes of an object.
#[derive(Debug)]
pub struct TailPart {
    /// The store's headers.
    pub headers: HeaderMap,
    /// The store's authorization to read this version, if it was to be noted.
    pub authorization: Option<Authorization>,
    /// The last bytes.
    pub part: ObjectPart,
    /// The version of the object that they belong to.
    pub object: VersionedObject,
}

/// One version of an object. Clones share connections.
#[derive(Debug, Clone)]
pub struct VersionedObject {
    get: CallerGet,
    version: ObjectVersion,
}

/// The caller's signed GET.
#[derive(Debug, Clone)]
struct CallerGet {
    origin: Origin,
    request: OriginRequest,
}

impl Origin {
    /// Reads the last `length` bytes of an object, or the whole object if it is shorter. There is no HEAD before: it would
    /// require another signature. A member of a shard is read whole.
    ///
    /// Notes the store's authorization to read `object`, for values of it that are cached. `ticket` is that of a member.
    pub async fn read_tail(
        &self,
        request: OriginRequest,
        ticket: Option<EntryTicket>,
        object: Option<ObjectId>,
        length: u64,
    ) -> Result<FetchedTail> {
        if request.has_member() {
            let answer = self.read_joined(request, ticket).await?;
            return Ok(match answer.status {
                StatusCode::OK => FetchedTail::Tail(ObjectTail::Whole(answer)),
                _ => FetchedTail::Refused(answer),
            });
        }
        let get = CallerGet {
            origin: self.clone(),
            request,
        };
        let (version, range, mut answer) = match read_suffix(&get, length).await.map_err(read_error)? {
            SuffixAnswer::Part {
                version,
                range,
                answer,
            } => (version, range, answer),
            SuffixAnswer::Other(answer) => {
                return Ok(match answer.status {
                    StatusCode::OK => FetchedTail::Tail(ObjectTail::Whole(answer)),
                    _ => FetchedTail::Refused(answer),
                });
            }
        };
        // Memory for more bytes is not reserved.
        if range.length() > length {
            return Err(invalid_answer(
                "Content-Range does not match the requested suffix",
            ));
        }
        let authorization = object.and_then(|object| Authorization::from_answer(object, &answer));
        let bytes = frames::read_to_end(&[], &mut answer.body, range.length()).await?;
        Ok(FetchedTail::Tail(ObjectTail::Part(Box::new(TailPart {
            headers: answer.headers,
            authorization,
            part: ObjectPart {
                offset: range.range.start,
                bytes,
            },
            object: VersionedObject { get, version },
        }))))
    }
}

impl VersionedObject {
    /// Size of the object in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.version.total_bytes
    }

    /// Reads a range within the object.
    ///
    /// # Errors
    /// [`ErrorKind::Replaced`] if the object was replaced; [`ErrorKind::AccessDenied`] if the signature has expired; and
    /// the errors of [`Origin::read`].
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let answer = self.version.read_range(&self.get, &range).await;
        let mut answer = answer.map_err(read_error)?;
        frames::read_to_end(&[], &mut answer.body, range.end - range.start).await
    }

    /// Requests the whole object, and returns the answer with its body unread.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub async fn read_all(&self) -> Result<OriginObject> {
        self.version.read_whole(&self.get).await.map_err(read_error)
    }
}

impl RangeTransport for CallerGet {
    type Answer = OriginObject;
    type Error = Error;

    async fn get(&self, headers: HeaderMap) -> Result<OriginObject> {
        let mut request = self.request.clone();
        for (name, value) in &headers {
            request.add(name.clone(), value.clone());
        }
        self.origin.read(request).await
    }
}

impl AnswerHead for OriginObject {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn content_length(&self) -> Option<u64> {
        self.content_length
    }
}

fn read_error(error: ReadError<OriginObject, Error>) -> Error {
    match error {
        ReadError::Transport(error) => error,
        ReadError::Replaced => Error::new(
            ErrorKind::Replaced,
            "the object was replaced while it was read; retry to read the new one",
        ),
        ReadError::MissingEtag => invalid_answer(
            "expected an ETag with a range, found none; a table is read in parts only with an ETag",
        ),
        ReadError::Mismatch(reason) => invalid_answer(reason),
        ReadError::UnexpectedStatus(answer) => unexpected_status(answer.status),
        ReadError::Header(error) => {
            Error::new(ErrorKind::Internal, "cannot write a range as a header value").with_source(error)
        }
    }
}

/// The error of a later range that was not answered with 206.
fn unexpected_status(status: StatusCode) -> Error {
    match status {
        StatusCode::OK => invalid_answer(
            "expected 206 for a range, as for the earlier range, found 200 and the whole object",
        ),
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Error::new(
            ErrorKind::AccessDenied,
            "the store authorized the request and then refused it during the scan: the signature has expired, or \
             the permission was revoked; sign the request again and retry",
        ),
        StatusCode::NOT_FOUND => Error::new(ErrorKind::NotFound, "the object was deleted while it was read"),
        status => Error::new(
            ErrorKind::OriginUnavailable,
            format!("the store answered {} during the scan", status.as_u16()),
        ),
    }
}

fn invalid_answer(reason: &str) -> Error {
    Error::new(
        ErrorKind::OriginUnavailable,
        format!("invalid answer of the store: {reason}"),
    )
}
