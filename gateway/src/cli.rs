//! The command line: parses arguments, validates the configuration, and runs.

mod health;
mod keys;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing::info;

use crate::app::App;
use crate::config::{Config, Settings};
use crate::telemetry::logs;

/// An S3 gateway that runs the data-reducing part of an input pipeline next to the store
///
/// A plain S3 request passes through to the store unchanged. A GET with a pipeline returns the result of the
/// pipeline instead of the object.
#[derive(Debug, Parser)]
#[command(name = "pushdown-gateway", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve S3 in front of a store, until SIGTERM or SIGINT
    ///
    /// Every option can be set by a flag, by the environment variable shown with it, or in the TOML file under the
    /// name of the flag (limits in the table `[limits]`). A flag overrides the environment, and the environment
    /// overrides the file.
    ///
    /// Write sizes like 4096, 64KiB or 256MiB, and times like 250ms, 30s or 5m.
    Serve(Box<ServeArguments>),
    /// Check the health of a running gateway; exit status 0 if it is healthy
    Health(health::HealthArguments),
    /// Check and make the keys of callers
    #[command(subcommand)]
    Keys(keys::KeysCommand),
}

#[derive(Debug, Args)]
struct ServeArguments {
    /// Read settings from this TOML file
    #[arg(long, env = "PUSHDOWN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// Runs the command line of this process.
pub fn run() -> anyhow::Result<()> {
    match parse().command {
        Command::Serve(arguments) => serve(*arguments),
        Command::Health(arguments) => arguments.run(),
        Command::Keys(command) => command.run(),
    }
}

/// Parses the command line. Help shows the names of environment variables and never their values: a URL, a key or a
/// local path must not end up in a pasted help text.
fn parse() -> Cli {
    let command = Cli::command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_env_values(true)));
    match Cli::from_arg_matches(&command.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    }
}

fn serve(arguments: ServeArguments) -> anyhow::Result<()> {
    let file = arguments
        .config
        .as_deref()
        .map(Settings::from_file)
        .transpose()?
        .unwrap_or_default();
    let config = Config::validate(&arguments.settings.with_fallback(file))?;
    logs::init(&config.log_level, config.log_format);
    info!(config = %serde_json::to_string(&config)?, "configuration");
    let runtime = match config.io_threads.get() {
        // Cheaper per request: a single thread has no queues of other threads to check.
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    }
    .enable_all()
    .build()?;
    runtime.block_on(async { Box::pin(App::build(config)).await?.run().await })
}
