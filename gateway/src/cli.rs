//! The command line: reads what was typed, judges it, and runs.

mod health;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing::info;

use crate::app::App;
use crate::config::{Config, Settings};
use crate::telemetry::logs;

/// An S3 gateway that runs the data-reducing part of an input pipeline next to the store
///
/// A plain S3 request passes through to the store untouched. A GET that carries a pipeline brings back the
/// result of the pipeline instead of the object.
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
    /// Every option can be set by a flag, by the environment variable shown with it, or in the TOML file, where
    /// it has the name of the flag; limits stand in its table `[limits]`. A flag wins over the environment, the
    /// environment over the file.
    ///
    /// Sizes are written like 4096, 64KiB or 256MiB, times like 250ms, 30s or 5m.
    Serve(Box<Serve>),
    /// Ask a running gateway how it is; exit status 0 if it is well
    Health(health::Health),
}

#[derive(Debug, Args)]
struct Serve {
    /// Read settings from this TOML file
    #[arg(long, env = "PUSHDOWN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// Runs the command line of this process.
pub fn run() -> anyhow::Result<()> {
    match parse().command {
        Command::Serve(serve) => self::serve(*serve),
        Command::Health(health) => health.run(),
    }
}

/// Reads the command line. Help shows which variables are read and never what they hold: an upstream's URL, a key or a path
/// of this machine has no place in a pasted text.
fn parse() -> Cli {
    let command = Cli::command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_env_values(true)));
    match Cli::from_arg_matches(&command.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    }
}

fn serve(serve: Serve) -> anyhow::Result<()> {
    let file = serve
        .config
        .as_deref()
        .map(Settings::from_file)
        .transpose()?
        .unwrap_or_default();
    let config = Config::validate(&serve.settings.over(file))?;
    logs::init(&config.log_level, config.log_format);
    info!(config = %serde_json::to_string(&config)?, "configured");
    let runtime = match config.io_threads.get() {
        // Without the other threads' queues to watch, a request takes fewer steps.
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
