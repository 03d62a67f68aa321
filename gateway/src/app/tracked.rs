//! The body of every answer. It counts its bytes and keeps its request in flight until it ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;

use crate::audit::RequestAudit;
use crate::body::{Body, BoxError};
use crate::error::ErrorChain;
use crate::telemetry::GaugeGuard;

#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Body,
    bytes: Counter,
    /// The answer has `Content-Length: 0`. hyper would move this header after the others if the body had ended before
    /// its first poll.
    is_declared_empty: bool,
    /// Writes a line of the audit log when the answer ends.
    audit: Option<RequestAudit>,
    _in_flight: GaugeGuard,
}

impl TrackedBody {
    pub(super) fn new(
        answer: Response<Body>,
        bytes: Counter,
        in_flight: GaugeGuard,
        audit: Option<RequestAudit>,
    ) -> Response<Self> {
        let length = answer.headers().get(CONTENT_LENGTH);
        let is_declared_empty = length.is_some_and(|length| length.as_bytes() == b"0");
        answer.map(|body| Self {
            body,
            bytes,
            is_declared_empty,
            audit,
            _in_flight: in_flight,
        })
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let item = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &item {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.bytes.inc_by(data.len() as u64);
                    if let Some(audit) = &mut this.audit {
                        audit.add_bytes_out(data.len());
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(cause = %ErrorChain(error.as_ref()), "answer was cut");
                if let Some(audit) = &mut this.audit {
                    audit.set_cut(error.as_ref());
                }
            }
            None => {}
        }
        Poll::Ready(item)
    }

    fn is_end_stream(&self) -> bool {
        !self.is_declared_empty && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
