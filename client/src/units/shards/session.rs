//! What is the same for all shards and batches of a reader.

use std::sync::Arc;

use pushdown::{Limits, Pipeline, shard::ColumnMatcher};

use crate::{
    cpu::CpuPool, error_policy::ErrorPolicy, monitor::Monitored, objects::Objects, planning::Mode,
    stats::Counters, store::Store,
};

/// Everything needed to read shards, the same for all of them.
#[derive(Debug)]
pub(crate) struct ShardSession {
    pub(crate) store: Store,
    /// The shards of the data set.
    pub(crate) shards: Objects,
    pub(crate) pipeline: Pipeline,
    pub(crate) columns: Arc<ColumnMatcher>,
    pub(crate) limits: Limits,
    pub(crate) seed: Option<u64>,
    pub(crate) error_policy: ErrorPolicy,
    pub(crate) cpu: CpuPool,
    pub(crate) counters: Counters,
}

impl Monitored for ShardSession {
    fn store(&self) -> &Store {
        &self.store
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    /// All steps run on this host.
    fn mode(&self) -> Mode {
        Mode::Plain
    }
}
