//! A stream on which hyper's own refusals have a body.
//!
//! hyper answers a head that it cannot read with a bare status line, before any handler is called. S3 clients expect an error
//! in XML and show an empty one as "unknown error".

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Handler;

/// Watches the writes of `T`.
#[derive(Debug)]
pub(super) struct Explained<T, H> {
    io: T,
    handler: Arc<H>,
    /// What is left to write of an answer in place of one of this many bytes.
    instead: Option<(Bytes, usize)>,
}

impl<T, H> Explained<T, H> {
    pub(super) fn new(io: T, handler: Arc<H>) -> Self {
        Self {
            io,
            handler,
            instead: None,
        }
    }
}

impl<T: AsyncWrite + Unpin, H> Explained<T, H> {
    /// Writes the longer answer, and tells hyper that its own has been written.
    fn poll_instead(
        &mut self,
        cx: &mut Context<'_>,
        mut left: Bytes,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        while left.has_remaining() {
            let Poll::Ready(written) = Pin::new(&mut self.io).poll_write(cx, &left) else {
                self.instead = Some((left, length));
                return Poll::Pending;
            };
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => left.advance(written),
            }
        }
        Poll::Ready(Ok(length))
    }
}

/// The status of an answer that says nothing but that the connection is closed, in the letters that hyper uses.
fn bare_refusal(bytes: &[u8]) -> Option<StatusCode> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix("HTTP/1.1 ")?;
    let (line, headers) = text.split_once("\r\n")?;
    let status = StatusCode::from_bytes(line.get(..3)?.as_bytes()).ok()?;
    let is_bare = matches!(
        headers,
        "content-length: 0\r\nconnection: close\r\n\r\n" | "connection: close\r\ncontent-length: 0\r\n\r\n"
    );
    (is_bare && status.is_client_error()).then_some(status)
}

impl<T: AsyncRead + Unpin, H> AsyncRead for Explained<T, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin, H: Handler> AsyncWrite for Explained<T, H> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some((left, length)) = self.instead.take() {
            return self.poll_instead(cx, left, length);
        }
        match bare_refusal(bytes).and_then(|status| self.handler.explain(status)) {
            Some(answer) => self.poll_instead(cx, answer, bytes.len()),
            None => Pin::new(&mut self.io).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) => self.poll_write(cx, only),
            _ => Pin::new(&mut self.io).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some((left, length)) = self.instead.take() {
            ready!(self.poll_instead(cx, left, length))?;
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
