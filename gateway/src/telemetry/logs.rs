//! Logs to standard error, one record per line.

use std::io::{self, IsTerminal};

use serde::Serialize;
use tracing_subscriber::EnvFilter;

/// How to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line per record, for people.
    Text,
    /// One JSON object per record, for log collectors.
    Json,
}

/// Checks that [`init`] accepts `directives`.
pub fn check(directives: &str) -> Result<(), String> {
    EnvFilter::builder()
        .parse(directives)
        .map(drop)
        .map_err(|error| format!("expected a level or a list of directives, found `{directives}` ({error})"))
}

/// Starts logging, once per process. Falls back to `info` for directives that [`check`] refuses.
///
/// The embedded store logs each refusal as an error, so its logs are off unless a directive names it. So are those of AWS's profiles,
/// `aws_config::profile`: they have the access key whenever credentials are fetched. Their failures are logged by the chain, too.
pub fn init(directives: &str, format: LogFormat) {
    let store = if directives.contains("s3s") {
        ""
    } else {
        "s3s=off,s3s_fs=off,"
    };
    let directives = format!("aws_config::profile=off,{store}{directives}");
    let filter = EnvFilter::builder()
        .parse(directives)
        .unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was already started");
    }
}
