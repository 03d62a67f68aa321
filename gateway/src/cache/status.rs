//! The state of the cache, for the status page.

use serde::Serialize;

use super::{ResultCache, quotas::SetStatus};

/// The most data sets on the status page.
const MAX_STATUS_SETS: usize = 100;

/// The state of the cache.
#[derive(Debug, Serialize)]
pub struct CacheStatus {
    /// Bytes of the values in memory.
    memory_bytes: u64,
    /// The data sets at the stages that were asked for, those with the largest quotas first.
    sets: Vec<SetStatus>,
}

impl ResultCache {
    /// The state of the cache, for the status page; `None` without a cache.
    pub fn status(&self) -> Option<CacheStatus> {
        let inner = self.inner.as_ref()?;
        let mut sets = inner.quotas.lock().snapshot(inner.now());
        sets.truncate(MAX_STATUS_SETS);
        Some(CacheStatus {
            memory_bytes: inner.levels.memory_bytes(),
            sets,
        })
    }
}
