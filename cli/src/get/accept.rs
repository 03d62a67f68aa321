//! The forms in which a value can be requested.

use clap::ValueEnum;
use pushdown::wire::Form;

/// A form of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Accept {
    /// A numpy file
    Npy,
    /// An Arrow IPC stream of one row
    Arrow,
    /// safetensors with one tensor, `value`
    Safetensors,
    /// The bare elements, little-endian
    Raw,
}

impl Accept {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Npy => "application/x-npy",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Safetensors => "application/vnd.safetensors",
            Self::Raw => "application/octet-stream",
        }
    }

    /// The name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Arrow => "arrow",
            Self::Safetensors => "safetensors",
            Self::Raw => "raw",
        }
    }

    pub(super) const fn form(self) -> Form {
        match self {
            Self::Npy => Form::Npy,
            Self::Arrow => Form::ArrowStream,
            Self::Safetensors => Form::Safetensors,
            Self::Raw => Form::Raw,
        }
    }
}
