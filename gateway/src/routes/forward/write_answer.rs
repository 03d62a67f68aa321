//! The store's answer to a write. Before each part of it leaves, what is confirmed about the object is forgotten.

use bytes::Bytes;
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt as _;

use crate::body::{Body, BoxError, Observer};
use crate::cache::PendingWrite;

/// Observes the body of the answer. Some stores begin to answer a copy, or the completion of an upload, before they have carried it
/// out: then the write ends within the answer.
#[derive(Debug)]
pub(super) struct WriteAnswer {
    write: PendingWrite,
}

impl WriteAnswer {
    /// The same answer, for `write`.
    pub(super) fn watch(answer: Response<Body>, write: PendingWrite) -> Response<Body> {
        write.forget();
        answer.map(|body| Self { write }.observe(body).boxed_unsync())
    }
}

impl Observer<BoxError> for WriteAnswer {
    type Error = BoxError;

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BoxError> {
        self.write.forget();
        Ok(Some(frame))
    }

    fn on_error(&mut self, error: BoxError) -> BoxError {
        self.write.forget();
        error
    }

    fn on_end(&mut self) -> Result<(), BoxError> {
        self.write.forget();
        Ok(())
    }
}
