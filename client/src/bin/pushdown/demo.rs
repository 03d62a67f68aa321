//! `pushdown demo`: whole tasks, read with several methods.

mod admin;
mod features;
mod head;
mod labels;
mod metrics;
mod report;
mod transfer;

use std::process::ExitCode;

use clap::Subcommand;

/// The demo to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Demo {
    /// Train a head on the features of a frozen model with several read methods, and compare them
    Transfer(transfer::Transfer),
}

impl Demo {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Transfer(transfer) => Box::pin(transfer.run()).await,
        }
    }
}
