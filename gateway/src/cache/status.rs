//! The state of the cache, for the status page.

use serde::Serialize;

use super::{
    ResultCache,
    quotas::{PinStatus, SetStatus},
};

/// The most data sets on the status page.
const MAX_STATUS_SETS: usize = 100;
/// The most tenants with pins on it.
const MAX_STATUS_PINS: usize = 100;

/// The state of the cache.
#[derive(Debug, Serialize)]
pub struct CacheStatus {
    /// Bytes of the values in memory.
    memory_bytes: u64,
    /// The data sets at the stages that were asked for, those with the largest quotas first.
    sets: Vec<SetStatus>,
    /// What each tenant has pinned.
    pins: Vec<PinStatus>,
}

impl ResultCache {
    /// The state of the cache, for the status page; `None` without a cache.
    pub fn status(&self) -> Option<CacheStatus> {
        let inner = self.inner.as_ref()?;
        let (mut sets, mut pins) = {
            let (quotas, now) = (inner.quotas.lock(), inner.now());
            (quotas.snapshot(now), quotas.pins(now))
        };
        sets.truncate(MAX_STATUS_SETS);
        pins.truncate(MAX_STATUS_PINS);
        Some(CacheStatus {
            memory_bytes: inner.levels.memory_bytes(),
            sets,
            pins,
        })
    }
}
