//! Why an inventory cannot be read.

use super::MAX_HELD_BYTES;
use crate::error::{Error, ErrorKind};

/// Ends the texts about files that are not those of the manifest.
const USE_A_NEWER_ONE: &str = "it was replaced or is damaged: use the manifest of a newer inventory";

/// Why an inventory cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("expected the URL of its manifest, such as s3://bucket/path/manifest.json")]
    Url,
    #[error("expected an inventory of the bucket `{expected}`, found one of `{found}`: use its own one")]
    OtherBucket { expected: String, found: String },
    #[error(
        "expected the format CSV or Parquet, found {0}: set one of them as the output format of the inventory"
    )]
    Format(String),
    #[error("expected the column {column}, found {found}: add it to the metadata fields of the inventory")]
    MissingColumn { column: &'static str, found: String },
    #[error(
        "expected at most {MAX_HELD_BYTES} bytes, found {0}: set CSV as the output format of the inventory"
    )]
    TooLarge(u64),
    #[error("invalid manifest: {0}")]
    Manifest(String),
    #[error("expected {expected} bytes, as in the manifest, found {found}: {USE_A_NEWER_ONE}")]
    Size { expected: u64, found: u64 },
    #[error("expected the MD5 sum {expected} of the manifest, found {found}: {USE_A_NEWER_ONE}")]
    Checksum { expected: String, found: String },
    #[error("invalid data file: {0}")]
    Damaged(String),
    #[error("expected each key once, found `{0}` twice")]
    Duplicate(String),
}

impl Fault {
    /// The error of a reading that is named by `action`.
    pub(super) fn into_error(self, action: &str) -> Error {
        Error::new(self.kind(), format!("{action}: {self}"))
    }

    const fn kind(&self) -> ErrorKind {
        match self {
            Self::Url
            | Self::OtherBucket { .. }
            | Self::Format(_)
            | Self::MissingColumn { .. }
            | Self::TooLarge(_) => ErrorKind::Config,
            Self::Manifest(_)
            | Self::Size { .. }
            | Self::Checksum { .. }
            | Self::Damaged(_)
            | Self::Duplicate(_) => ErrorKind::Protocol,
        }
    }
}
