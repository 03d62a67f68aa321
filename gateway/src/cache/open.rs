//! Opens the result cache, and moves its quotas as long as it lives.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use pushdown::{Limits, pipeline::Digest};
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    CellFlights, Inner, ResultCache,
    levels::{HasPlace, Levels},
    mean_time::HitTimes,
    objects::KnownObjects,
    quotas::{CacheLevel, Quotas, REALLOCATION_INTERVAL},
    remembered::{Remembered, Rules},
    saved_quotas::{QuotasFile, TICK},
};
use crate::{config::Scope, telemetry::Metrics};

/// Configuration of the result cache.
#[derive(Debug, Clone)]
pub struct Config {
    /// Bytes of values in memory; 0 without this level.
    pub memory_bytes: u64,
    /// Folder and bytes of values on a disk.
    pub disk: Option<(PathBuf, u64)>,
    /// The most entries on the disk: their index is in memory.
    pub max_disk_entries: u64,
    /// Bytes of the table of known objects.
    pub objects_bytes: u64,
    /// Who shares values.
    pub scope: Scope,
    /// How long a data set keeps its quota unused.
    pub expiry: Duration,
    /// The part of the cache that a tenant can pin, from 0 to 1.
    pub pin_ratio: f64,
    /// How long authorizations of signed targets are remembered.
    pub auth_ttl: Duration,
    /// How long versions are remembered that the store has confirmed to the gateway's own identity.
    pub max_age: Duration,
    /// Limits on values: a value that was computed under other limits is a miss.
    pub limits: Limits,
}

impl Config {
    /// Opens the cache. Values of an earlier run are found again.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub async fn build(self, metrics: Metrics) -> std::io::Result<ResultCache> {
        let disk_bytes = self.disk.as_ref().map_or(0, |(_, bytes)| *bytes);
        if self.memory_bytes == 0 && disk_bytes == 0 {
            return Ok(ResultCache {
                inner: None,
                scope: self.scope,
            });
        }
        let disk = self
            .disk
            .as_ref()
            .map(|(folder, bytes)| (folder.as_path(), *bytes));
        let rules = Rules {
            auth_ttl: self.auth_ttl,
            max_age: self.max_age,
            scope: self.scope,
        };
        let remembered_bytes = if rules.is_enabled() {
            self.objects_bytes / 2
        } else {
            0
        };
        let quotas = Arc::new(Mutex::new(Quotas::new(
            self.memory_bytes,
            disk_bytes,
            self.expiry,
            self.pin_ratio,
        )));
        let has_place = has_place(Arc::clone(&quotas), metrics.clone());
        let levels = Levels::open(self.memory_bytes, disk, self.max_disk_entries, has_place).await?;
        let saved_quotas = disk.map(|(folder, _)| QuotasFile::in_folder(folder));
        let started_at = saved_quotas.as_ref().map_or(Duration::ZERO, |saved| {
            saved.resume(&mut quotas.lock(), SystemTime::now())
        });
        let inner = Arc::new(Inner {
            levels,
            objects: KnownObjects::new(self.objects_bytes - remembered_bytes),
            cell_flights: CellFlights::default(),
            remembered: Remembered::new(rules, remembered_bytes),
            quotas,
            saved_quotas,
            scope: self.scope,
            limits: limits_digest(&self.limits),
            started: Instant::now(),
            started_at,
            hit_times: HitTimes::default(),
            metrics,
        });
        let weak = Arc::downgrade(&inner);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut reallocated_at = Instant::now();
            loop {
                ticks.tick().await;
                let Some(inner) = weak.upgrade() else { return };
                if reallocated_at.elapsed() >= REALLOCATION_INTERVAL {
                    reallocated_at = Instant::now();
                    inner.quotas.lock().reallocate(inner.now());
                }
                inner.end_leases();
                inner.save_quotas(false).await;
            }
        });
        Ok(ResultCache {
            inner: Some(inner),
            scope: self.scope,
        })
    }
}

/// Whether a value that leaves the memory has a place on the disk, where it is counted.
fn has_place(quotas: Arc<Mutex<Quotas>>, metrics: Metrics) -> HasPlace {
    Arc::new(move |owner, bytes| {
        let has_place = quotas.lock().placement(owner.set, owner.object_hash).is_some();
        if has_place {
            metrics.count_cache_insert(CacheLevel::Disk.name(), bytes as u64);
        }
        has_place
    })
}

/// A digest of the limits that decide whether a value is computed.
fn limits_digest(limits: &Limits) -> Digest {
    let limits = [limits.max_pixels, limits.max_object_bytes, limits.max_value_bytes];
    Digest::from_parts(limits.map(u64::to_le_bytes))
}
