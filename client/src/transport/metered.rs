//! Counts the bytes of every connection, below TLS.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;
use http::{Uri, uri::Authority};
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

/// Connects over TCP and counts the bytes of its connections; those to one address also alone.
#[derive(Debug, Clone)]
pub(super) struct MeteredConnector {
    tcp: HttpConnector<DnsResolver>,
    traffic: Arc<Traffic>,
    gateway: Option<(Authority, Arc<Traffic>)>,
}

/// A connection whose bytes are counted.
#[derive(Debug)]
pub(super) struct MeteredStream {
    stream: TcpStream,
    meters: Meters,
}

/// Where the bytes of a connection are counted.
#[derive(Debug)]
struct Meters {
    all: Arc<Traffic>,
    /// Set for a connection to the gateway.
    gateway: Option<Arc<Traffic>>,
}

impl Meters {
    fn received(&self, bytes: u64) {
        self.count(bytes, |traffic| &traffic.received_bytes);
    }

    fn sent(&self, bytes: u64) {
        self.count(bytes, |traffic| &traffic.sent_bytes);
    }

    fn count(&self, bytes: u64, counter: impl Fn(&Traffic) -> &AtomicU64) {
        for traffic in [Some(&self.all), self.gateway.as_ref()].into_iter().flatten() {
            add(counter(traffic), bytes);
        }
    }
}

impl MeteredConnector {
    /// Counts in `traffic`, and the bytes of connections to the authority of `gateway` there as well.
    pub(super) const fn new(
        tcp: HttpConnector<DnsResolver>,
        traffic: Arc<Traffic>,
        gateway: Option<(Authority, Arc<Traffic>)>,
    ) -> Self {
        Self {
            tcp,
            traffic,
            gateway,
        }
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
        let is_gateway = |(authority, _): &&(Authority, _)| uri.authority() == Some(authority);
        let gateway = self.gateway.as_ref().filter(is_gateway);
        let meters = Meters {
            all: Arc::clone(&self.traffic),
            gateway: gateway.map(|(_, traffic)| Arc::clone(traffic)),
        };
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
