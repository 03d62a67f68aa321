//! The body of the store's answer: its bytes are counted, and it fails when the store stalls.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, Sleep};

use crate::body::{BoxError, Observer};
use crate::error::{Error, ErrorKind};

/// Observes the store's body. `G` is dropped with it.
///
/// The timer runs only while a reader waits, so that a slow reader does not count as a stall of the store.
#[derive(Debug)]
pub(super) struct Download<G> {
    idle_timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    bytes: Counter,
    _guard: G,
}

impl<G> Download<G> {
    pub(super) const fn new(idle_timeout: Duration, bytes: Counter, guard: G) -> Self {
        Self {
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

impl<G, E: Into<BoxError>> Observer<E> for Download<G> {
    type Error = BoxError;

    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        ready!(self.poll_stall(cx));
        let error = Error::new(ErrorKind::OriginTimeout, "the store stalled within its answer");
        Poll::Ready(error.into())
    }

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BoxError> {
        self.is_waiting = false;
        if let Some(data) = frame.data_ref() {
            self.bytes.inc_by(data.len() as u64);
        }
        Ok(Some(frame))
    }

    fn on_error(&mut self, error: E) -> BoxError {
        let message = "the store closed the connection within its answer";
        Error::new(ErrorKind::OriginUnavailable, message)
            .with_source(error)
            .into()
    }
}
