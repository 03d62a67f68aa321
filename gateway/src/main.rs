//! The binary: everything else is in the library.

use std::process::ExitCode;

/// Values are made on one thread and sent, then freed, on another: what the system's allocator is slowest at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match pushdown_gateway::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "logging may not have started, and this is for the person who typed"
)]
fn report(error: &anyhow::Error) {
    eprintln!("pushdown-gateway: {error:#}");
}
