//! The one place where components are wired, and where a request finds its face.

mod tracked;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prometheus_client::registry::Registry;
use pushdown::wire::header;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::admin::{self, Admin};
use crate::body::{self, Body};
use crate::compute::{CpuPool, Ledger, Memory};
use crate::config::{Config, Limits, Store};
use crate::embedded::{self, Embedded};
use crate::error::{Chain, Error, ErrorKind};
use crate::models::ModelRegistry;
use crate::origin::{self, Origin};
use crate::pushdown::Pushdown;
use crate::s3::errors::{self, RequestId};
use crate::s3::forward::Forward;
use crate::s3::request::{self, Face};
use crate::server::{self, Handler, Server};
use crate::telemetry::Metrics;
use tracked::Tracked;

/// The gateway, built and bound, serving no one yet.
#[derive(Debug)]
pub struct App {
    config: Arc<Config>,
    faces: Arc<Faces>,
    server: Server,
    admin: Admin,
    registry: Arc<Registry>,
    embedded: Option<Embedded>,
    /// Looks at the models, while everything else is served.
    looking: JoinHandle<anyhow::Result<()>>,
}

/// Answers requests: each by the face that it asks for.
#[derive(Debug)]
struct Faces {
    origin: Origin,
    metrics: Metrics,
    forward: Forward,
    pushdown: Pushdown,
    models: ModelRegistry,
    config: Arc<Config>,
}

// === impl App ===

impl App {
    /// Builds every component in order. Sockets are bound here, so that a fault shows at start.
    pub async fn build(config: Config) -> anyhow::Result<Self> {
        let config = Arc::new(config);
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.set_permits_total(config.memory_budget);

        let (url, ca, embedded) = match &config.store {
            Store::Upstream { url, ca } => (url.clone(), ca.clone(), None),
            Store::Embedded {
                directory,
                access_key,
                secret_key,
            } => {
                let store = embedded::Config {
                    directory: directory.clone(),
                    access_key: access_key.clone(),
                    secret_key: secret_key.clone(),
                };
                let store = store.build().await.map_err(anyhow::Error::from_boxed)?;
                (store.url()?, None, Some(store))
            }
        };
        let limits = config.limits;
        let origin = origin::Config { url, ca, limits }.build(&metrics)?;

        let server = server::Config {
            listen: config.listen,
            tls: config.tls.clone(),
            drain_timeout: config.drain_timeout,
            limits,
        };
        let server = server
            .build(&metrics)
            .await
            .with_context(|| format!("listen {}", config.listen))?;
        let admin = admin::Config {
            listen: config.admin_listen,
        }
        .build()
        .await;
        let admin = admin.with_context(|| format!("admin-listen {}", config.admin_listen))?;

        let forward = Forward::new(origin.clone(), metrics.clone());
        // One for both: who used the CPU much waits for memory, too.
        let ledger = Ledger::default();
        let cpu = CpuPool::build(config.threads, ledger.clone())?;
        let memory = Memory::build(
            config.memory_budget,
            limits.max_queued,
            limits.queue_wait,
            ledger,
            metrics.clone(),
        );
        let models = ModelRegistry::new(config.models.clone(), config.memory_budget)?;
        let looking = tokio::spawn(models.clone().look(config.threads));
        let pushdown = Pushdown::new(
            origin.clone(),
            cpu,
            memory,
            models.clone(),
            limits,
            metrics.clone(),
        );
        let faces = Arc::new(Faces {
            origin,
            metrics,
            forward,
            pushdown,
            models,
            config: Arc::clone(&config),
        });
        Ok(Self {
            config,
            faces,
            server,
            admin,
            registry: Arc::new(registry),
            embedded,
            looking,
        })
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let drain = CancellationToken::new();
        let (listen, admin) = (self.server.address(), self.admin.address());
        let sources = admin::Sources {
            config: Arc::clone(&self.config),
            origin: self.faces.origin.clone(),
            metrics: self.faces.metrics.clone(),
            models: self.faces.models.clone(),
            registry: self.registry,
            drain: drain.clone(),
        };
        let pages = tokio::spawn(self.admin.serve(sources));
        let server = tokio::spawn(self.server.serve(self.faces, drain.clone()));
        let store = self.embedded.as_ref().map(Embedded::address);
        announce(&self.config, listen, admin, store);
        let ready = async {
            self.looking.await??;
            ready(&self.config, listen, admin, store).await?;
            std::future::pending().await
        };

        tokio::select! {
            fault = ready => return fault,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("draining");
        drain.cancel();
        match server.await? {
            0 => info!("drained"),
            cut => warn!(cut, "the drain timeout passed, connections were cut"),
        }
        pages.abort();
        drop(self.embedded);
        Ok(())
    }
}

/// Says where the gateway listens.
fn announce(config: &Config, listen: SocketAddr, admin: SocketAddr, store: Option<SocketAddr>) {
    for (name, address) in [("listen", listen), ("admin-listen", admin)] {
        if !address.ip().is_loopback() {
            warn!(%address, "{name} is beyond loopback: whoever reaches it can use the gateway");
        }
    }
    info!(%listen, %admin, store = store.map(tracing::field::display), tls = config.tls.is_some(), "listening");
}

/// Tells scripts, in the ready file, that all is served, and where.
async fn ready(
    config: &Config,
    listen: SocketAddr,
    admin: SocketAddr,
    store: Option<SocketAddr>,
) -> anyhow::Result<()> {
    if let Some(file) = &config.ready_file {
        // Renamed into place, so that no reader finds half of it.
        let text = serde_json::json!({ "listen": listen, "admin": admin, "store": store }).to_string();
        let draft = file.with_extension("tmp");
        tokio::fs::write(&draft, text)
            .await
            .with_context(|| format!("ready-file {}", file.display()))?;
        tokio::fs::rename(&draft, file)
            .await
            .with_context(|| format!("ready-file {}", file.display()))?;
    }
    Ok(())
}

// === impl Faces ===

impl Faces {
    async fn answer(&self, face: Face, request: Request<Incoming>) -> Result<Response<Body>, Error> {
        let (parts, body) = request.into_parts();
        request::check(&parts)?;
        let request = Request::from_parts(parts, body);
        match face {
            Face::Forward => self.forward.answer(request).await,
            Face::Pipeline => {
                let (parts, body) = request.into_parts();
                request::check_bodiless(&body)?;
                self.pushdown.object(&parts).await
            }
            Face::Batch => self.pushdown.batch(request).await,
            Face::Models => {
                let wait = self.config.limits.queue_wait;
                self.models.answer(&request.into_parts().0, wait).await
            }
        }
    }
}

impl Handler for Faces {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let face = Face::of(&parts);
        let in_flight = self.metrics.in_flight(face);
        let (method, target) = (parts.method.clone(), parts.uri.clone());
        let answer = self.answer(face, Request::from_parts(parts, body)).await;
        let response = answer.unwrap_or_else(|error| refuse(&error, face, &method, target.path()));
        self.metrics.answered(face, response.status());
        Tracked::new(response, self.metrics.bytes_to_clients.clone(), in_flight).map(BodyExt::boxed_unsync)
    }

