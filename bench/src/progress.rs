//! Progress messages on standard error.

/// Prints a progress message.
#[expect(
    clippy::print_stderr,
    reason = "progress goes to standard error, since results go to standard output"
)]
pub fn report(line: &str) {
    eprintln!("{line}");
}
