//! Progress on stderr: bars and spinners on a terminal, otherwise a line from time to time.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write},
    sync::LazyLock,
    time::Duration,
};

use indicatif::{HumanCount, MultiProgress, ProgressBar};
use parking_lot::Mutex;
use pushdown_client::internal::Escaped;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

use crate::{location::Location, terminal::write_line};

/// Interval of lines about a listing if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// All bars, so that log lines do not run into them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A progress bar over this many samples.
pub(crate) fn bar(samples: u64) -> ProgressBar {
    BARS.add(ProgressBar::new(samples))
}

/// The same over a number of samples that nobody knows.
pub(crate) fn counter() -> ProgressBar {
    BARS.add(ProgressBar::no_length())
}

/// A spinner with a text.
pub(crate) fn spinner(text: impl Display) -> ProgressBar {
    let spinner = BARS.add(ProgressBar::new_spinner().with_message(Escaped(text).to_string()));
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// Progress of the listing of a prefix, or of what takes its place.
pub(crate) struct Listing {
    /// What is done, such as `listing s3://photos/`.
    action: String,
    spinner: ProgressBar,
    /// When the last line was written; `None` on a terminal, where the spinner shows the progress.
    lines: Option<Mutex<Instant>>,
}

impl Listing {
    pub(crate) fn new(prefix: &Location) -> Self {
        Self::of(format!("listing {prefix}"))
    }

    /// The reading of an inventory, named by its manifest.
    pub(crate) fn of_inventory(manifest: &Location) -> Self {
        Self::of(format!("reading the inventory {manifest}"))
    }

    fn of(action: String) -> Self {
        Self {
            spinner: spinner(&action),
            action,
            lines: (!io::stderr().is_terminal()).then(|| Mutex::new(Instant::now())),
        }
    }

    /// Shows the number of objects listed so far.
    pub(crate) fn update(&self, objects: usize) {
        let text = format!("{}: {} objects so far", self.action, HumanCount(objects as u64));
        if let Some(last) = &self.lines
            && is_due(&mut last.lock(), LINE_INTERVAL)
        {
            // If stderr is closed, nobody reads the line.
            drop(write_line(&text));
        }
        self.spinner.set_message(Escaped(text).to_string());
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}

/// Whether the interval since `last` has passed. Sets `last` to now if so.
fn is_due(last: &mut Instant, every: Duration) -> bool {
    let due = last.elapsed() >= every;
    if due {
        *last = Instant::now();
    }
    due
}

/// Writes log lines to stderr, above the bars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log;

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_are_written_at_intervals() {
        let mut last = Instant::now();
        let mut due = Vec::new();
        for second in 1..=25 {
            tokio::time::advance(Duration::from_secs(1)).await;
            if is_due(&mut last, LINE_INTERVAL) {
                due.push(second);
            }
        }
        assert_eq!(due, [10, 20]);
    }
}
