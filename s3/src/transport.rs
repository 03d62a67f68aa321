//! Signed GETs of one object, as another crate sends them, and why they fail.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header::InvalidHeaderValue};

/// Sends signed GETs of one object.
pub trait RangeTransport {
    /// An answer whose body has not been read.
    type Answer: AnswerHead;
    /// Why there is no answer.
    type Error;

    /// Sends a GET with these headers besides those of the signature. Returns its answer, with any status.
    fn get(&self, headers: HeaderMap) -> impl Future<Output = Result<Self::Answer, Self::Error>> + Send;
}

/// What is known of an answer before its body is read.
pub trait AnswerHead {
    /// The status.
    fn status(&self) -> StatusCode;
    /// The headers.
    fn headers(&self) -> &HeaderMap;
    /// The length of the body in bytes, if it is known.
    fn content_length(&self) -> Option<u64>;
}

/// An answer whose body arrives in pieces.
pub trait AnswerBody: AnswerHead {
    /// Why the body broke off.
    type Error;

    /// The next piece of the body; `None` at the end of a complete body, and after it.
    ///
    /// A future that is dropped before it is ready has taken nothing.
    fn chunk(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

/// Why a read failed.
#[derive(Debug)]
pub enum ReadError<A, E> {
    /// There is no answer, or its body broke off.
    Transport(E),
    /// The object was replaced after the first answer.
    Replaced,
    /// A part without an ETag: no later part can be compared with it.
    MissingEtag,
    /// The answer does not belong to the request; the text says why.
    Mismatch(&'static str),
    /// An answer with another status than that of the requested range or object.
    UnexpectedStatus(A),
    /// A range cannot be written as a header value.
    Header(InvalidHeaderValue),
}

/// The result of a read.
pub type ReadResult<V, T> = Result<V, ReadError<<T as RangeTransport>::Answer, <T as RangeTransport>::Error>>;

impl<A, E> ReadError<A, E> {
    /// The same error of another kind of answer.
    pub fn map_answer<B>(self, map: impl FnOnce(A) -> B) -> ReadError<B, E> {
        match self {
            Self::Transport(error) => ReadError::Transport(error),
            Self::Replaced => ReadError::Replaced,
            Self::MissingEtag => ReadError::MissingEtag,
            Self::Mismatch(reason) => ReadError::Mismatch(reason),
            Self::UnexpectedStatus(answer) => ReadError::UnexpectedStatus(map(answer)),
            Self::Header(error) => ReadError::Header(error),
        }
    }
}

pub(crate) async fn send<T: RangeTransport>(transport: &T, headers: HeaderMap) -> ReadResult<T::Answer, T> {
    transport.get(headers).await.map_err(ReadError::Transport)
}

/// The value of `Range` for `0-4`, `5-` or `-3`.
pub(crate) fn range_value<A, E>(range: &str) -> Result<HeaderValue, ReadError<A, E>> {
    HeaderValue::from_str(&format!("bytes={range}")).map_err(ReadError::Header)
}
