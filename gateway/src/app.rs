//! Wires all components, and dispatches each request by its route.

mod gateway;
mod tracked;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::admin::{self, Admin};
use crate::audit::Auditor;
use crate::cache::{self, ResultCache};
use crate::compute::{CpuPool, DemandTable, Ledger, Memory};
use crate::config::{Config, ReplicaId, Store};
use crate::embedded::EmbeddedStore;
use crate::engine;
use crate::models::ModelRegistry;
use crate::origin::{self, Origin, OwnStoreConfig};
use crate::replica;
use crate::resign::Resign;
use crate::routes::{Mode, Route, Routes, Services};
use crate::server::{self, Server};
use crate::telemetry::Metrics;
use gateway::Gateway;

/// The gateway: built and bound, not serving yet.
#[derive(Debug)]
pub struct App {
    config: Arc<Config>,
    gateway: Arc<Gateway>,
    origin: Origin,
    models: ModelRegistry,
    cache: ResultCache,
    server: Server,
    admin: Admin,
    registry: Arc<Registry>,
    replica: ReplicaId,
    demand: DemandTable,
    /// Runs until the gateway is dropped.
    embedded: Option<EmbeddedStore>,
    /// Loads the models in the background, while all other routes are served.
    model_loading: JoinHandle<anyhow::Result<()>>,
    /// Cancelled when the drain begins.
    drain: CancellationToken,
}

impl App {
    /// Builds every component in order. Binds the sockets, so that a fault shows at start.
    pub async fn build(config: Config) -> anyhow::Result<Self> {
        engine::init()?;
        let config = Arc::new(config);
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, &Route::NAMES);
        metrics.set_memory_budget_bytes(config.memory_budget);

        let (store, embedded) = match &config.store {
            Some(Store::Upstream { url, ca }) => (Some((url.clone(), ca.clone())), None),
            Some(Store::Embedded(folder)) => {
                let store = EmbeddedStore::start(folder)
                    .await
                    .map_err(anyhow::Error::from_boxed)?;
                (Some((store.url()?, None)), Some(store))
            }
            None => (None, None),
        };
        let limits = config.limits;
        let resign = config.resign.as_ref();
        let origin = origin::Config {
            own: store.map(|(url, ca)| OwnStoreConfig {
                url,
                style: resign.and_then(|resign| resign.upstream_style),
                region: resign.map(|resign| resign.region.clone()).unwrap_or_default(),
                ca,
            }),
            stated: resign.is_none().then(|| config.stores.clone()),
            limits,
            requires_signing: resign.is_some(),
        };
        let origin = origin.build(&metrics)?;

        let server = server::Config {
            listen: config.listen,
            tls: config.tls.clone(),
            proxies: config.proxies.clone(),
            drain_timeout: config.drain_timeout,
            limits,
        };
        let server = server
            .build(&metrics)
            .await
            .with_context(|| format!("listen {}", config.listen))?;
        let admin = admin::Config {
            listen: config.admin_listen,
            token: config.admin_token.clone(),
            requires_token: config.resign.is_some(),
        }
        .build()
        .await;
        let admin = admin.with_context(|| format!("admin-listen {}", config.admin_listen))?;

