//! The settings as given by flags, `PUSHDOWN_*` variables and the TOML file: all optional, not validated.
//!
//! Flags, environment variables and TOML keys have the same names. They are defined only here, those of limits in
//! [`super::limits`].

/// Takes each field from `$settings`, or from `$fallback` if it is not set.
macro_rules! merge {
    ($settings:ident, $fallback:ident, $($field:ident),+; $($nested:ident),+) => {
        Self {
            $($field: $settings.$field.or($fallback.$field),)+
            $($nested: $settings.$nested.with_fallback($fallback.$nested),)+
        }
    };
}

use std::{fmt, path::Path};

use clap::Args;
use serde::{Deserialize, Deserializer};

use super::values::{Text, TextList};
use super::{Faults, LimitSettings, ResignSettings};

/// All settings. A flag overrides the environment, and the environment overrides the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// URL of the S3 store (path style), such as `http://127.0.0.1:8333`
    #[arg(long, env = "PUSHDOWN_UPSTREAM", value_name = "URL", help_heading = "Store")]
    pub upstream: Option<Text>,
    /// PEM file of certificate authorities to trust for an https upstream, instead of the system's
    #[arg(
        long,
        env = "PUSHDOWN_UPSTREAM_CA",
        value_name = "FILE",
        help_heading = "Store"
    )]
    pub upstream_ca: Option<Text>,
    /// Folder to serve by the embedded store instead (for trials); created if it is missing
    #[arg(long, env = "PUSHDOWN_STORE", value_name = "DIR", help_heading = "Store")]
    pub store: Option<Text>,
    /// Access key of the embedded store
    #[arg(long, env = "PUSHDOWN_ACCESS_KEY", value_name = "KEY", help_heading = "Store")]
    pub access_key: Option<Text>,
    /// Secret key of the embedded store; set it in the environment rather than as a flag
    #[arg(
        long,
        env = "PUSHDOWN_SECRET_KEY",
        value_name = "SECRET",
        help_heading = "Store"
    )]
    pub secret_key: Option<Text>,

    /// URL of a store that readers with two addresses may sign for, such as `https://s3.eu-central-1.amazonaws.com`, or with `*` for the
    /// bucket, `https://*.s3.eu-central-1.amazonaws.com`; repeatable, or separated by commas. The upstream is always allowed
    #[arg(
        long,
        env = "PUSHDOWN_ALLOW_STORE",
        value_name = "URL",
        help_heading = "Stores of readers"
    )]
    #[serde(deserialize_with = "texts")]
    pub allow_store: Option<Vec<Text>>,
    /// A bucket that may be read at stores that readers state; repeatable, or separated by commas [default: all]
    #[arg(
        long,
        env = "PUSHDOWN_ALLOW_BUCKET",
        value_name = "NAME",
        help_heading = "Stores of readers"
    )]
    #[serde(deserialize_with = "texts")]
    pub allow_bucket: Option<Vec<Text>>,
    /// A network that is not public, in which hosts that match a `*` of allow-store may have addresses, such as `10.0.0.0/8`; repeatable, or
    /// separated by commas
    #[arg(
        long,
        env = "PUSHDOWN_ALLOW_STORE_NETWORK",
        value_name = "NETWORK",
        help_heading = "Stores of readers"
    )]
    #[serde(deserialize_with = "texts")]
    pub allow_store_network: Option<Vec<Text>>,
    /// PEM file of certificate authorities to trust for https stores of allow-store, instead of the system's
    #[arg(
        long,
        env = "PUSHDOWN_STORE_CA",
        value_name = "FILE",
        help_heading = "Stores of readers"
    )]
    pub store_ca: Option<Text>,
    /// What is one tenant: access-key, or bucket for callers whose access keys change with each session [default: access-key]
    #[arg(
        long,
        env = "PUSHDOWN_TENANT_BY",
        value_name = "NAME",
        help_heading = "Stores of readers"
    )]
    pub tenant_by: Option<Text>,

    /// Folder of models for `model` steps: NAME.onnx, and NAME.json with the input preparation
    #[arg(long, env = "PUSHDOWN_MODELS", value_name = "DIR", help_heading = "Models")]
    pub models: Option<Text>,
    /// Library of ONNX Runtime, 1.24 or newer [default: libonnxruntime.so on the library path]
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "FILE", help_heading = "Models")]
    pub onnxruntime: Option<Text>,
    /// Whether clients may download the weights of models, to run layers locally [default: true]
    #[arg(
        long,
        env = "PUSHDOWN_SERVE_WEIGHTS",
        value_name = "BOOL",
        help_heading = "Models"
    )]
    pub serve_weights: Option<Text>,
    /// Execution provider of models: cpu, or cuda if built in [default: cpu]
    #[arg(
        long,
        env = "PUSHDOWN_EXECUTION_PROVIDER",
        value_name = "NAME",
        help_heading = "Models"
    )]
    pub execution_provider: Option<Text>,

    /// Listen address for S3; port 0 selects a free port [default: 127.0.0.1:9900]
    #[arg(
        long,
        env = "PUSHDOWN_LISTEN",
        value_name = "ADDR",
        help_heading = "Addresses"
    )]
    pub listen: Option<Text>,
    /// Listen address for health, metrics and status [default: 127.0.0.1:9901]
    #[arg(
        long,
        env = "PUSHDOWN_ADMIN_LISTEN",
        value_name = "ADDR",
        help_heading = "Addresses"
    )]
    pub admin_listen: Option<Text>,
    /// Token for metrics and status, sent as `Authorization: Bearer TOKEN`; set it in the environment rather than as a flag. In
    /// re-sign mode these pages need it, unless the address is loopback
    #[arg(
        long,
        env = "PUSHDOWN_ADMIN_TOKEN",
        value_name = "TOKEN",
        help_heading = "Addresses"
    )]
    pub admin_token: Option<Text>,
    /// PEM file of the certificate chain, to serve S3 over TLS
    #[arg(
        long,
        env = "PUSHDOWN_TLS_CERT",
        value_name = "FILE",
        help_heading = "Addresses"
    )]
    pub tls_cert: Option<Text>,
    /// PEM file of the certificate's private key
    #[arg(
        long,
        env = "PUSHDOWN_TLS_KEY",
        value_name = "FILE",
        help_heading = "Addresses"
    )]
    pub tls_key: Option<Text>,
    /// Addresses or networks of proxies in front of the gateway, separated by commas, such as `10.0.0.1,10.1.0.0/16`: their
    /// connections are those of many clients, and max-connections-per-client does not apply
    #[arg(
        long,
        env = "PUSHDOWN_PROXIES",
        value_name = "NETWORKS",
        help_heading = "Addresses"
    )]
    pub proxies: Option<Text>,
    /// Id of this gateway among its replicas, by which readers place samples: 1 to 128 characters of visible ASCII without commas, quotes
    /// and backslashes. It stays over restarts, and no two replicas have the same [default: a random one, in a file of cache-dir; without
    /// that folder host name and port]
    #[arg(
        long,
        env = "PUSHDOWN_REPLICA_ID",
        value_name = "ID",
        help_heading = "Addresses"
    )]
    pub replica_id: Option<Text>,
    /// File to write the addresses to when ready, as {"listen": .., "admin": .., "store": ..}
    #[arg(
        long,
        env = "PUSHDOWN_READY_FILE",
        value_name = "FILE",
        help_heading = "Addresses"
    )]
    pub ready_file: Option<Text>,

    /// Total memory for the values of pipeline requests [default: 1GiB]
    #[arg(
        long,
        env = "PUSHDOWN_MEMORY_BUDGET",
        value_name = "SIZE",
        help_heading = "Resources"
    )]
    pub memory_budget: Option<Text>,
    /// Threads for decoding and other computation [default: the CPUs that this process may use]
    #[arg(long, env = "PUSHDOWN_THREADS", value_name = "N", help_heading = "Resources")]
    pub threads: Option<Text>,
    /// Threads for socket I/O; more threads cost CPU time per request [default: one per four CPUs]
    #[arg(
        long,
        env = "PUSHDOWN_IO_THREADS",
        value_name = "N",
        help_heading = "Resources"
    )]
    pub io_threads: Option<Text>,
    /// Time for answers in flight to finish after SIGTERM [default: 30s]
    #[arg(
        long,
        env = "PUSHDOWN_DRAIN_TIMEOUT",
        value_name = "TIME",
        help_heading = "Resources"
    )]
    pub drain_timeout: Option<Text>,

    /// Memory for values that later requests may need, a part of the memory budget; 0 for none [default: 0]
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_MEMORY",
        value_name = "SIZE",
        help_heading = "Result cache"
    )]
    pub cache_memory: Option<Text>,
    /// Folder for values that later requests may need, on a local disk; it is not encrypted
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_DIR",
        value_name = "DIR",
        help_heading = "Result cache"
    )]
    pub cache_dir: Option<Text>,
    /// Disk space of that folder; 0 for none [default: 0]
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_DISK",
        value_name = "SIZE",
        help_heading = "Result cache"
    )]
    pub cache_disk: Option<Text>,
    /// Who shares values: all callers that the store authorizes (shared), or those with the same access key (tenant)
    /// [default: shared]
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_SCOPE",
        value_name = "SCOPE",
        help_heading = "Result cache"
    )]
    pub cache_scope: Option<Text>,
    /// Time after which the values of an unused data set make room for others [default: 24h]
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_EXPIRY",
        value_name = "TIME",
        help_heading = "Result cache"
    )]
    pub cache_expiry: Option<Text>,
    /// The part of the cache that an access key can pin with batches that are not delivered, from 0 to 1 [default: 0.5]
    #[arg(
        long,
        env = "PUSHDOWN_CACHE_PIN_RATIO",
        value_name = "RATIO",
        help_heading = "Result cache"
    )]
    pub cache_pin_ratio: Option<Text>,

    /// Time for which the store's authorization holds for byte-identical presigned requests, at most 60s and never longer than
    /// their signature: within it, neither a withdrawn right nor a replaced object shows [default: 0s]
    #[arg(
        long,
        env = "PUSHDOWN_AUTH_CACHE_TTL",
        value_name = "TIME",
        help_heading = "Result cache"
    )]
    pub auth_cache_ttl: Option<Text>,

    /// Log level, or directives such as `info,pushdown_gateway=debug` [default: info]
    #[arg(
        long,
        env = "PUSHDOWN_LOG_LEVEL",
        value_name = "LEVEL",
        help_heading = "Logging"
    )]
    pub log_level: Option<Text>,
    /// Log format: text or json [default: text]
    #[arg(
        long,
        env = "PUSHDOWN_LOG_FORMAT",
        value_name = "FORMAT",
        help_heading = "Logging"
    )]
    pub log_format: Option<Text>,

    /// The `[resign]` table.
    #[command(flatten)]
    pub resign: ResignSettings,

    /// The `[limits]` table.
    #[command(flatten)]
    pub limits: LimitSettings,
}

