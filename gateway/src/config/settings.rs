//! What was typed: flags, `PUSHDOWN_*` and the TOML file, all optional, nothing judged yet.
//!
//! Names of flags, of environment variables and of TOML keys are the same words, and they stand only here.

/// Takes each named field from `$over`, or from `$under` where it was not set.
macro_rules! overlay {
    ($over:ident, $under:ident, $($field:ident),+ $(,)?) => {
        Self { $($field: $over.$field.or($under.$field)),+ }
    };
    ($over:ident, $under:ident, $($field:ident),+; $nested:ident) => {
        Self { $($field: $over.$field.or($under.$field),)+ $nested: $over.$nested.over($under.$nested) }
    };
}

mod limits;

use std::path::Path;

use clap::Args;
use serde::Deserialize;

use super::Faults;
use super::values::Text;
pub use limits::LimitSettings;

/// Everything but the limits. A flag wins over the environment, the environment over the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The S3 store to stand in front of (path style), such as `http://127.0.0.1:8333`
    #[arg(long, env = "PUSHDOWN_UPSTREAM", value_name = "URL", help_heading = "Store")]
    pub upstream: Option<Text>,
    /// PEM file of the authorities to trust for an https upstream, instead of the system's
    #[arg(
        long,
        env = "PUSHDOWN_UPSTREAM_CA",
        value_name = "FILE",
        help_heading = "Store"
    )]
    pub upstream_ca: Option<Text>,
    /// Serve this folder by the embedded store instead (for trials), made if it is missing
    #[arg(long, env = "PUSHDOWN_STORE", value_name = "DIR", help_heading = "Store")]
    pub store: Option<Text>,
    /// Access key of the embedded store
    #[arg(long, env = "PUSHDOWN_ACCESS_KEY", value_name = "KEY", help_heading = "Store")]
    pub access_key: Option<Text>,
    /// Secret key of the embedded store; better set by the environment than typed
    #[arg(
        long,
        env = "PUSHDOWN_SECRET_KEY",
        value_name = "SECRET",
        help_heading = "Store"
    )]
    pub secret_key: Option<Text>,

    /// Folder of models for `model` steps: NAME.onnx, and NAME.json on how to prepare inputs
    #[arg(long, env = "PUSHDOWN_MODELS", value_name = "DIR", help_heading = "Models")]
    pub models: Option<Text>,
    /// ONNX Runtime's library, 1.24 or newer [default: libonnxruntime.so where the system finds it]
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "FILE", help_heading = "Models")]
    pub onnxruntime: Option<Text>,
    /// Whether clients may fetch the models' weights, to run layers themselves [default: true]
    #[arg(
        long,
        env = "PUSHDOWN_SERVE_WEIGHTS",
        value_name = "BOOL",
        help_heading = "Models"
    )]
    pub serve_weights: Option<Text>,
    /// What computes models: cpu, or cuda where that is built in [default: cpu]
    #[arg(
        long,
        env = "PUSHDOWN_EXECUTION_PROVIDER",
        value_name = "NAME",
        help_heading = "Models"
    )]
    pub execution_provider: Option<Text>,

    /// Address for S3 [default: 127.0.0.1:9900]; port 0 takes a free one
    #[arg(
        long,
        env = "PUSHDOWN_LISTEN",
        value_name = "ADDR",
        help_heading = "Addresses"
    )]
    pub listen: Option<Text>,
    /// Address for health, metrics and status [default: 127.0.0.1:9901]
    #[arg(
        long,
        env = "PUSHDOWN_ADMIN_LISTEN",
        value_name = "ADDR",
        help_heading = "Addresses"
    )]
    pub admin_listen: Option<Text>,
    /// PEM file of the certificate chain: S3 is then served over TLS
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
    /// Once serving, write its addresses to this file, as {"listen": .., "admin": .., "store": ..}
    #[arg(
        long,
        env = "PUSHDOWN_READY_FILE",
        value_name = "FILE",
        help_heading = "Addresses"
    )]
    pub ready_file: Option<Text>,

    /// Memory that the values of pushed-down requests may take together [default: 1GiB]
    #[arg(
        long,
        env = "PUSHDOWN_MEMORY_BUDGET",
        value_name = "SIZE",
        help_heading = "Resources"
    )]
    pub memory_budget: Option<Text>,
    /// Threads for decoding and the like [default: the CPUs this process may use]
    #[arg(long, env = "PUSHDOWN_THREADS", value_name = "N", help_heading = "Resources")]
    pub threads: Option<Text>,
    /// Threads for model I/O [default: one for every four CPUs]; more of them cost CPU time per request
    #[arg(
        long,
        env = "PUSHDOWN_IO_THREADS",
        value_name = "N",
        help_heading = "Resources"
    )]
    pub io_threads: Option<Text>,
    /// On SIGTERM, how long answers in flight may take to finish [default: 30s]
    #[arg(
        long,
        env = "PUSHDOWN_DRAIN_TIMEOUT",
        value_name = "TIME",
        help_heading = "Resources"
    )]
    pub drain_timeout: Option<Text>,

    /// What to log: a level, or directives such as `info,pushdown_gateway=debug` [default: info]
    #[arg(
        long,
        env = "PUSHDOWN_LOG_LEVEL",
        value_name = "LEVEL",
        help_heading = "Logging"
    )]
    pub log_level: Option<Text>,
    /// text or json [default: text]
    #[arg(
        long,
        env = "PUSHDOWN_LOG_FORMAT",
        value_name = "FORMAT",
        help_heading = "Logging"
    )]
    pub log_format: Option<Text>,

    /// The `[limits]` table.
    #[command(flatten)]
    pub limits: LimitSettings,
}

impl Settings {
    /// Reads a TOML file. An unknown key is a fault, so that no misspelt limit is silently the default.
    pub fn from_file(path: &Path) -> Result<Self, Faults> {
        let fault = |error: String| Faults::one(format!("configuration file {}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        toml::from_str(&text).map_err(|error| fault(error.to_string().trim_end().to_owned()))
    }

    /// These settings, and `under` where they say nothing.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        let over = self;
        overlay!(
            over, under,
            upstream, upstream_ca, store, access_key, secret_key, models, onnxruntime, serve_weights,
            execution_provider, listen, admin_listen, tls_cert, tls_key, ready_file, memory_budget, threads, io_threads, drain_timeout, log_level, log_format; limits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_file() {
        let typed = Settings {
            listen: Some("127.0.0.1:1".into()),
            ..Settings::default()
        };
        let file: Settings =
            toml::from_str("listen = \"127.0.0.1:2\"\nthreads = 3\n[limits]\nbatch-samples = 7\n").unwrap();
        let merged = typed.over(file);
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
}
