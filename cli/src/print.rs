//! Output to stdout: figures as JSON for programs, or as text for people.

use std::{
    fmt::{self, Display},
    io::{self, Write as _},
};

use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;

use crate::terminal::Printable;

/// The output format of figures.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Format {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Format {
    /// Prints `figures` as JSON if requested, otherwise the output of `text`. Names in a text that stand on a line of their own are to be
    /// [escaped](pushdown_client::internal::Escaped), so that they cannot end it.
    pub(crate) fn print<S: Serialize>(
        self,
        figures: impl FnOnce() -> S,
        text: impl FnOnce(&mut Printable<io::StdoutLock<'static>>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let out = io::stdout().lock();
        if self.json {
            let mut out = Printable::json(out);
            serde_json::to_writer_pretty(&mut out, &figures())?;
            writeln!(out)?;
        } else {
            text(&mut Printable::text(out))?;
        }
        Ok(())
    }

    /// Prints a report in either form.
    pub(crate) fn report<R: Serialize + Display>(self, report: &R) -> anyhow::Result<()> {
        self.print(|| report, |out| write!(out, "{report}"))
    }
}

/// A count and its noun, such as `1 shard` or `1,000 shards`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) usize, pub(crate) &'static str);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = *self;
        let ending = if count == 1 { "" } else { "s" };
        write!(f, "{} {noun}{ending}", HumanCount(count as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let texts = [0, 1, 2, 1000].map(|count| Count(count, "shard").to_string());
        assert_eq!(texts, ["0 shards", "1 shard", "2 shards", "1,000 shards"]);
    }
}