        // The CPU pool and memory share one ledger: a tenant that used much CPU time also waits longer for memory.
        let ledger = Ledger::default();
        let cpu = CpuPool::build(config.threads, ledger.clone())?;
        let cache_bytes = config.cache.reserved_bytes(config.memory_budget);
        let memory_bytes = config.memory_budget - cache_bytes;
        let memory = Memory::build(
            memory_bytes,
            limits.unverified_bytes(memory_bytes),
            limits.max_queued,
            limits.queue_wait,
            ledger,
            metrics.clone(),
        );
        let models = ModelRegistry::new(config.models.clone(), config.memory_budget)?;
        let cache = cache::Config {
            memory_bytes: config.cache.memory,
            disk: config.cache.dir.clone().map(|folder| (folder, config.cache.disk)),
            max_disk_entries: config.cache.max_disk_entries(config.memory_budget),
            objects_bytes: config.cache.objects_bytes(config.memory_budget),
            scope: config.cache.scope,
            expiry: config.cache.expiry,
            pin_ratio: config.cache.pin_ratio,
            auth_ttl: config.cache.auth_ttl,
            max_age: config
                .resign
                .as_ref()
                .map_or(Duration::ZERO, |resign| resign.cache_max_age),
            limits: limits.sample_limits(memory.total_bytes()),
        };
        let cache = cache.build(metrics.clone()).await;
        let cache = cache.context("cannot open the folder of the result cache")?;
        // After the cache has checked its folder.
        let replica = match &config.replica_id {
            Some(id) => id.clone(),
            None => replica::default_id(config.cache.dir.as_deref(), server.address())
                .context("cannot read the id among replicas")?,
        };
        metrics.set_replica(&replica);
        let mode = match &config.resign {
            Some(resign) => Mode::Resign {
                resign: Resign::build(resign).await?,
                auditor: Auditor::start(resign, &limits, metrics.clone())?,
            },
            None => Mode::Forward,
        };
        let model_loading = tokio::spawn(models.clone().load(config.threads));
        let services = Services::new(
            origin.clone(),
            cpu,
            memory,
            models.clone(),
            cache.clone(),
            limits,
            metrics.clone(),
            replica.clone(),
        );
        let drain = CancellationToken::new();
        let services = services
            .with_tenant_by(config.tenant_by)
            .with_drain(drain.clone());
        Ok(Self {
            config,
            gateway: Arc::new(Gateway {
                routes: Routes::new(&services, mode),
                max_header_bytes: limits.max_header_bytes,
                metrics,
            }),
            origin,
            models,
            cache,
            server,
            admin,
            registry: Arc::new(registry),
            replica,
            demand: services.demand().clone(),
            embedded,
            model_loading,
            drain,
        })
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let drain = self.drain;
        let (listen, admin) = (self.server.address(), self.admin.address());
        let sources = admin::PageSources {
            replica: self.replica.clone(),
            demand: self.demand,
            config: Arc::clone(&self.config),
            origin: self.origin,
            metrics: self.gateway.metrics.clone(),
            models: self.models,
            cache: self.cache.clone(),
            registry: self.registry,
            drain: drain.clone(),
        };
        let mode = self.gateway.routes.mode().clone();
        let pages = tokio::spawn(self.admin.serve(sources));
        let server = tokio::spawn(self.server.serve(self.gateway, drain.clone()));
        let store = self.embedded.as_ref().map(EmbeddedStore::address);
        announce(&self.config, &self.replica, listen, admin, store);
        let ready = async {
            self.model_loading.await??;
            ready(&self.config, listen, admin, store).await?;
            std::future::pending().await
        };

        tokio::select! {
            result = ready => return result,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("draining");
        drain.cancel();
        match server.await? {
            0 => info!("drained"),
            cut => warn!(cut, "drain timeout expired: connections were cut"),
        }
        self.cache.close().await;
        if let Mode::Resign { auditor, .. } = mode {
            auditor.flush().await;
        }
        pages.abort();
        Ok(())
    }
}

/// Logs the addresses that the gateway listens on, and its id among replicas.
fn announce(
    config: &Config,
    replica: &ReplicaId,
    listen: SocketAddr,
    admin: SocketAddr,
    store: Option<SocketAddr>,
) {
    for (name, address) in [("listen", listen), ("admin-listen", admin)] {
        if !address.ip().is_loopback() {
            warn!(%address, "{name} is not a loopback address: anyone who can reach it can use the gateway");
        }
    }
    info!(%listen, %admin, %replica, store = store.map(tracing::field::display), tls = config.tls.is_some(), "listening");
}

/// Writes the ready file: scripts wait for it, and read the addresses from it.
async fn ready(
    config: &Config,
    listen: SocketAddr,
    admin: SocketAddr,
    store: Option<SocketAddr>,
) -> anyhow::Result<()> {
    if let Some(file) = &config.ready_file {
        // Renamed into place, so that no reader sees a partial file.
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
