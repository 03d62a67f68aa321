//! The configuration, in two steps: what was typed ([`Settings`]) and what holds ([`Config`]).

mod faults;
mod limits;
mod models;
mod settings;
pub mod values;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use serde::{Serialize, Serializer};

pub use faults::Faults;
pub use limits::Limits;
pub use models::Models;
pub use settings::{LimitSettings, Settings};

use crate::telemetry::logs::{self, LogFormat};
use values::{Secret, Text, duration, size};

/// A configuration that has been judged whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The store behind the gateway.
    pub store: Store,
    /// The models that pipelines may name.
    pub models: Option<Models>,
    /// Address for S3.
    pub listen: SocketAddr,
    /// Address for health, metrics and status.
    pub admin_listen: SocketAddr,
    /// Serve S3 over TLS.
    pub tls: Option<Tls>,
    /// Where to write the bound addresses once serving.
    pub ready_file: Option<PathBuf>,
    /// Memory that the values of pushed-down requests may take together, in bytes. Default 1 GiB.
    #[serde(serialize_with = "size")]
    pub memory_budget: u64,
    /// Threads for CPU work. Default: the affinity mask and the cgroup's quota.
    pub threads: NonZeroUsize,
    /// Threads for model I/O. Default: one for every four CPUs. They pass bytes on and compute nothing; with fewer of
    /// them, less time is lost in handing requests from one to the other.
    pub io_threads: NonZeroUsize,
    /// How long answers in flight may take to finish once draining. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub drain_timeout: Duration,
    /// What to log, as directives of `tracing`. Default `info`.
    pub log_level: String,
    /// How to log it.
    pub log_format: LogFormat,
    /// The limits of law 5.
    pub limits: Limits,
}

/// The store behind the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// Any S3 store, path style.
    Upstream {
        /// Scheme and authority; never a path, which would break every signature.
        #[serde(serialize_with = "uri")]
        url: Uri,
        /// Authorities to trust instead of the system's.
        ca: Option<PathBuf>,
    },
    /// The embedded store on a local folder.
    Embedded {
        /// The folder.
        directory: PathBuf,
        /// Its one access key.
        access_key: String,
        /// The secret of that key.
        secret_key: Secret,
    },
}

/// Files of a TLS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// PEM certificate chain.
    pub certificate: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
}

// === impl Config ===

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Config {
    /// Judges what was typed and reports every fault at once.
    pub fn validate(typed: &Settings) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let store = store(typed, &mut faults);
        let config = Self {
            models: Models::validate(typed, &mut faults),
            listen: faults.address("listen", typed.listen.as_ref(), loopback(9900)),
            admin_listen: faults.address("admin-listen", typed.admin_listen.as_ref(), loopback(9901)),
            tls: tls(typed, &mut faults),
            ready_file: typed.ready_file.as_ref().map(path),
            memory_budget: faults.size_within(
                "memory-budget",
                typed.memory_budget.as_ref(),
                1 << 30,
                (16 << 20)..=u64::MAX,
            ),
            threads: threads(typed, &mut faults),
            io_threads: io_threads(typed, &mut faults),
            drain_timeout: faults.duration(
                "drain-timeout",
                typed.drain_timeout.as_ref(),
                Duration::from_secs(30),
            ),
            log_level: faults.parsed("log-level", typed.log_level.as_ref(), "info".to_owned(), |text| {
                logs::check(text).map(|()| text.to_owned())
            }),
            log_format: faults.parsed("log-format", typed.log_format.as_ref(), LogFormat::Text, |text| {
                match text {
                    "text" => Ok(LogFormat::Text),
                    "json" => Ok(LogFormat::Json),
                    other => Err(format!("`{other}` is neither text nor json")),
                }
            }),
            limits: Limits::validate(&typed.limits, &mut faults),
            store: store.unwrap_or(Store::Upstream {
                url: Uri::default(),
                ca: None,
            }),
        };
        if config.listen == config.admin_listen && config.listen.port() != 0 {
            faults.note(format!("listen and admin-listen are both {}", config.listen));
        }
        faults.or(config)
    }
}

/// The store, if exactly one was named well; otherwise the faults say what is missing.
fn store(typed: &Settings, faults: &mut Faults) -> Option<Store> {
    match (&typed.upstream, &typed.store) {
        (Some(_), Some(_)) => {
            faults.note("upstream and store are both set: one of them is the store");
            None
        }
        (None, None) => {
            faults.note("no store: set upstream to its URL, or store to a folder");
            None
        }
        (Some(Text(url)), None) => {
            if typed.access_key.is_some() || typed.secret_key.is_some() {
                faults
                    .note("access-key and secret-key belong to store; an upstream judges its callers itself");
            }
            let ca = typed.upstream_ca.as_ref().map(path);
            match upstream(url) {
                Ok(url) => {
                    if ca.is_some() && url.scheme_str() != Some("https") {
                        faults.note("upstream-ca: the upstream is not https");
                    }
                    Some(Store::Upstream { url, ca })
                }
                Err(fault) => {
                    faults.note(format!("upstream: {fault}"));
                    None
                }
            }
        }
        (None, Some(directory)) => {
            if typed.upstream_ca.is_some() {
                faults.note("upstream-ca: the embedded store speaks no TLS");
            }
            match (&typed.access_key, &typed.secret_key) {
                (Some(Text(access)), Some(Text(secret))) if !access.is_empty() && !secret.is_empty() => {
                    Some(Store::Embedded {
                        directory: path(directory),
                        access_key: access.clone(),
                        secret_key: Secret::new(secret.clone()),
                    })
                }
                _ => {
                    faults.note("store: needs access-key and secret-key, neither of them empty");
                    None
                }
            }
        }
    }
}

fn upstream(text: &str) -> Result<Uri, String> {
    let fault = |reason: &str| format!("`{text}` {reason}");
    let url: Uri = text.parse().map_err(|_| fault("is not a URL"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(fault("does not begin with http:// or https://"));
    }
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err("holds a user name: callers sign for themselves".to_owned());
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(fault("has a path: it would break every signature"));
    }
    Ok(url)
}

fn tls(typed: &Settings, faults: &mut Faults) -> Option<Tls> {
    match (&typed.tls_cert, &typed.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls {
            certificate: path(certificate),
            key: path(key),
        }),
        (None, None) => None,
        _ => {
            faults.note("tls-cert and tls-key: one needs the other");
            None
        }
    }
}

fn threads(typed: &Settings, faults: &mut Faults) -> NonZeroUsize {
    let count = faults.count("threads", typed.threads.as_ref(), cpus().get());
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

fn io_threads(typed: &Settings, faults: &mut Faults) -> NonZeroUsize {
    let default = cpus().get().div_ceil(4);
    let count = faults.count("io-threads", typed.io_threads.as_ref(), default);
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

/// The CPUs of the affinity mask, within the cgroup's quota.
fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn path(Text(text): &Text) -> PathBuf {
    PathBuf::from(text)
}

fn uri<S: Serializer>(uri: &Uri, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(uri)
}

#[cfg(test)]
mod tests;
