//! A connection to a store, which counts as one of its host as long as it is open.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use crate::origin::open_hosts::OpenHost;

/// A connection to a store.
#[derive(Debug)]
pub(in crate::origin) struct StoreConnection<C> {
    inner: C,
    /// Counts it, if a caller chose the host.
    _open_host: Option<OpenHost>,
}

impl<C> StoreConnection<C> {
    pub(super) const fn new(inner: C, open_host: Option<OpenHost>) -> Self {
        Self {
            inner,
            _open_host: open_host,
        }
    }
}

impl<C: Connection> Connection for StoreConnection<C> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<C: Read + Unpin> Read for StoreConnection<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<C: Write + Unpin> Write for StoreConnection<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, buffers)
    }
}
