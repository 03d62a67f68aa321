//! The body of an upload: counts its bytes, records progress, and delays the first poll for `Expect: 100-continue`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;

use super::hold::{Hold, HoldOutcome};
use crate::body::BoxError;
use crate::origin::Progress;

/// Wraps the client's body. It is polled only as fast as the store reads (backpressure).
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: B,
    hold: Option<Hold>,
    progress: Arc<Progress>,
    bytes: Counter,
}

impl<B> Upload<B> {
    pub(super) fn new(body: B, hold: Option<Hold>, progress: Arc<Progress>, bytes: Counter) -> Self {
        Self {
            body,
            hold,
            progress,
            bytes,
        }
    }
}

impl<B> Body for Upload<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(hold) = &mut self.hold {
            match ready!(hold.poll(cx)) {
                HoldOutcome::Send => self.hold = None,
                HoldOutcome::Discard => {
                    let refused =
                        io::Error::new(io::ErrorKind::ConnectionAborted, "the store refused the body");
                    return Poll::Ready(Some(Err(refused.into())));
                }
            }
        }
        let Poll::Ready(item) = Pin::new(&mut self.body).poll_frame(cx) else {
            self.progress.on_store_read();
            return Poll::Pending;
        };
        self.progress.on_client_sent();
        if let Some(data) = item
            .as_ref()
            .and_then(|item| item.as_ref().ok())
            .and_then(Frame::data_ref)
        {
            self.bytes.inc_by(data.len() as u64);
        }
        Poll::Ready(item.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
