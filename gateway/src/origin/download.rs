//! The body of the store's answer: counts its bytes, and fails when the store stalls.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, Sleep};

use crate::body::BoxError;
use crate::error::{Error, ErrorKind};

/// Wraps the store's body. `G` is dropped with it.
///
/// The timer runs only while a reader waits, so that a slow reader does not count as a stall of the store.
#[derive(Debug)]
pub(super) struct Download<G> {
    body: Incoming,
    idle_timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    bytes: Counter,
    _guard: G,
}

impl<G: Unpin> Download<G> {
    pub(super) fn new(body: Incoming, idle_timeout: Duration, bytes: Counter, guard: G) -> Self {
        Self {
            body,
            idle_timeout,
            timer: None,
            is_waiting: false,
            bytes,
            _guard: guard,
        }
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.idle_timeout)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + self.idle_timeout);
        }
        timer.as_mut().poll(cx)
    }
}

impl<G: Unpin> Body for Download<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Poll::Ready(item) = Pin::new(&mut self.body).poll_frame(cx) else {
            ready!(self.poll_stall(cx));
            let error = Error::new(ErrorKind::OriginTimeout, "the store stalled within its answer");
            return Poll::Ready(Some(Err(error.into())));
        };
        self.is_waiting = false;
        Poll::Ready(item.map(|frame| {
            match frame {
                Ok(frame) => {
                    if let Some(data) = frame.data_ref() {
                        self.bytes.inc_by(data.len() as u64);
                    }
                    Ok(frame)
                }
                Err(error) => Err(Error::new(
                    ErrorKind::OriginUnavailable,
                    "the store closed the connection within its answer",
                )
                .with_source(error)
                .into()),
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
