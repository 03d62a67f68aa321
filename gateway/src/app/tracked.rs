//! What is recorded about every answer while it is sent: its bytes, its audit, and that its request is in flight until it ends.

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use prometheus_client::metrics::counter::Counter;

use crate::audit::RequestAudit;
use crate::body::{Body, BoxError, ObservedBody, Observer};
use crate::error::ErrorChain;
use crate::telemetry::GaugeGuard;

/// Counts the bytes of an answer. The request is in flight until it is dropped.
#[derive(Debug)]
pub(super) struct AnswerTracker {
    bytes: Counter,
    /// The answer has `Content-Length: 0`. hyper would move this header after the others if the body had ended before
    /// its first poll.
    is_declared_empty: bool,
    /// Writes a line of the audit log when the answer ends.
    audit: Option<RequestAudit>,
    _in_flight: GaugeGuard,
}

impl AnswerTracker {
    /// The same answer, tracked.
    pub(super) fn track(
        answer: Response<Body>,
        bytes: Counter,
        in_flight: GaugeGuard,
        audit: Option<RequestAudit>,
    ) -> Response<ObservedBody<Body, Self>> {
        let length = answer.headers().get(CONTENT_LENGTH);
        let tracker = Self {
            bytes,
            is_declared_empty: length.is_some_and(|length| length.as_bytes() == b"0"),
            audit,
            _in_flight: in_flight,
        };
        answer.map(|body| tracker.observe(body))
    }
}

impl Observer<BoxError> for AnswerTracker {
    type Error = BoxError;

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BoxError> {
        if let Some(data) = frame.data_ref() {
            self.bytes.inc_by(data.len() as u64);
            if let Some(audit) = &mut self.audit {
                audit.add_bytes_out(data.len());
            }
        }
        Ok(Some(frame))
    }

    fn on_error(&mut self, error: BoxError) -> BoxError {
        tracing::warn!(cause = %ErrorChain(error.as_ref()), "answer was cut");
        if let Some(audit) = &mut self.audit {
            audit.set_cut(error.as_ref());
        }
        error
    }

    fn is_end_stream(&self, has_body_ended: bool) -> bool {
        !self.is_declared_empty && has_body_ended
    }
}
