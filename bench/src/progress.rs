//! Progress, on standard error.

/// Tells the person at the terminal where the run is.
#[expect(
    clippy::print_stderr,
    reason = "progress belongs on the terminal, beside the tables on standard output"
)]
pub fn say(line: &str) {
    eprintln!("{line}");
}
