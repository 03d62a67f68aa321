//! The store's answer to a write. Before each part of it, the confirmation of the object is invalidated.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use crate::body::{Body, BoxError};
use crate::cache::PendingWrite;

/// The body of the answer. Some stores begin to answer a copy, or the completion of an upload, before they have carried it out: then
/// the write ends within the answer.
#[derive(Debug)]
pub(super) struct WriteAnswer {
    body: Body,
    write: PendingWrite,
}

impl WriteAnswer {
    /// The same answer, for `write`.
    pub(super) fn watch(answer: Response<Body>, write: PendingWrite) -> Response<Body> {
        write.forget();
        answer.map(|body| Self { body, write }.boxed_unsync())
    }
}

impl http_body::Body for WriteAnswer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.write.forget();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
