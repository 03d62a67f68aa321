//! Which members of a shard are the columns of its samples.

use std::collections::BTreeSet;

use pushdown::{shard::LeftOut, wire::check_columns};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Extensions of the values if none is named, in the order of preference.
const IMAGES: [&str; 4] = ["jpg", "jpeg", "png", "webp"];
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

/// Finds the column of a member by its extension.
#[derive(Debug, Clone)]
pub(crate) struct ColumnMatcher {
    /// Extensions of the value, in the order of preference.
    values: Vec<String>,
    /// Extensions of the further columns.
    further: Vec<String>,
}

/// The column of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// The value, with the rank of its extension: 0 is the best.
    Value(usize),
    /// A further column, by its number.
    Further(usize),
}

/// Some of the extensions that were found, for an error.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundExtensions(BTreeSet<String>);

impl ColumnMatcher {
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an invalid selection.
    pub(crate) fn new(selection: &ColumnSelection) -> Result<Self> {
        check_columns(&selection.further).map_err(|error| Error::config(error.to_string()))?;
        let further: Vec<String> = selection.further.iter().map(|name| name.to_lowercase()).collect();
        let mut values: Vec<String> = match &selection.value {
            Some(value) => vec![value.to_lowercase()],
            None => IMAGES.map(str::to_owned).into(),
        };
        values.retain(|value| !further.contains(value));
        if values.is_empty() {
            let text =
                "the value of a sample cannot be one of its further columns: name another extension for it";
            return Err(Error::config(text));
        }
        Ok(Self { values, further })
    }

    /// Extensions of the value, in the order of preference.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    /// Extensions of the further columns, in lower case.
    pub(crate) fn further(&self) -> &[String] {
        &self.further
    }

    /// The column of members with this extension, if it is selected.
    pub(crate) fn column(&self, extension: &str) -> Option<Column> {
        let place = |extensions: &[String]| extensions.iter().position(|other| other == extension);
        let value = place(&self.values).map(Column::Value);
        value.or_else(|| place(&self.further).map(Column::Further))
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