    fn explain(&self, status: StatusCode) -> Option<Bytes> {
        let error = unreadable_head(status, &self.config.limits);
        let id = RequestId::random();
        info!(%id, code = errors::code(error.kind()), cause = %Chain(&error), "request refused");
        Some(errors::closing(&error, id))
    }
}

/// Why hyper refused a head with this status.
fn unreadable_head(status: StatusCode, limits: &Limits) -> Error {
    match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Error::new(
            ErrorKind::HeadTooLarge,
            format!(
                "the request's headers are too large: expected at most {} bytes and {} headers",
                limits.max_header_bytes,
                header::MAX_COUNT
            ),
        ),
        StatusCode::URI_TOO_LONG => Error::new(
            ErrorKind::UriTooLong,
            "the request's target is too long: expected at most 65534 bytes",
        ),
        _ => Error::new(
            ErrorKind::InvalidRequest,
            "invalid request: expected a method, a path, HTTP/1.1 and headers",
        ),
    }
}

/// Turns an error into its answer, and logs it: once, here.
fn refuse(error: &Error, face: Face, method: &Method, path: &str) -> Response<Body> {
    let id = RequestId::random();
    let (face, code) = (face.name(), errors::code(error.kind()));
    let cause = Chain(error);
    if error.kind().is_fault() {
        warn!(%id, face, code, %method, %cause, "request failed");
    } else {
        info!(%id, face, code, %method, %cause, "request refused");
    }
    let response = errors::respond(error, path, id);
    if method == Method::HEAD {
        response.map(|_| body::empty())
    } else {
        response
    }
}
