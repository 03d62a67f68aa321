//! A client's body in pieces, and what leaves of it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::executor::block_on;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::upload::set;
use crate::s3::auth::stream::{StreamError, VerifyingBody};

/// A client's body in pieces, with an HTTP trailer at its end.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) left: VecDeque<Bytes>,
    pub(super) content_length: Option<u64>,
    pub(super) has_ended: bool,
}

/// What left, and the code of the error.
pub(super) type Outcome = (Vec<u8>, Result<(), &'static str>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(piece) = self.left.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if std::mem::replace(&mut self.has_ended, true) {
            return Poll::Ready(None);
        }
        let mut trailers = HeaderMap::new();
        set(&mut trailers, "x-amz-acl", "public-read");
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn size_hint(&self) -> SizeHint {
        self.content_length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

pub(super) fn read(mut body: VerifyingBody<Pieces>) -> Outcome {
    let content_length = body.content_length();
    let mut output = Vec::new();
    block_on(async {
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => output.extend_from_slice(frame.data_ref().unwrap()),
                Err(error) => {
                    assert!(body.frame().await.is_none(), "an error is the end");
                    return (output, Err(code(&error)));
                }
            }
        }
        assert!(body.is_end_stream());
        if let Some(content_length) = content_length {
            assert_eq!(output.len() as u64, content_length);
        }
        (output, Ok(()))
    })
}

pub(super) fn code(error: &StreamError) -> &'static str {
    match error {
        StreamError::HashMismatch => "XAmzContentSHA256Mismatch",
        StreamError::IncompleteBody(_) => "IncompleteBody",
        StreamError::MalformedTrailer(_) => "MalformedTrailerError",
        StreamError::SignatureMismatch => "SignatureDoesNotMatch",
        StreamError::MissingContentLength => "MissingContentLength",
        StreamError::Client(_) => "Client",
    }
}
