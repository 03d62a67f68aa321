//! Accepts connections, serves HTTP/1.1 on them, and drains.
//!
//! A [`Handler`] answers the requests.

mod connection;
mod framing;
mod refusal;
mod refusal_rewriter;
mod requests;
mod slots;
mod stall;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pushdown::wire::header;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

pub use connection::{Connection, StallGuard};

use crate::body::{BUFFER, Body};
use crate::config::{Limits, Network, Tls};
use crate::telemetry::Metrics;
use refusal::Refusals;
use refusal_rewriter::RefusalRewriter;
use requests::{RequestStream, Requests};
use slots::{Slots, Wait};
use stall::StallDetector;

/// The codes of errors for lack of file descriptors, of the system and of the process: `ENFILE` and `EMFILE`.
const NO_DESCRIPTORS: [i32; 2] = [23, 24];

/// Pause after an accept that failed for lack of file descriptors or memory, so that other connections can end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. The request's extensions contain its [`Connection`].
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;

    /// The complete answer, head and body, to a request head that cannot be parsed; `None` for hyper's bare status line.
    /// The connection closes after it.
    fn rejection(&self, status: StatusCode) -> Option<Bytes>;

    /// The complete answer, head and body, to a connection whose client has too many.
    fn overload(&self) -> Bytes;
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

    /// Serves until `drain` is cancelled. Then refuses new connections, lets answers in flight finish, and cuts the
    /// remaining connections after the drain timeout. Returns the number of connections that were cut.
    pub async fn serve<H: Handler>(self, handler: Arc<H>, drain: CancellationToken) -> usize {
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let limits = self.config.limits;
        let slots = Arc::new(Slots::new(
            limits.max_connections,
            limits.max_connections_per_client,
            self.config.proxies,
            self.metrics.clone(),
        ));
        let refusals = Refusals::default();
        loop {
            let accepted = tokio::select! {
                () = drain.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    if error
                        .raw_os_error()
                        .is_some_and(|code| NO_DESCRIPTORS.contains(&code))
                    {
                        let slots = slots.reduce();
                        warn!(
                            slots,
                            expected = limits.max_connections,
                            "too few file descriptors: raise the limit of open files"
                        );
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // While requests are in flight on all connections, further ones wait in the kernel's queue.
            let slot = tokio::select! {
                () = drain.cancelled() => break,
                slot = slots.admit(peer.ip()) => slot,
            };
            let Some(slot) = slot else {
                debug!(%peer, "connection refused: its client has too many");
                // A client of TLS expects a handshake, which costs more than a connection.
                if self.tls.is_none()
                    && let Some(refusal) = refusals.begin()
                {
                    connections.spawn(refusal.send(stream, handler.overload()));
                }
                continue;
            };
            let open = self.metrics.track_connection();
            let handler = Arc::clone(&handler);
            let (drain, tls) = (drain.clone(), self.tls.clone());
            let idle_timeout = limits.client_idle_timeout;
            let connection = Connection::new(peer, tls.is_some(), cut.child_token(), idle_timeout);
            let requests = Arc::new(Requests::new(slot));
            connections.spawn(async move {
                tokio::select! {
                    () = serve_connection(stream, tls, connection, Arc::clone(&requests), &limits, handler, drain) => {}
                    () = requests.slot().evicted() => debug!(%peer, "connection closed: it made room for another one"),
                }
                drop((requests, open));
            });
        }
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(self.config.drain_timeout, connections.wait())
            .await
            .is_ok()
        {
            return 0;
        }
        let remaining = connections.len();
        cut.cancel();
        connections.wait().await;
        remaining
    }
}

/// Serves the requests of one connection, with TLS if `tls` is set.
async fn serve_connection<H: Handler>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    connection: Connection,
    requests: Arc<Requests>,
    limits: &Limits,
    handler: Arc<H>,
    drain: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot disable Nagle's algorithm");
    }
    let stream = StallDetector::new(stream, connection.stall_limit());
    let io = match tls {
        None => Either::Left(stream),
        Some(tls) => {
            requests.slot().set_wait(Some(Wait::Head));
            match tokio::time::timeout(limits.header_read_timeout, tls.accept(stream)).await {
                Ok(Ok(stream)) => Either::Right(stream),
                Ok(Err(error)) => return debug!(%error, peer = %connection.peer(), "TLS handshake failed"),
                Err(_elapsed) => return debug!(peer = %connection.peer(), "TLS handshake took too long"),
            }
        }
    };
    let io = RequestStream::new(io, Arc::clone(&requests));
    let service = service_fn(|mut request: Request<Incoming>| {
        let (handler, connection, requests) = (&handler, &connection, &requests);
        async move {
            let begun = requests.begin().await;
            let connection = connection.for_request(begun.is_ambiguous);
            request.extensions_mut().insert(connection);
            let mut answer = handler.handle(request).await;
            if begun.is_ambiguous {
                // Nobody knows where the next request begins.
                answer
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| requests.answer(body)))
        }
    });
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read_timeout)
        .max_header_size(usize::try_from(limits.max_header_bytes).unwrap_or(usize::MAX))
        .max_headers(header::MAX_COUNT)
        .max_buf_size(BUFFER)
        // Off, because the store's Date is forwarded, and the gateway's own answers set one.
        .auto_date_header(false)
        .preserve_header_case(true)
        .serve_connection(
            TokioIo::new(RefusalRewriter::new(io, Arc::clone(&handler))),
            service,
        );
    let mut http = std::pin::pin!(http);
    let mut aborted = std::pin::pin!(connection.aborted());
    let mut draining = std::pin::pin!(drain.cancelled());
    let mut is_draining = false;
    loop {
        tokio::select! {
            end = http.as_mut() => {
                if let Err(error) = end {
                    debug!(error = %crate::error::ErrorChain(&error), peer = %connection.peer(), "connection ended early");
                }
                return;
            }
            () = aborted.as_mut() => return,
            () = draining.as_mut(), if !is_draining => {
                is_draining = true;
                http.as_mut().graceful_shutdown();
            }
        }
    }
}
