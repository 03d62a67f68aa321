//! A body that is verified as it is polled.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::StreamError;
use super::check::Check;
use crate::body::BoxError;
use crate::s3::auth::{ChunkSeed, PayloadMode};

/// Verifies a client's body, and yields what the store gets of it. It is polled only as fast as the store reads.
///
/// After an error it yields nothing more. HTTP trailers of the client are dropped: no signature covers them.
#[derive(Debug)]
pub struct VerifyingBody<B> {
    body: B,
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
        Ok(Self {
            body,
            check,
            output: VecDeque::new(),
            left_bytes,
            is_finished: false,
        })
    }

    /// The `Content-Length` of the request to the store. `None` requires `Transfer-Encoding: chunked`.
    pub fn content_length(&self) -> Option<u64> {
        self.left_bytes
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

    fn receive(&mut self, frame: Option<Result<Frame<Bytes>, B::Error>>) -> Result<(), StreamError> {
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => self.check.push(data, &mut self.output),
                _ => Ok(()),
            },
            Some(Err(error)) => Err(StreamError::Client(error.into())),
            None => {
                self.is_finished = true;
                self.check.finish(&mut self.output)
            }
        }
    }
}

impl<B> Body for VerifyingBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = &mut *self;
        loop {
            if let Some(data) = this.output.pop_front() {
                if let Some(left_bytes) = &mut this.left_bytes {
                    *left_bytes = left_bytes.saturating_sub(data.len() as u64);
                }
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if this.is_finished {
                return Poll::Ready(None);
            }
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            if let Err(error) = this.receive(frame) {
                this.is_finished = true;
                // What was passed of the last piece need not leave, either.
                this.output.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// Never before the body has been verified, even if nothing is left to be yielded.
    fn is_end_stream(&self) -> bool {
        self.is_finished && self.output.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.left_bytes
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
