//! What stderr shows while something takes its time: bars and spinners on a terminal, a line now and then elsewhere.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::LazyLock,
    time::Duration,
};

use indicatif::{HumanCount, MultiProgress, ProgressBar};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

use crate::location::Location;

/// Where no spinner turns, a line says this often how far a listing is.
const LINES: Duration = Duration::from_secs(10);

/// All bars: lines that are written meanwhile do not run into them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A progress bar over this many samples.
pub(crate) fn bar(samples: u64) -> ProgressBar {
    BARS.add(ProgressBar::new(samples))
}

/// A spinner with a text.
pub(crate) fn spinner(text: String) -> ProgressBar {
    let spinner = BARS.add(ProgressBar::new_spinner().with_message(text));
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// How far the listing of a prefix is.
pub(crate) struct Listing {
    prefix: Location,
    spinner: ProgressBar,
    /// When the last line was written; `None` on a terminal, which has the spinner.
    lines: Option<Mutex<Instant>>,
}

impl Listing {
    pub(crate) fn of(prefix: &Location) -> Self {
        Self {
            prefix: prefix.clone(),
            spinner: spinner(format!("listing {prefix}")),
            lines: (!io::stderr().is_terminal()).then(|| Mutex::new(Instant::now())),
        }
    }

    /// So many objects were listed so far.
    pub(crate) fn listed(&self, objects: usize) {
        let text = format!(
            "listing {}: {} objects so far",
            self.prefix,
            HumanCount(objects as u64)
        );
        if let Some(last) = &self.lines
            && is_due(&mut last.lock(), LINES)
        {
            // Nobody is left to tell if stderr is closed.
            drop(writeln!(io::stderr(), "{text}"));
        }
        self.spinner.set_message(text);
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}

/// Whether so much time has passed since `last`, which is now, then.
fn is_due(last: &mut Instant, every: Duration) -> bool {
    let due = last.elapsed() >= every;
    if due {
        *last = Instant::now();
    }
    due
}

/// Lines of the log, on stderr, clear of the bars.
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
    async fn lines_are_written_now_and_then() {
        let mut last = Instant::now();
        let mut due = Vec::new();
        for second in 1..=25 {
            tokio::time::advance(Duration::from_secs(1)).await;
            if is_due(&mut last, LINES) {
                due.push(second);
            }
        }
        assert_eq!(due, [10, 20]);
    }
}
