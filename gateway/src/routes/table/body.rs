//! The body of streamed rows: a task computes them, a few record batches ahead of the client.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::encoded_rows::EncodedRows;
use crate::{
    body::BoxError,
    compute::Permit,
    error::{Error, ErrorKind, Result},
    routes::http::next_frame,
    server::StallGuard,
    telemetry::Metrics,
};

/// Groups of pieces that are computed ahead. Then the task waits until the client has read one (backpressure).
const PREFETCHED_GROUPS: usize = 2;

/// Pieces of the body, or `None` after the last ones.
type PieceGroup = Option<Vec<Bytes>>;

/// Rows that are being sent. Dropping the body stops the scan.
#[derive(Debug)]
pub(super) struct RowsBody {
    parts: VecDeque<Bytes>,
    groups: mpsc::Receiver<Result<PieceGroup>>,
    has_ended: bool,
    _task: AbortOnDropHandle<()>,
    _permits: [Permit; 2],
    _guard: Option<StallGuard>,
}

impl RowsBody {
    /// A body that starts with `first`. `name` is the step's name in the metrics.
    pub(super) fn start(
        first: Vec<Bytes>,
        mut rows: EncodedRows,
        permits: [Permit; 2],
        guard: Option<StallGuard>,
        deadline: Duration,
        metrics: Metrics,
        name: &'static str,
    ) -> Self {
        let (sender, groups) = mpsc::channel(PREFETCHED_GROUPS);
        let task = tokio::spawn(async move {
            let mut compute_time = Duration::ZERO;
            loop {
                let group = tokio::time::timeout(deadline, rows.next()).await;
                let group = group.unwrap_or_else(|_| {
                    let message = format!("the scan timed out: expected the next rows within {deadline:?}");
                    Err(Error::new(ErrorKind::OriginTimeout, message))
                });
                metrics.add_step_time(name, rows.compute_time().saturating_sub(compute_time));
                compute_time = rows.compute_time();
                let last = !matches!(group, Ok(Some(_)));
                if sender.send(group).await.is_err() || last {
                    return;
                }
            }
        });
        Self {
            parts: first.into(),
            groups,
            has_ended: false,
            _task: AbortOnDropHandle::new(task),
            _permits: permits,
            _guard: guard,
        }
    }
}

impl Body for RowsBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(frame) = next_frame(&mut self.parts) {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            match ready!(self.groups.poll_recv(task)) {
                Some(Ok(Some(parts))) => self.parts = parts.into(),
                Some(Ok(None)) => self.has_ended = true,
                // Cuts the connection, so that the truncated answer does not look complete.
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    let error = Error::new(ErrorKind::Internal, "the task of a scan ended early");
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended && self.parts.iter().all(Bytes::is_empty)
    }
}
