//! Counts the bytes of every connection, below TLS.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tower_service::Service;

use super::DnsResolver;
use crate::stats::{Traffic, add};

/// Connects over TCP and counts the bytes of its connections.
#[derive(Debug, Clone)]
pub(super) struct MeteredConnector {
    tcp: HttpConnector<DnsResolver>,
    meters: Meters,
}

/// A connection whose bytes are counted.
#[derive(Debug)]
pub(super) struct MeteredStream {
    stream: TcpStream,
    meters: Meters,
}

/// Where the bytes of a connection are counted: in each of these.
#[derive(Debug, Clone)]
pub(super) struct Meters(Arc<[Arc<Traffic>]>);

impl Meters {
    pub(super) fn new(traffic: impl IntoIterator<Item = Arc<Traffic>>) -> Self {
        Self(traffic.into_iter().collect())
    }

    fn received(&self, bytes: u64) {
        self.0
            .iter()
            .for_each(|traffic| add(&traffic.received_bytes, bytes));
    }

    fn sent(&self, bytes: u64) {
        self.0.iter().for_each(|traffic| add(&traffic.sent_bytes, bytes));
    }
}

impl MeteredConnector {
    pub(super) const fn new(tcp: HttpConnector<DnsResolver>, meters: Meters) -> Self {
        Self { tcp, meters }
    }
}

impl Service<Uri> for MeteredConnector {
    type Response = TokioIo<MeteredStream>;
    type Error = <HttpConnector<DnsResolver> as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let meters = self.meters.clone();
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            let stream = connecting.await?.into_inner();
            Ok(TokioIo::new(MeteredStream { stream, meters }))
        })
    }
}

impl MeteredStream {
    fn sent(&self, written: usize) -> Poll<io::Result<usize>> {
        self.meters.sent(written as u64);
        Poll::Ready(Ok(written))
    }
}

impl Connection for MeteredStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.meters.received((buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        self.sent(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
