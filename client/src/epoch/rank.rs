//! The rank and the worker that a reader is, among those that share a data set.

/// One of the ranks that share a data set.
///
/// [`PushdownReaderBuilder::rank`](crate::reader::PushdownReaderBuilder::rank) takes it, and building the reader checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Number of this rank, from 0.
    pub index: usize,
    /// Number of all ranks, at least 1.
    pub world: usize,
}

/// One of the workers that share the batches of a rank, such as the worker processes of a data loader.
///
/// [`PushdownReaderBuilder::worker`](crate::reader::PushdownReaderBuilder::worker) takes it, and building the reader checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// Number of this worker, from 0.
    pub index: usize,
    /// Number of the workers of the rank, at least 1.
    pub count: usize,
}

impl Default for Rank {
    fn default() -> Self {
        Self { index: 0, world: 1 }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}
