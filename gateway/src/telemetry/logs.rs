//! Logs go to standard error, one record a line.

use std::io::{self, IsTerminal};

use serde::Serialize;
use tracing_subscriber::EnvFilter;

/// How to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line a record, for people.
    Text,
    /// One JSON object a record, for collectors.
    Json,
}

/// Whether `directives` mean something to [`init`].
pub fn check(directives: &str) -> Result<(), String> {
    EnvFilter::builder()
        .parse(directives)
        .map(drop)
        .map_err(|error| format!("`{directives}` is no level and no list of directives ({error})"))
}

/// Starts logging, once in a process. Directives that [`check`] refuses fall back to `info`.
///
/// The embedded store logs each refusal as an error of its own; it is silent unless asked for by name.
pub fn init(directives: &str, format: LogFormat) {
    let directives = if directives.contains("s3s") {
        directives.to_owned()
    } else {
        format!("s3s=off,s3s_fs=off,{directives}")
    };
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
        tracing::debug!("logging had been started before");
    }
}
