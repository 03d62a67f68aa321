//! Which members of a shard are the columns of its samples.

use std::collections::BTreeSet;

use pushdown::{
    shard::{ColumnMatcher, LeftOut},
    wire::check_columns,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most extensions that an error lists.
const MAX_LISTED_EXTENSIONS: usize = 20;

/// Which members of a group belong to its sample.
///
/// A group is the members of one shard whose names agree up to the first dot after the last `/`. The rest of a name is its extension, which is
/// compared in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnSelection {
    /// Extension of the value, which the pipeline computes. Default: the first of `jpg`, `jpeg`, `png` and `webp` that a group has, except
    /// further columns.
    pub value: Option<String>,
    /// Extensions of the further columns, whose members are delivered as they are stored. At most 16.
    pub further: Vec<String>,
}

/// Some of the extensions that were found, for an error.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundExtensions(BTreeSet<String>);

impl ColumnSelection {
    /// What finds the columns.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an invalid selection.
    pub(crate) fn matcher(&self) -> Result<ColumnMatcher> {
        check_columns(&self.further).map_err(|error| Error::config(error.to_string()))?;
        ColumnMatcher::new(self.value.as_deref(), &self.further).ok_or_else(|| {
            Error::config(
                "the value of a sample cannot be one of its further columns: name another extension for it",
            )
        })
    }
}

impl FoundExtensions {
    pub(crate) fn add(&mut self, extension: &str) {
        if self.0.len() < MAX_LISTED_EXTENSIONS && !self.0.contains(extension) {
            self.0.insert(extension.to_owned());
        }
    }

    /// Adds those of another shard.
    pub(crate) fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|extension| self.add(extension));
    }

    /// The error for columns that no sample has.
    pub(crate) fn missing(&self, bucket: &str, columns: &[String]) -> Error {
        let found: Vec<&str> = self.0.iter().map(String::as_str).collect();
        Error::config(format!(
            "no sample in the shards of s3://{bucket} has a member with the extension {}: found {}",
            columns.join(", "),
            if found.is_empty() {
                "no extension".to_owned()
            } else {
                found.join(", ")
            }
        ))
    }
}

/// Logs what is left out of shards.
pub(crate) fn warn_of_left_out(bucket: &str, left_out: &LeftOut) {
    if !left_out.is_empty() {
        tracing::warn!("left out of the shards of s3://{bucket}: {left_out}");
    }
}

/// Logs the number of groups without a value, which are no samples.
pub(crate) fn warn_of_skipped(bucket: &str, samples: u64, skipped: u64, values: &[String]) {
    if skipped > 0 {
        tracing::warn!(
            "{skipped} of {} groups in the shards of s3://{bucket} have no member with the extension {} and are skipped",
            samples + skipped,
            values.join(", ")
        );
    }
}
