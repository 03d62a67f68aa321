//! A stream whose writes fail when the client reads no byte for too long.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::connection::StallLimit;

/// Limits how long a write to `T` may wait. The timer runs only while a write waits.
#[derive(Debug)]
pub(super) struct StallDetector<T> {
    io: T,
    limit: Arc<StallLimit>,
    timer: Option<Pin<Box<Sleep>>>,
    waiting_since: Option<Instant>,
}

impl<T> StallDetector<T> {
    pub(super) fn new(io: T, limit: Arc<StallLimit>) -> Self {
        Self {
            io,
            limit,
            timer: None,
            waiting_since: None,
        }
    }

    fn check_stall<R>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if write.is_ready() {
            self.waiting_since = None;
            return write;
        }
        // The limit is read on each poll: a new answer may have changed it.
        let deadline = *self.waiting_since.get_or_insert_with(Instant::now) + self.limit.current();
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client reads no bytes",
        )))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallDetector<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StallDetector<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.check_stall(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.check_stall(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.io).poll_flush(cx);
        if flush.is_ready() {
            flush
        } else {
            self.check_stall(cx, flush)
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::sync::CancellationToken;

    use super::super::Connection;
    use super::*;

    fn connection() -> Connection {
        Connection::new(
            ([127, 0, 0, 1], 1).into(),
            false,
            CancellationToken::new(),
            Duration::from_mins(5),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_guarded_answer_is_cut_earlier_than_a_plain_one() {
        for (guarded, seconds) in [(true, 30), (false, 300)] {
            let connection = connection();
            let guard = guarded.then(|| connection.cut_when_stalled(Duration::from_secs(30)));
            let (near, _far) = tokio::io::duplex(16);
            let start = Instant::now();
            let error = StallDetector::new(near, connection.stall_limit())
                .write_all(&[0; 64])
                .await
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(start.elapsed().as_secs(), seconds);
            drop(guard);
            assert_eq!(connection.stall_limit().current().as_secs(), 300);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_that_makes_progress_is_not_cut() {
        let connection = connection();
        let _guard = connection.cut_when_stalled(Duration::from_secs(30));
        let (near, mut far) = tokio::io::duplex(16);
        let reader = tokio::spawn(async move {
            let mut byte = [0; 1];
            for _ in 0..64 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                far.read_exact(&mut byte).await.unwrap();
            }
        });
        StallDetector::new(near, connection.stall_limit())
            .write_all(&[0; 64])
            .await
            .unwrap();
        reader.await.unwrap();
    }
}
