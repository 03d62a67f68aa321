//! The body of the store's answer on its way through: counted, and cut when the store falls silent.

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

/// Wraps the store's body. `K` is kept until the answer ends.
///
/// The clock only runs while a reader waits: a slow reader never makes the store look silent.
#[derive(Debug)]
pub(super) struct Download<K> {
    body: Incoming,
    idle: Duration,
    clock: Option<Pin<Box<Sleep>>>,
    waiting: bool,
    bytes: Counter,
    _kept: K,
}

impl<K: Unpin> Download<K> {
    pub(super) fn new(body: Incoming, idle: Duration, bytes: Counter, kept: K) -> Self {
        Self {
            body,
            idle,
            clock: None,
            waiting: false,
            bytes,
            _kept: kept,
        }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.idle)));
        if !self.waiting {
            self.waiting = true;
            clock.as_mut().reset(Instant::now() + self.idle);
        }
        clock.as_mut().poll(cx)
    }
}

impl<K: Unpin> Body for Download<K> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Poll::Ready(item) = Pin::new(&mut self.body).poll_frame(cx) else {
            ready!(self.poll_silence(cx));
            let error = Error::new(
                ErrorKind::OriginTimeout,
                "the store fell silent in the middle of its answer",
            );
            return Poll::Ready(Some(Err(error.into())));
        };
        self.waiting = false;
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
                    "the store closed the connection in the middle of its answer",
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
