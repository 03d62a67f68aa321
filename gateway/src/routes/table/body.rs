//! The body of streamed rows: a task computes them, a few record batches ahead of the client.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use http_body::Frame;
use http_body_util::StreamBody;
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
    ) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static> {
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
        let body = Self {
            parts: first.into(),
            groups,
            _task: AbortOnDropHandle::new(task),
            _permits: permits,
            _guard: guard,
        };
        StreamBody::new(stream::try_unfold(body, async |mut body| {
            let frame = body.next().await?;
            Ok::<_, BoxError>(frame.map(|frame| (frame, body)))
        }))
    }

    /// The next frame; `None` after the last one. An error cuts the connection, so that the truncated answer does not look
    /// complete.
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>> {
        loop {
            if let Some(frame) = next_frame(&mut self.parts) {
                return Ok(Some(frame));
            }
            let group = self.groups.recv().await.unwrap_or_else(|| {
                let message = "the task of a scan ended early";
                Err(Error::new(ErrorKind::Internal, message))
            });
            match group? {
                Some(parts) => self.parts = parts.into(),
                None => return Ok(None),
            }
        }
    }
}
