//! Health, metrics and status on a separate port.

mod access;
mod status;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Json};
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::body::Body;
use crate::cache::ResultCache;
use crate::compute::DemandTable;
use crate::config::{self, ReplicaId, Secret};
use crate::models::ModelRegistry;
use crate::origin::Origin;
use crate::server::{self, Handler, NoSlot, Server};
use crate::telemetry::{self, Metrics};
use access::PageAccess;

/// Content type of the metrics page.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Lifetime of a readiness result: the store is probed at most once in this time.
const READINESS_TTL: Duration = Duration::from_secs(1);

/// Most connections at a time: enough for a few monitors and people.
const MAX_CONNECTIONS: usize = 64;

/// Most connections of one client.
const MAX_CONNECTIONS_PER_CLIENT: usize = MAX_CONNECTIONS / 4;

/// The answer to further ones, if a page is being sent on each of them.
const OVERLOAD: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The path of the page that says whether the process lives.
const HEALTH_PATH: &str = "/healthz";

/// Longest wait for a request's headers, and so the lifetime of an idle connection.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time without progress while a client reads a page.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Configuration of the admin port.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What readers of the pages send, except for those about health. Default: none.
    pub token: Option<Secret>,
    /// Whether only a loopback address may do without a token.
    pub requires_token: bool,
}

/// The data that the pages show.
#[derive(Debug)]
pub struct PageSources {
    /// The id of this gateway among its replicas, for the status page.
    pub replica: ReplicaId,
    /// How many cores the readers could use, for the metrics page and the status page.
    pub demand: DemandTable,
    /// The configuration, for its limits.
    pub config: Arc<config::Config>,
    /// The store, for readiness probes.
    pub origin: Origin,
    /// The metrics, for the status page.
    pub metrics: Metrics,
    /// The models, for the status page.
    pub models: ModelRegistry,
    /// The result cache, for the status page.
    pub cache: ResultCache,
    /// The registry of all metrics, for the metrics page.
    pub registry: Arc<Registry>,
    /// Cancelled when the gateway begins to drain.
    pub drain: CancellationToken,
}

/// A bound admin port, not serving yet.
#[derive(Debug)]
pub struct Admin {
    server: Server,
    access: PageAccess,
}

#[derive(Debug)]
struct PageState {
    sources: PageSources,
    started: Instant,
    probed: Mutex<Option<(Instant, bool)>>,
}

impl Config {
    /// Binds the port.
    pub async fn build(self) -> io::Result<Admin> {
        let access = match self.token {
            Some(token) => PageAccess::Token(token),
            None if self.requires_token && !self.listen.ip().is_loopback() => PageAccess::Nobody,
            None => PageAccess::Everyone,
        };
        let server = server::Config {
            listen: self.listen,
            tls: None,
            proxies: Vec::new(),
            drain_timeout: Duration::ZERO,
            limits: config::Limits {
                max_connections: MAX_CONNECTIONS,
                max_connections_per_client: MAX_CONNECTIONS_PER_CLIENT,
                header_read_timeout: HEADER_READ_TIMEOUT,
                client_idle_timeout: STALL_TIMEOUT,
                ..config::Limits::default()
            },
        };
        // Separate metrics: the gauge of connections counts S3 clients only.
        let server = server.build(&Metrics::default()).await?;
        Ok(Admin { server, access })
    }
}

impl Admin {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Serves until the process ends, also while the gateway drains, so that monitors see the end of the drain.
    pub async fn serve(self, sources: PageSources) {
        let pages = Arc::new(PageState {
            sources,
            started: Instant::now(),
            probed: Mutex::new(None),
        });
        let router = Router::new()
            .route("/", get(page))
            .route(HEALTH_PATH, get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .route("/status.json", get(status))
            .with_state(pages);
        let pages = PageRouter {
            router,
            access: self.access,
        };
        self.server.serve(Arc::new(pages), CancellationToken::new()).await;
    }
}

/// The router of all pages.
struct PageRouter {
    router: Router,
    access: PageAccess,
}

impl Handler for PageRouter {
    const PROBE_PATH: &'static str = HEALTH_PATH;

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(refusal) = self.access.refusal(request.uri().path(), request.headers()) {
            return refusal;
        }
        match self.router.clone().call(request).await {
            Ok(answer) => answer.map(|body| body.map_err(Into::into).boxed_unsync()),
            Err(never) => match never {},
        }
    }

    fn rejection(&self, _status: StatusCode) -> Option<Bytes> {
        None
    }

    fn refusal(&self, _no_slot: NoSlot) -> Bytes {
        Bytes::from_static(OVERLOAD)
    }
}

async fn page() -> impl IntoResponse {
    Html(include_str!("admin/page.html"))
}

async fn ready(State(pages): State<Arc<PageState>>) -> impl IntoResponse {
    if pages.sources.drain.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if !pages.sources.models.is_ready() {
        (StatusCode::SERVICE_UNAVAILABLE, "models are still loading\n")
    } else if pages.is_store_reachable().await {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the store is unreachable\n")
    }
}

async fn metrics(State(pages): State<Arc<PageState>>) -> impl IntoResponse {
    let PageSources {
        metrics,
        demand,
        registry,
        ..
    } = &pages.sources;
    // A demand ends without an event that could lower the gauge.
    metrics.set_demand_cores(demand.cores());
    match telemetry::encode(registry) {
        Ok(page) => ([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn status(State(pages): State<Arc<PageState>>) -> impl IntoResponse {
    Json(status::Status::current(&pages.sources, pages.started.elapsed())).into_response()
}

impl PageState {
    async fn is_store_reachable(&self) -> bool {
        let last = *self.probed.lock();
        if let Some((when, answered)) = last
            && when.elapsed() < READINESS_TTL
        {
            return answered;
        }
        let answered = self.sources.origin.is_reachable().await;
        *self.probed.lock() = Some((Instant::now(), answered));
        answered
    }
}