impl Settings {
    /// Reads a TOML file. An unknown key is a fault, so that a misspelt limit is not silently ignored.
    pub fn from_file(path: &Path) -> Result<Self, Faults> {
        let fault = |error: &dyn fmt::Display| format!("configuration file {}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| Faults::from_fault(fault(&error)))?;
        Self::from_text(&text).map_err(|errors| {
            let mut faults = Faults::default();
            for error in errors {
                faults.add(fault(&error));
            }
            faults
        })
    }

    /// Reads the text of a TOML file. An unknown key hides all later faults from the parser: limits at the top level, the most
    /// frequent mistake, are therefore reported first and all at once, and the rest is parsed without them.
    fn from_text(text: &str) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        let parsed = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned());
        let Ok(mut table) = text.parse::<toml::Table>() else {
            return parsed.map_err(|error| vec![error]);
        };
        table.retain(|key, _| {
            let is_limit = LimitSettings::has_key(key);
            if is_limit {
                errors.push(format!("`{key}` is a limit: expected it in the table `[limits]`"));
            }
            !is_limit
        });
        match parsed {
            Ok(settings) => Ok(settings),
            Err(error) if errors.is_empty() => Err(vec![error]),
            Err(_) => {
                errors.extend(
                    table
                        .try_into::<Self>()
                        .err()
                        .map(|error| error.to_string().trim_end().to_owned()),
                );
                Err(errors)
            }
        }
    }

    /// These settings, with `fallback` for those that are not set.
    #[must_use]
    pub fn with_fallback(self, fallback: Self) -> Self {
        let settings = self;
        merge!(
            settings, fallback,
            upstream, upstream_ca, store, access_key, secret_key, allow_store, allow_bucket,
            allow_store_network, store_ca, tenant_by, models, onnxruntime, serve_weights,
            execution_provider, listen, admin_listen, admin_token, tls_cert, tls_key, proxies, replica_id, ready_file, memory_budget, threads, io_threads,
            drain_timeout, cache_memory, cache_dir, cache_disk, cache_scope, cache_expiry, cache_pin_ratio, auth_cache_ttl, log_level, log_format; resign, limits
        )
    }
}

