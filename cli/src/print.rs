//! Output to stdout: figures as JSON for programs, or as text for people.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use clap::Args;
use serde::Serialize;

/// The output format of figures.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Format {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Format {
    /// Prints `figures` as JSON if requested, otherwise the output of `text`.
    pub(crate) fn print<S: Serialize>(
        self,
        figures: impl FnOnce() -> S,
        text: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &figures())?;
            writeln!(out)?;
        } else {
            text(&mut out)?;
        }
        Ok(())
    }

    /// Prints a report in either form.
    pub(crate) fn report<R: Serialize + Display>(self, report: &R) -> anyhow::Result<()> {
        self.print(|| report, |out| write!(out, "{report}"))
    }
}
