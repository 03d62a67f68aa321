//! Accepts connections, serves HTTP/1.1 on them, and drains.
//!
//! A [`Handler`] answers the requests.

mod connection;
mod entrance;
mod framing;
mod http;
mod opening;
mod refusal;
mod refusal_rewriter;
mod requests;
mod slots;
mod stall;
mod tls;
mod waiting;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub use connection::{Connection, StallGuard};
pub use entrance::NoSlot;

use crate::body::Body;
use crate::config::{Limits, Network, Tls};
use crate::telemetry::Metrics;
use entrance::Entrance;

/// The codes of errors for lack of file descriptors, of the system and of the process: `ENFILE` and `EMFILE`.
const NO_DESCRIPTORS: [i32; 2] = [23, 24];

/// Pause after an accept that failed for lack of file descriptors or memory, so that other connections can end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// The path by which clients ask whether the server lives, with GET or HEAD. Requests that begin with it are answered without a
    /// slot, too.
    const PROBE_PATH: &'static str;

    /// Answers one request. The request's extensions contain its [`Connection`]. If that has no slot, anything but a probe is refused.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;

    /// The complete answer, head and body, to a request head that cannot be parsed; `None` for hyper's bare status line.
    /// The connection closes after it.
    fn rejection(&self, status: StatusCode) -> Option<Bytes>;

    /// The complete answer, head and body, to a connection without a slot whose first request is no probe.
    fn refusal(&self, no_slot: NoSlot) -> Bytes;
}

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Serve TLS with these files.
    pub tls: Option<Tls>,
    /// Proxies, whose connections are those of many clients.
    pub proxies: Vec<Network>,
    /// Time for answers in flight to finish during a drain.
    pub drain_timeout: Duration,
    /// Limits on connections and header sizes, and timeouts of clients.
    pub limits: Limits,
}

/// A bound listener, not serving yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    config: Config,
    metrics: Metrics,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Binds, so that a port in use is an error at start and not later.
    pub async fn build(self, metrics: &Metrics) -> io::Result<Server> {
        let tls = self.tls.as_ref().map(tls::acceptor).transpose()?;
        let listener = TcpListener::bind(self.listen).await?;
        let address = listener.local_addr()?;
        Ok(Server {
            listener,
            address,
            tls,
            config: self,
            metrics: metrics.clone(),
        })
    }
}

impl Server {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `drain` is cancelled. Then answers probes alone on new connections and refuses all others, lets answers in flight
    /// finish, and cuts the remaining connections after the drain timeout. Returns the number of connections that were cut.
    pub async fn serve<H: Handler>(self, handler: Arc<H>, drain: CancellationToken) -> usize {
        let Self {
            listener,
            tls,
            config,
            metrics,
            ..
        } = self;
        let drain_timeout = config.drain_timeout;
        let entrance = Entrance::new(config, tls, handler, drain.clone(), &metrics);
        let entrance = Arc::new(entrance);
        let drained = async {
            drain.cancelled().await;
            tokio::time::timeout(drain_timeout, entrance.drained()).await
        };
        tokio::select! {
            _is_drained = drained => {}
            never = accept_all(&listener, &entrance) => match never {},
        }
        drop(listener);
        entrance.cut().await
    }
}

/// Accepts connections without end.
async fn accept_all<H: Handler>(listener: &TcpListener, entrance: &Arc<Entrance<H>>) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => entrance.enter(stream, peer).await,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                if error
                    .raw_os_error()
                    .is_some_and(|code| NO_DESCRIPTORS.contains(&code))
                {
                    entrance.reduce();
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
