//! A stream whose writes fail once the client has taken no byte for too long.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::connection::Patience;

/// Watches the writes of `T`. The clock runs only while a write waits.
#[derive(Debug)]
pub(super) struct Watched<T> {
    io: T,
    patience: Arc<Patience>,
    clock: Option<Pin<Box<Sleep>>>,
    waiting_since: Option<Instant>,
}

impl<T> Watched<T> {
    pub(super) fn new(io: T, patience: Arc<Patience>) -> Self {
        Self {
            io,
            patience,
            clock: None,
            waiting_since: None,
        }
    }

    fn judge<R>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if write.is_ready() {
            self.waiting_since = None;
            return write;
        }
        // The limit is read each time: an answer may have put the connection under guard meanwhile.
        let deadline = *self.waiting_since.get_or_insert_with(Instant::now) + self.patience.now();
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if clock.deadline() != deadline {
            clock.as_mut().reset(deadline);
        }
        if clock.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client takes no bytes",
        )))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.judge(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.io).poll_flush(cx);
        if flush.is_ready() {
            flush
        } else {
            self.judge(cx, flush)
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
            CancellationToken::new(),
            Duration::from_mins(5),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_guarded_answer_is_cut_sooner_than_a_plain_one() {
        for (guarded, seconds) in [(true, 30), (false, 300)] {
            let connection = connection();
            let guard = guarded.then(|| connection.cut_when_stalled(Duration::from_secs(30)));
            let (near, _far) = tokio::io::duplex(16);
            let start = Instant::now();
            let error = Watched::new(near, connection.patience())
                .write_all(&[0; 64])
                .await
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(start.elapsed().as_secs(), seconds);
            drop(guard);
            assert_eq!(connection.patience().now().as_secs(), 300);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_reads_is_left_alone() {
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
        Watched::new(near, connection.patience())
            .write_all(&[0; 64])
            .await
            .unwrap();
        reader.await.unwrap();
    }
}
