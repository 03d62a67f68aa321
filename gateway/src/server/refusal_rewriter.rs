//! A stream that replaces hyper's own refusals by S3 error answers.
//!
//! hyper answers a request head that it cannot parse with a bare status line, before it calls a handler. S3 clients expect
//! an error in XML, and show an empty one as "unknown error".

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Handler;

/// Replaces bare refusals in the writes to `T`.
#[derive(Debug)]
pub(super) struct RefusalRewriter<T, H> {
    io: T,
    handler: Arc<H>,
    /// The unwritten rest of a replacement, and the length of the answer that it replaces, in bytes.
    replacement: Option<(Bytes, usize)>,
}

impl<T, H> RefusalRewriter<T, H> {
    pub(super) fn new(io: T, handler: Arc<H>) -> Self {
        Self {
            io,
            handler,
            replacement: None,
        }
    }
}

impl<T: AsyncWrite + Unpin, H> RefusalRewriter<T, H> {
    /// Writes the replacement, and reports to hyper that its own answer was written.
    fn poll_replacement(
        &mut self,
        cx: &mut Context<'_>,
        mut rest: Bytes,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        while rest.has_remaining() {
            let Poll::Ready(written) = Pin::new(&mut self.io).poll_write(cx, &rest) else {
                self.replacement = Some((rest, length));
                return Poll::Pending;
            };
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => rest.advance(written),
            }
        }
        Poll::Ready(Ok(length))
    }
}

/// The status, if these bytes are a bare refusal exactly as hyper writes it.
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

impl<T: AsyncRead + Unpin, H> AsyncRead for RefusalRewriter<T, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin, H: Handler> AsyncWrite for RefusalRewriter<T, H> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some((rest, length)) = self.replacement.take() {
            return self.poll_replacement(cx, rest, length);
        }
        match bare_refusal(bytes).and_then(|status| self.handler.rejection(status)) {
            Some(answer) => self.poll_replacement(cx, answer, bytes.len()),
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
        if let Some((rest, length)) = self.replacement.take() {
            ready!(self.poll_replacement(cx, rest, length))?;
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
