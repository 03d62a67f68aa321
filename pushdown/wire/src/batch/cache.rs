//! What a batch request and its answer state about the result cache.

use serde::{Deserialize, Serialize};

/// What a reader plans, by which the gateway decides which values are worth caching. A request with hints asks for the column
/// `cache`. They never change a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheHints {
    /// Epochs that the reader still plans, including this one; 0 for a single read.
    pub epochs: u32,
    /// Samples of the reader's data set.
    pub samples: u64,
}

/// Where the value of a row comes from. The number of a variant is its value in the column `cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum CacheStatus {
    /// All steps ran for this request.
    #[default]
    Computed = 0,
    /// The memory of the result cache.
    Memory = 1,
    /// The disk of the result cache.
    Disk = 2,
    /// The computation of another request that was in flight (single flight).
    Shared = 3,
    /// A value of an earlier stage was cached, and the remaining steps ran for this request.
    Prefix = 4,
}

impl CacheStatus {
    /// Whether the value itself was cached, so that no step ran.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Memory | Self::Disk)
    }

    /// The text of the header [`CACHE`](crate::header::CACHE): `computed`, `memory`, `disk`, `shared`, or `prefix=J`, where J is the
    /// `prefix_stage` at which a value was cached.
    pub fn header_text(self, prefix_stage: usize) -> String {
        match self {
            Self::Computed => "computed".to_owned(),
            Self::Memory => "memory".to_owned(),
            Self::Disk => "disk".to_owned(),
            Self::Shared => "shared".to_owned(),
            Self::Prefix => format!("prefix={prefix_stage}"),
        }
    }
}

/// The status with this number. Numbers of later versions are read as [`Computed`](CacheStatus::Computed).
impl From<u8> for CacheStatus {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Memory,
            2 => Self::Disk,
            3 => Self::Shared,
            4 => Self::Prefix,
            _ => Self::Computed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_of_statuses() {
        let statuses = [
            (0, CacheStatus::Computed, "computed"),
            (1, CacheStatus::Memory, "memory"),
            (2, CacheStatus::Disk, "disk"),
            (3, CacheStatus::Shared, "shared"),
            (4, CacheStatus::Prefix, "prefix=3"),
        ];
        for (number, status, text) in statuses {
            assert_eq!((status as u8, CacheStatus::from(number)), (number, status));
            assert_eq!(status.header_text(3), text);
            assert_eq!(status.is_hit(), matches!(number, 1 | 2));
        }
        assert_eq!(CacheStatus::from(5), CacheStatus::Computed);
    }
}