/// A text or an array of texts.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Text>>, D::Error> {
    TextList::deserialize(deserializer).map(|TextList(texts)| Some(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_overrides_the_file() {
        let flags = Settings {
            listen: Some("127.0.0.1:1".into()),
            ..Settings::default()
        };
        let file: Settings =
            toml::from_str("listen = \"127.0.0.1:2\"\nthreads = 3\n[limits]\nbatch-samples = 7\n").unwrap();
        let merged = flags.with_fallback(file);
        assert_eq!(merged.listen, Some("127.0.0.1:1".into()));
        assert_eq!(merged.threads, Some("3".into()));
        assert_eq!(merged.limits.batch_samples, Some("7".into()));
    }

    #[test]
    fn an_unknown_key_is_a_fault() {
        assert!(toml::from_str::<Settings>("lisen = \"127.0.0.1:2\"").is_err());
        assert!(toml::from_str::<Settings>("[limits]\nqueue = \"1s\"").is_err());
        assert!(toml::from_str::<Settings>("[limit]\nqueue-wait = \"1s\"").is_err());
    }

    #[test]
    fn limits_outside_their_table_are_all_named_beside_the_next_fault() {
        let text = "max-object-bytes = \"1 MB\"\nqueue-wait = \"1s\"\nlisen = \"127.0.0.1:2\"\n";
        let errors = Settings::from_text(text).unwrap_err();
        assert_eq!(
            errors[..2],
            ["max-object-bytes", "queue-wait"]
                .map(|key| format!("`{key}` is a limit: expected it in the table `[limits]`"))
        );
        assert!(
            errors[2].starts_with("unknown field `lisen`, expected one of `upstream`, "),
            "{errors:?}"
        );
        assert_eq!(errors.len(), 3);
        let in_table = Settings::from_text("[limits]\nqueue-wait = \"1s\"").unwrap();
        assert_eq!(in_table.limits.queue_wait, Some("1s".into()));
    }
}
