//! The command-line program `pushdown`.

mod batch_waits;
mod check;
mod connection;
mod errors;
mod explain;
mod get;
mod location;
mod print;
mod progress;
mod read;
mod report;
#[cfg(feature = "tables")]
mod schema;
mod steps;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

const EXAMPLES: &str = "\
Examples:
  pushdown get s3://photos/cat.jpg -p 'decode | resize(short=256) | center_crop(224)' -o cat.npy
  pushdown schema s3://tables/events.parquet
  pushdown get s3://tables/events.parquet -p 'select(columns=[user, item], limit=100)' -o part.arrow
  pushdown read s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --seed 7
  pushdown read s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --seed 7 --plain
  pushdown check 'decode | resize(short=256) | center_crop(224) | to_float' --size 500x375
  pushdown explain s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --bandwidth 100
  pushdown steps

Exit codes: 0 success, 1 failure, 2 invalid command line or pipeline.";

/// Read machine-learning data through a pushdown gateway
///
/// The gateway runs the first steps of a pipeline next to the store, this program runs the rest.
#[derive(Debug, Parser)]
#[command(name = "pushdown", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr; twice for details
    #[arg(short, long, global = true, display_order = 100, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Get the value that a pipeline computes from one object
    Get(get::Get),
    /// Show the columns and the row count of a table
    #[cfg(feature = "tables")]
    Schema(schema::Schema),
    /// Read all objects under a prefix, and report the throughput
    Read(read::Read),
    /// Measure a pipeline on a few samples, and show the best split
    Explain(explain::Explain),
    /// List every step with its arguments
    Steps(steps::Steps),
    /// Check a pipeline and show kind, shape and bytes after each step, for an image or a table
    Check(check::Check),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log(cli.verbose);
    let done = match cli.command {
        Command::Get(get) => block_on(Box::pin(get.run())),
        #[cfg(feature = "tables")]
        Command::Schema(schema) => block_on(Box::pin(schema.run())),
        Command::Read(read) => block_on(Box::pin(read.run())),
        Command::Explain(explain) => block_on(Box::pin(explain.run())),
        Command::Steps(steps) => steps.run().map(|()| ExitCode::SUCCESS),
        Command::Check(check) => block_on(check.run()),
    };
    done.unwrap_or_else(|error| errors::report(&error))
}

fn block_on(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

fn log(verbose: u8) {
    let default = match verbose {
        // Logs the end of outages and the download of weights, since the user waits for both.
        0 => "warn,pushdown_client::outage=info,pushdown_client::models=info",
        1 => "warn,pushdown=info,pushdown_client=info",
        _ => "info,pushdown=debug,pushdown_client=debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(progress::Log)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}
