//! A sample as it is stored in a shard.

use std::sync::Arc;

use bytes::Bytes;
use pushdown::{ErrorKind, wire::RowError};

/// The code of a row for a shard that cannot be read further. The same as a gateway's.
const INVALID_SHARD: &str = "InvalidShard";

/// A sample as it is stored, or why it, or the rest of its shard, cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredSample {
    /// Name of the member that is the value. `None` for the error of a shard.
    pub(super) member: Option<Arc<str>>,
    pub(super) value: Result<Bytes, RowError>,
    /// Contents of the further columns; all `None` with an error.
    pub(super) columns: Vec<Option<Bytes>>,
}

impl StoredSample {
    /// The row that stands for the rest of a shard.
    pub(super) fn of_shard(error: RowError, columns: usize) -> Self {
        Self {
            member: None,
            value: Err(error),
            columns: vec![None; columns],
        }
    }

    /// Bytes of its contents.
    pub(super) fn bytes(&self) -> u64 {
        let value = self.value.as_ref().map_or(0, Bytes::len);
        let columns = self.columns.iter().flatten().map(Bytes::len);
        columns.fold(value, usize::saturating_add) as u64
    }
}

/// The error for the rest of a shard.
pub(super) fn invalid_shard(reason: impl std::fmt::Display) -> RowError {
    RowError::new(
        INVALID_SHARD,
        format!("the shard cannot be read further: {reason}"),
    )
}

/// The error of a member of more bytes than the limit.
pub(super) fn member_too_large(size: u64, limit: u64) -> RowError {
    RowError::new(
        ErrorKind::TooLarge.code(),
        format!("the member is too large: expected at most {limit} bytes, found {size}"),
    )
}
