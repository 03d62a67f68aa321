//! How a command ends.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The command failed, some samples could not be read, or a store is unsafe.
    Failure = 1,
    /// The command line or the pipeline is invalid.
    Usage = 2,
}

impl Exit {
    /// The exit code of a process that ends with this command.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
