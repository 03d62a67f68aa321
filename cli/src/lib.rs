//! The command line `pushdown` as one function, [`run`], and what some commands print, as values. The program `pushdown` calls it, and so can any other program that offers the
//! same commands.
//!
//! Commands write their results to stdout; errors, notes, progress and the log go to stderr.

mod batch_waits;
mod check;
mod connection;
mod data_set;
mod errors;
mod exit;
mod explain;
mod get;
mod index;
mod location;
mod ls;
mod materialize;
mod pack;
mod print;
mod progress;
mod read;
mod report;
#[cfg(feature = "tables")]
mod schema;
mod signals;
mod steps;
mod store_check;
mod terminal;
mod warm;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write as _},
};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

pub use check::{Stages, jpeg};
pub use exit::Exit;
pub use explain::{Assumptions, Explanation, spread};
pub use steps::steps;

const EXAMPLES: &str = "\
Examples:
  pushdown get s3://photos/cat.jpg -p 'decode | resize(short=256) | center_crop(224)' -o cat.npy
  pushdown schema s3://tables/events.parquet
  pushdown get s3://tables/events.parquet -p 'select(columns=[user, item], limit=100)' -o part.arrow
  pushdown read s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --seed 7
  pushdown read s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --seed 7 --plain
  pushdown check 'decode | resize(short=256) | center_crop(224) | to_float' --size 500x375
  pushdown warm s3://photos/train/ -p 'decode | resize(short=256)' --keep 24h
  pushdown materialize s3://photos/train/ s3://photos-small/ -p 'decode | resize(short=256) | encode(jpeg, 90)' --format wds
  pushdown explain s3://photos/train/ -p 'decode | resize(224, 224) | to_float' --bandwidth 100
  pushdown ls --members s3://photos/shards/train-000000.tar
  pushdown pack photos/train -o s3://photos/shards/train-%06d.tar --shard-samples 10000
  pushdown index 's3://photos/shards/train-{000000..000127}.tar' -o train.parquet
  pushdown steps
  pushdown store-check s3://photos/cat.jpg --other-profile guest

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
    /// Compute values at the gateway, and keep them in its result cache
    Warm(warm::Warm),
    /// Write the values of a pipeline for a whole data set, as shards or Parquet files
    Materialize(materialize::Materialize),
    /// Measure a pipeline on a few samples, and show the best split
    Explain(explain::Explain),
    /// List the objects under a prefix, or the members of a shard
    Ls(ls::Ls),
    /// Write files as tar shards
    Pack(pack::Pack),
    /// Find the members of tar and zip shards, and save them as a list
    Index(index::Index),
    /// List every step with its arguments
    Steps(steps::Steps),
    /// Check a pipeline and show kind, shape and bytes after each step, for an image or a table
    Check(check::Check),
    /// Check whether a store authorizes requests before it compares ETags, as the result cache requires
    StoreCheck(store_check::StoreCheck),
}

/// Runs one command, and blocks until it has ended. It ends the process only if a signal arrives while it writes a file: a part of the file
/// is removed first.
///
/// `arguments` are those of a process: the first one is the name of the program. The command uses the environment and the standard streams
/// of this process. The first command sets up the log, unless the process already has a `tracing` subscriber; later ones log at the same
/// level.
///
/// # Panics
/// Inside of an asynchronous runtime, because the command starts its own.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let exit = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.run().unwrap_or_else(|error| errors::report(&error)),
        Err(error) => errors::report_arguments(&error),
    };
    // The end of a program in another language does not flush it. If stdout is closed, nobody reads the rest.
    drop(io::stdout().flush());
    exit
}

impl Cli {
    fn run(self) -> anyhow::Result<Exit> {
        log(self.verbose);
        match self.command {
            Command::Get(get) => block_on(Box::pin(writing(get.run()))),
            #[cfg(feature = "tables")]
            Command::Schema(schema) => block_on(Box::pin(schema.run())),
            Command::Read(read) => block_on(Box::pin(read.run())),
            Command::Warm(warm) => block_on(Box::pin(warm.run())),
            Command::Materialize(materialize) => block_on(Box::pin(materialize.run())),
            Command::Explain(explain) => block_on(Box::pin(explain.run())),
            Command::Ls(ls) => block_on(Box::pin(ls.run())),
            Command::Pack(pack) => block_on(Box::pin(writing(pack.run()))),
            Command::Index(index) => block_on(Box::pin(writing(index.run()))),
            Command::Steps(steps) => steps.run().map(|()| Exit::Success),
            Command::Check(check) => block_on(check.run()),
            Command::StoreCheck(check) => block_on(check.run()),
        }
    }
}

fn block_on(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

/// A command that writes files.
async fn writing(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    signals::remove_drafts_at_end();
    command.await
}

/// Sets up the log of the process.
fn log(verbose: u8) {
    let default = match verbose {
        // Logs the end of outages and the download of weights, since the user waits for both.
        0 => "warn,pushdown_client::outage_log=info,pushdown_client::models=info",
        1 => "warn,pushdown=info,pushdown_cli=info,pushdown_client=info",
        _ => "info,pushdown=debug,pushdown_cli=debug,pushdown_client=debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let set_up = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(terminal::log_fields())
        .with_writer(progress::Log)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .try_init();
    // Fails if the process has a log: that of an earlier command, or its own.
    drop(set_up);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_command(arguments: &[&str]) -> Exit {
        let program = [OsString::from("pushdown")];
        run(program.into_iter().chain(arguments.iter().map(OsString::from)))
    }

    #[test]
    fn a_process_may_run_many_commands() {
        for _ in 0..2 {
            assert_eq!(run_command(&["--version"]), Exit::Success);
            assert_eq!(run_command(&["check", "decode"]), Exit::Success);
            assert_eq!(run_command(&["check", "decode", "--unknown"]), Exit::Usage);
            assert_eq!(run_command(&["check", "decode | rezise(8)"]), Exit::Usage);
        }
    }
}
