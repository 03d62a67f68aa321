//! A body that is verified as it is polled.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::StreamError;
use super::check::Check;
use crate::body::{BoxError, ObservedBody, Observer};
use crate::s3::auth::{ChunkSeed, PayloadMode};

/// A client's body that is verified, and what the store gets of it. It is polled only as fast as the store reads.
///
/// After an error it yields nothing more. HTTP trailers of the client are dropped: no signature covers them.
pub type VerifyingBody<B> = ObservedBody<B, Verification>;

/// Verifies a body, and holds back what has not been verified.
#[derive(Debug)]
pub struct Verification {
    check: Check,
    /// What the check has passed and the store has not read yet.
    output: VecDeque<Bytes>,
    /// Bytes that are still to be yielded, if their number is known.
    left_bytes: Option<u64>,
    is_finished: bool,
}

impl<B> VerifyingBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    /// Verifies `body` as `mode` says. `seed` is required for signed chunks, and `headers` are those of the request: they declare the
    /// decoded length and the trailers.
    ///
    /// # Errors
    ///
    /// [`StreamError::MissingContentLength`] and [`StreamError::MalformedTrailer`] if the headers do not declare chunked framing as
    /// they must, [`StreamError::SignatureMismatch`] if there is no seed for signed chunks.
    pub fn new(
        body: B,
        mode: PayloadMode,
        seed: Option<ChunkSeed>,
        headers: &HeaderMap,
    ) -> Result<Self, StreamError> {
        let (check, left_bytes) = Check::new(mode, seed, headers, body.size_hint().exact())?;
        let verification = Verification {
            check,
            output: VecDeque::new(),
            left_bytes,
            is_finished: false,
        };
        Ok(verification.observe(body))
    }

    /// The `Content-Length` of the request to the store. `None` requires `Transfer-Encoding: chunked`.
    pub const fn content_length(&self) -> Option<u64> {
        self.observer().left_bytes
    }

    /// Reads a body that yields nothing to its end. Nothing of it can be held back, so a body whose
    /// [length](Self::content_length) is zero must be verified before the head of its request is sent.
    ///
    /// # Errors
    ///
    /// The error of the body, or [`StreamError::IncompleteBody`] if the body is not empty.
    pub async fn verify_empty(mut self) -> Result<(), StreamError> {
        match self.frame().await {
            None => Ok(()),
            Some(Ok(_)) => Err(StreamError::IncompleteBody(
                "it has more bytes than its head declares",
            )),
            Some(Err(error)) => Err(error),
        }
    }
}

impl<E: Into<BoxError>> Observer<E> for Verification {
    type Error = StreamError;

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, StreamError> {
        // If a part of the piece is wrong, nothing of it leaves: an error ends the body.
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            self.check.push(data, &mut self.output)?;
        }
        Ok(None)
    }

    fn on_error(&mut self, error: E) -> StreamError {
        StreamError::Client(error.into())
    }

    fn on_end(&mut self) -> Result<(), StreamError> {
        self.check.finish(&mut self.output)?;
        self.is_finished = true;
        Ok(())
    }

    fn next_held(&mut self) -> Option<Frame<Bytes>> {
        let data = self.output.pop_front()?;
        if let Some(left_bytes) = &mut self.left_bytes {
            *left_bytes = left_bytes.saturating_sub(data.len() as u64);
        }
        Some(Frame::data(data))
    }

    fn size_hint(&self, _rest: SizeHint) -> SizeHint {
        self.left_bytes
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// Never before the body has been verified, even if nothing is left to be yielded.
    fn is_end_stream(&self, _has_body_ended: bool) -> bool {
        self.is_finished && self.output.is_empty()
    }
}
