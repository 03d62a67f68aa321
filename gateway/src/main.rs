//! The gateway's binary. All code is in the library.

use std::process::ExitCode;

/// Values are allocated on one thread and freed on another: the slowest case for the system's allocator.
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
    reason = "logging may not have started, and the message is for the person at the terminal"
)]
fn report(error: &anyhow::Error) {
    eprintln!("pushdown-gateway: {error:#}");
}
