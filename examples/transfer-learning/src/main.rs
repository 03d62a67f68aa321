//! Trains a head on the features of a frozen model with several read methods, and compares them.
//!
//! - `read`: reads samples with `PushdownReader`, and measures the cost
//! - `comparison`: reads with each method, trains a head, and collects the results
//! - `arguments`: the command line, and the settings of the store
//! - `labels`, `features`: the data set
//! - `head`, `metrics`: the training
//! - `admin`, `process`: CPU time of the gateway and of this process
//! - `report`: the output

mod admin;
mod arguments;
mod comparison;
mod features;
mod head;
mod labels;
mod metrics;
mod process;
mod read;
mod report;

use std::io::{self, IsTerminal as _, Write as _};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::arguments::Arguments;

/// What is logged unless `RUST_LOG` is set: warnings, the end of outages, and the download of weights.
const LOGGED: &str = "warn,pushdown_client::outage_log=info,pushdown_client::models=info";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();

    let report = Box::pin(comparison::run(&arguments)).await?;
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(())
}
