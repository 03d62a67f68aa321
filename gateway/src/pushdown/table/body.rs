//! The body of an answer whose rows flow: computed by a task of its own, a few record batches ahead of the client.

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

use super::scan::Rows;
use crate::{
    body::BoxError,
    compute::Permit,
    error::{Error, ErrorKind, Result},
    pushdown::answer::next_frame,
    server::StallGuard,
    telemetry::Metrics,
};

/// Groups of pieces that may lie ready: the task waits until the client has taken one.
const AHEAD: usize = 2;

/// Pieces of the body, or `None` behind the last ones.
type Group = Option<Vec<Bytes>>;

/// Rows on their way to the client. Dropping it stops the scan.
#[derive(Debug)]
pub(super) struct RowsBody {
    parts: VecDeque<Bytes>,
    groups: mpsc::Receiver<Result<Group>>,
    ended: bool,
    _task: AbortOnDropHandle<()>,
    _held: [Permit; 2],
    _guard: Option<StallGuard>,
}

impl RowsBody {
    /// The body that starts with `first`; `name` is that of the step in the metrics.
    pub(super) fn start(
        first: Vec<Bytes>,
        mut rows: Rows,
        held: [Permit; 2],
        guard: Option<StallGuard>,
        deadline: Duration,
        metrics: Metrics,
        name: &'static str,
    ) -> Self {
        let (sender, groups) = mpsc::channel(AHEAD);
        let task = tokio::spawn(async move {
            let mut spent = Duration::ZERO;
            loop {
                let group = tokio::time::timeout(deadline, rows.next()).await;
                let group = group.unwrap_or_else(|_| {
                    let message = format!("the next rows took longer than {deadline:?}");
                    Err(Error::new(ErrorKind::OriginTimeout, message))
                });
                metrics.step(name, rows.spent().saturating_sub(spent));
                spent = rows.spent();
                let last = !matches!(group, Ok(Some(_)));
                if sender.send(group).await.is_err() || last {
                    return;
                }
            }
        });
        Self {
            parts: first.into(),
            groups,
            ended: false,
            _task: AbortOnDropHandle::new(task),
            _held: held,
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
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(self.groups.poll_recv(task)) {
                Some(Ok(Some(parts))) => self.parts = parts.into(),
                Some(Ok(None)) => self.ended = true,
                // The connection breaks off: what was sent must not look whole.
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    let error = Error::new(ErrorKind::Internal, "the scan was given up");
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.parts.iter().all(Bytes::is_empty)
    }
}
