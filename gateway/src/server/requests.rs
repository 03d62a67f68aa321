//! What a connection waits for: seen in the bytes that arrive and leave, and in the requests that are being answered.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;
use super::slots::{Slot, Wait};
use crate::body::{Body, ObservedBody, Observer};

/// The requests of one connection. Its stream and its handler share it.
#[derive(Debug)]
pub(super) struct Requests {
    slot: Slot,
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether the answer to the last request has not begun.
    is_unanswered: AtomicBool,
    /// [`Framing::first_ambiguous`]; [`u64::MAX`] without one.
    first_ambiguous: AtomicU64,
}

/// A request that the gateway answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begun {
    /// Whether another reader of its head could find another end of its body.
    pub(super) is_ambiguous: bool,
}

impl Requests {
    pub(super) fn new(slot: Slot) -> Self {
        Self {
            slot,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            is_unanswered: AtomicBool::new(false),
            first_ambiguous: AtomicU64::new(u64::MAX),
        }
    }

    /// Begins the next request. Waits forever if the connection has lost its slot: it is about to be closed.
    pub(super) async fn begin(&self) -> Begun {
        if !self.slot.set_wait(None) {
            std::future::pending::<()>().await;
        }
        self.is_unanswered.store(true, Ordering::Relaxed);
        let index = self.begun.fetch_add(1, Ordering::Relaxed);
        Begun {
            is_ambiguous: index >= self.first_ambiguous.load(Ordering::Relaxed),
        }
    }

    /// The body of the answer to the request that began last, which ends the request when it is dropped.
    pub(super) fn answer(self: &Arc<Self>, body: Body) -> ObservedBody<Body, RequestEnd> {
        // An answer that begins before the end of the request's body is not cut if the rest of that body is late.
        self.is_unanswered.store(false, Ordering::Relaxed);
        self.slot.set_wait(None);
        RequestEnd(Arc::clone(self)).observe(body)
    }

    /// The slot of the connection.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    fn is_in_flight(&self) -> bool {
        self.ended.load(Ordering::Relaxed) < self.begun.load(Ordering::Relaxed)
    }
}

/// Ends a request when it is dropped, with the body of its answer.
#[derive(Debug)]
pub(super) struct RequestEnd(Arc<Requests>);

impl<E> Observer<E> for RequestEnd {
    type Error = E;

    fn on_error(&mut self, error: E) -> E {
        error
    }
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Watches the bytes of a connection.
#[derive(Debug)]
pub(super) struct RequestStream<T> {
    io: T,
    /// Bytes that were read before, and come first.
    first: Bytes,
    requests: Arc<Requests>,
    framing: Framing,
    /// The client has sent no more bytes.
    is_read_pending: bool,
    /// Bytes of an answer may be in buffers.
    is_unflushed: bool,
}

impl<T> RequestStream<T> {
    pub(super) fn new(io: T, first: Bytes, requests: Arc<Requests>) -> Self {
        Self {
            io,
            first,
            requests,
            framing: Framing::default(),
            is_read_pending: false,
            is_unflushed: false,
        }
    }

    /// Follows bytes that have arrived. They end the wait for a body, but not the wait for a head: one that arrives byte by byte
    /// may take no longer.
    fn receive(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.framing.feed(bytes);
        let first = self.framing.first_ambiguous().unwrap_or(u64::MAX);
        self.requests.first_ambiguous.store(first, Ordering::Relaxed);
        if self.requests.is_in_flight() {
            self.requests.slot.set_wait(None);
        }
    }

    fn update_wait(&self) {
        if !self.is_read_pending {
            return;
        }
        let requests = &self.requests;
        if !requests.is_in_flight() {
            // An answer whose end is in a buffer is still being sent.
            if !self.is_unflushed {
                requests.slot.set_wait(Some(Wait::Head));
            }
        } else if self.framing.is_in_body() && requests.is_unanswered.load(Ordering::Relaxed) {
            requests.slot.set_wait(Some(Wait::Body));
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for RequestStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = if self.first.is_empty() {
            Pin::new(&mut self.io).poll_read(cx, buffer)
        } else {
            let count = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first.split_to(count));
            Poll::Ready(Ok(()))
        };
        self.is_read_pending = read.is_pending();
        self.receive(&buffer.filled()[before..]);
        self.update_wait();
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for RequestStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_unflushed = true;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_unflushed = true;
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.is_unflushed = false;
        self.update_wait();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::server::slots::{Admission, Slots};
    use crate::telemetry::Metrics;

    #[tokio::test]
    async fn what_was_read_is_read_again() {
        let slots = Arc::new(Slots::new(1, 1, Vec::new(), Metrics::default()));
        let Admission::Slot(slot) = slots.admit_now([127, 0, 0, 1].into()).await else {
            panic!("no slot");
        };
        let (mut near, far) = tokio::io::duplex(64);
        near.write_all(b" and the rest").await.unwrap();
        drop(near);
        let first = Bytes::from_static(b"the beginning");
        let mut stream = RequestStream::new(far, first, Arc::new(Requests::new(slot)));
        let mut bytes = vec![0; 4];
        stream.read_exact(&mut bytes).await.unwrap();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"the beginning and the rest");
    }
}
