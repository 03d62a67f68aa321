//! What a reader promises, by what its samples are.

/// What readers of different samples promise differently. Whoever depends on it asks this value, and not what the samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promises {
    /// Whether the samples of an epoch are counted before they are read.
    pub(crate) is_counted: bool,
    /// What a reader resumes from.
    pub(crate) state: SavedState,
}

/// What a reader resumes from, and with it what another world continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SavedState {
    /// A position, the same on every rank: any world continues the same order.
    StartPosition,
    /// Rows for each rank of each world, the same on every rank: another world deals out anew what is left.
    #[cfg(feature = "tables")]
    RowsRead,
    /// The state of each reader: a reader of the same world continues its order, another world deals out anew what is left.
    ShardsRead,
}

impl SavedState {
    /// The setting that has it.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::StartPosition => "start_position",
            #[cfg(feature = "tables")]
            Self::RowsRead => "rows_read",
            Self::ShardsRead => "shards_read",
        }
    }
}
