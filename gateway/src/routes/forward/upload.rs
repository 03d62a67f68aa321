//! The body of an upload: its bytes are counted, its progress is recorded, and for `Expect: 100-continue` its first poll is delayed.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use prometheus_client::metrics::counter::Counter;

use super::hold::{Hold, HoldOutcome};
use crate::audit::AuditRecord;
use crate::body::{BoxError, ObservedBody, Observer};
use crate::origin::Progress;

/// Observes the client's body, which is polled only as fast as the store reads (backpressure).
#[derive(Debug)]
pub(super) struct Upload {
    hold: Option<Hold>,
    progress: Arc<Progress>,
    bytes: Counter,
    audit: Option<AuditRecord>,
}

impl Upload {
    /// The client's body, observed.
    pub(super) fn new<B>(
        body: B,
        hold: Option<Hold>,
        progress: Arc<Progress>,
        bytes: Counter,
        audit: Option<AuditRecord>,
    ) -> ObservedBody<B, Self>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let upload = Self {
            hold,
            progress,
            bytes,
            audit,
        };
        upload.observe(body)
    }
}

impl<E: Into<BoxError>> Observer<E> for Upload {
    type Error = BoxError;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let Some(hold) = &mut self.hold else {
            return Poll::Ready(Ok(()));
        };
        Poll::Ready(match ready!(hold.poll(cx)) {
            HoldOutcome::Send => {
                self.hold = None;
                Ok(())
            }
            HoldOutcome::Discard => {
                let refused = io::Error::new(io::ErrorKind::ConnectionAborted, "the store refused the body");
                Err(refused.into())
            }
        })
    }

    fn poll_pending(&mut self, _cx: &mut Context<'_>) -> Poll<BoxError> {
        self.progress.on_store_read();
        Poll::Pending
    }

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BoxError> {
        self.progress.on_client_sent();
        if let Some(data) = frame.data_ref() {
            self.bytes.inc_by(data.len() as u64);
            if let Some(audit) = &self.audit {
                audit.add_bytes_in(data.len());
            }
        }
        Ok(Some(frame))
    }

    fn on_error(&mut self, error: E) -> BoxError {
        self.progress.on_client_sent();
        error.into()
    }

    fn on_end(&mut self) -> Result<(), BoxError> {
        self.progress.on_client_sent();
        Ok(())
    }
}
