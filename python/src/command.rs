//! The command line.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line `pushdown` with these arguments, the program's name first, and returns its exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pushdown_cli::run(arguments)).code()
}
