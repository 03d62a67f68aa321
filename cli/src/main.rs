//! The program `pushdown`. All of it is in the library, which other programs call as well.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    pushdown_cli::run(env::args_os()).into()
}
