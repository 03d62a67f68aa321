//! The configuration, in two steps: the settings as given ([`Settings`]), and the validated configuration ([`Config`]).

mod audit;
mod cache;
mod faults;
mod limits;
#[cfg_attr(not(feature = "models"), path = "config/no_models.rs")]
mod models;
mod network;
mod replica;
mod resign;
mod settings;
mod store;
mod stores;
mod units;
pub mod values;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use audit::{Audit, AuditOverflow};
pub use cache::{CACHE_BLOCK_BYTES, Cache, Scope};
pub use faults::Faults;
pub use limits::{LimitSettings, Limits, SMALL_BODY_BYTES, UnverifiedBytes};
pub use models::Models;
pub use network::Network;
pub use replica::ReplicaId;
pub use resign::{CredentialSource, Resign, ResignSettings};
pub use settings::Settings;
pub use store::{Store, StoreFolder};
pub use stores::{AllowedStore, StoreMatch, Stores};

use crate::telemetry::logs::{self, LogFormat};
pub use values::Secret;
use values::{Text, duration, size};

/// A validated configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// The gateway's own object store. None: requests with a pipeline state their store, and all others are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The stores that requests may state.
    #[serde(skip_serializing_if = "Stores::is_default")]
    pub stores: Stores,
    /// Who has an account of CPU time. Default: access keys.
    pub tenant_by: TenantBy,
    /// Re-sign mode. Default: callers' signatures are forwarded.
    pub resign: Option<Resign>,
    /// The models that pipelines can use.
    pub models: Option<Models>,
    /// Listen address for S3.
    pub listen: SocketAddr,
    /// Listen address for health, metrics and status.
    pub admin_listen: SocketAddr,
    /// What readers of metrics and status send. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token: Option<Secret>,
    /// Certificate and key, to serve S3 over TLS.
    pub tls: Option<Tls>,
    /// Proxies in front of the gateway, whose connections are those of many clients. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<Network>,
    /// The id of this gateway among its replicas. None: [`default_id`](crate::replica::default_id).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_id: Option<ReplicaId>,
    /// File to write the bound addresses to when everything is served.
    pub ready_file: Option<PathBuf>,
    /// Total memory for the values of pipeline requests, in bytes. Default 1 GiB.
    #[serde(serialize_with = "size")]
    pub memory_budget: u64,
    /// The result cache. Default: off.
    pub cache: Cache,
    /// Threads of the CPU pool. Default: the CPUs of the affinity mask, within the cgroup's quota.
    pub threads: NonZeroUsize,
    /// I/O threads for sockets. Default: one per four CPUs. They forward bytes and do not compute. Fewer threads lose less
    /// time in passing requests between threads.
    pub io_threads: NonZeroUsize,
    /// Time for answers in flight to finish during a drain. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub drain_timeout: Duration,
    /// Log filter, as directives of `tracing`. Default `info`.
    pub log_level: String,
    /// Log format. Default text.
    pub log_format: LogFormat,
    /// The limits of law 5.
    pub limits: Limits,
}

/// Files of a TLS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// PEM certificate chain.
    pub certificate: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
}

/// What is one tenant: it is charged for CPU time, and with the cache scope `tenant` it shares no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TenantBy {
    /// The access key that signed.
    #[default]
    AccessKey,
    /// The bucket, for callers whose access keys change with each session.
    Bucket,
}

/// Shortest token of the admin port.
const MIN_ADMIN_TOKEN_BYTES: usize = 16;

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Config {
    /// Validates the settings, and reports all faults at once.
    pub fn validate(settings: &Settings) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let store = Store::validate(settings, &mut faults);
        let memory_budget = faults.size_within(
            "memory-budget",
            settings.memory_budget.as_ref(),
            1 << 30,
            (16 << 20)..=u64::MAX,
        );
        let config = Self {
            resign: Resign::validate(&settings.resign, &mut faults),
            models: Models::validate(settings, &mut faults),
            listen: faults.address("listen", settings.listen.as_ref(), loopback(9900)),
            admin_listen: faults.address("admin-listen", settings.admin_listen.as_ref(), loopback(9901)),
            admin_token: admin_token(settings, &mut faults),
            tls: tls(settings, &mut faults),
            proxies: faults.parsed("proxies", settings.proxies.as_ref(), Vec::new(), |text| {
                list(text).map(str::parse).collect()
            }),
            replica_id: faults.parsed("replica-id", settings.replica_id.as_ref(), None, |text| {
                text.parse().map(Some)
            }),
            ready_file: settings.ready_file.as_ref().map(path),
            memory_budget,
            cache: Cache::validate(settings, memory_budget, &mut faults),
            threads: threads(settings, &mut faults),
            io_threads: io_threads(settings, &mut faults),
            drain_timeout: faults.duration(
                "drain-timeout",
                settings.drain_timeout.as_ref(),
                Duration::from_secs(30),
            ),
            log_level: faults.parsed(
                "log-level",
                settings.log_level.as_ref(),
                "info".to_owned(),
                |text| logs::check(text).map(|()| text.to_owned()),
            ),
            log_format: faults.parsed(
                "log-format",
                settings.log_format.as_ref(),
                LogFormat::Text,
                |text| match text {
                    "text" => Ok(LogFormat::Text),
                    "json" => Ok(LogFormat::Json),
                    other => Err(format!("expected text or json, found `{other}`")),
                },
            ),
            limits: Limits::validate(&settings.limits, &mut faults),
            store,
            stores: Stores::validate(settings, &mut faults),
            tenant_by: tenant_by(settings, &mut faults),
        };
        if config.listen == config.admin_listen && config.listen.port() != 0 {
            faults.add(format!(
                "listen and admin-listen: expected two addresses, found {} for both",
                config.listen
            ));
        }
        faults.into_result(config)
    }
}

fn tenant_by(settings: &Settings, faults: &mut Faults) -> TenantBy {
    if settings.tenant_by.is_some() && settings.resign.keys.is_some() {
        faults.add("tenant-by: expected no resign-keys: keys of the gateway have a `tenant`");
    }
    faults.parsed(
        "tenant-by",
        settings.tenant_by.as_ref(),
        TenantBy::AccessKey,
        |text| match text {
            "access-key" => Ok(TenantBy::AccessKey),
            "bucket" => Ok(TenantBy::Bucket),
            other => Err(format!("expected access-key or bucket, found `{other}`")),
        },
    )
}

fn admin_token(settings: &Settings, faults: &mut Faults) -> Option<Secret> {
    let Text(token) = settings.admin_token.as_ref()?;
    if token.len() < MIN_ADMIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        faults.add("admin-token: expected 16 or more characters of visible ASCII");
    }
    Some(Secret::new(token.clone()))
}

fn tls(settings: &Settings, faults: &mut Faults) -> Option<Tls> {
    match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls {
            certificate: path(certificate),
            key: path(key),
        }),
        (None, None) => None,
        _ => {
            faults.add("tls-cert and tls-key: expected both, found one");
            None
        }
    }
}

fn threads(settings: &Settings, faults: &mut Faults) -> NonZeroUsize {
    let count = faults.count("threads", settings.threads.as_ref(), cpus().get());
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

fn io_threads(settings: &Settings, faults: &mut Faults) -> NonZeroUsize {
    let default = cpus().get().div_ceil(4);
    let count = faults.count("io-threads", settings.io_threads.as_ref(), default);
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

/// The CPUs of the affinity mask, within the cgroup's quota.
fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The parts of a list that is separated by commas.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn path(Text(text): &Text) -> PathBuf {
    PathBuf::from(text)
}

#[cfg(test)]
mod tests;
