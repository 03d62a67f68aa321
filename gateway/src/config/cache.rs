//! Configuration of the result cache.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::values::{duration, format_size, size};
use super::{Faults, Settings, path};

/// Bytes of a block of the disk cache. A block is written, and reclaimed, as a whole.
pub const CACHE_BLOCK_BYTES: u64 = 16 << 20;
/// The least useful size of a disk cache: some blocks are always being written or reclaimed.
const MIN_DISK_BYTES: u64 = 8 * CACHE_BLOCK_BYTES;
/// Memory of a disk cache for values that are being written. Values that arrive faster than the disk writes are dropped.
const DISK_BUFFER_BYTES: u64 = 2 * CACHE_BLOCK_BYTES;

/// Most memory for the versions of known objects, in bytes.
const MAX_OBJECTS_BYTES: u64 = 64 << 20;
/// Memory of the statistics of data sets: 1,024 sets with 8 KiB of sampled hashes and up to 64 tenants each.
const STATISTICS_BYTES: u64 = 16 << 20;
/// Longest time that an authorization may be remembered (law 6).
const MAX_AUTH_TTL: Duration = Duration::from_mins(1);
/// Time after which an unused data set loses its quota.
const DEFAULT_EXPIRY: Duration = Duration::from_hours(24);
/// The part of the cache that a tenant can pin.
const DEFAULT_PIN_RATIO: f64 = 0.5;

/// Who shares cached values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All tenants that the store authorizes.
    #[default]
    Shared,
    /// Each tenant has values of its own, so that no answer's time tells what others have read.
    Tenant,
}

/// Memory of the index of a disk cache, per entry.
const INDEX_ENTRY_BYTES: u64 = 96;
/// The smallest entry on a disk.
const MIN_ENTRY_BYTES: u64 = 4096;

/// The result cache. It is off without memory and without a disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cache {
    /// Bytes of values in memory, within the memory budget.
    #[serde(serialize_with = "size")]
    pub memory: u64,
    /// Folder of values on a disk.
    pub dir: Option<PathBuf>,
    /// Bytes of values on the disk.
    #[serde(serialize_with = "size")]
    pub disk: u64,
    /// Who shares values.
    pub scope: Scope,
    /// Time after which an unused data set loses its quota.
    #[serde(serialize_with = "duration")]
    pub expiry: Duration,
    /// The part of the cache that a tenant can pin, from 0 to 1.
    pub pin_ratio: f64,
    /// How long an authorization of the store is remembered for the same signed target.
    #[serde(serialize_with = "duration")]
    pub auth_ttl: Duration,
}

impl Cache {
    /// Validates the settings, for a memory budget of `budget_bytes`.
    pub(super) fn validate(settings: &Settings, budget_bytes: u64, faults: &mut Faults) -> Self {
        let disk = faults.size_within("cache-disk", settings.cache_disk.as_ref(), 0, 0..=u64::MAX);
        let cache = Self {
            memory: faults.size_within("cache-memory", settings.cache_memory.as_ref(), 0, 0..=u64::MAX),
            dir: settings.cache_dir.as_ref().map(path),
            disk,
            scope: faults.parsed(
                "cache-scope",
                settings.cache_scope.as_ref(),
                Scope::Shared,
                |text| match text {
                    "shared" => Ok(Scope::Shared),
                    "tenant" => Ok(Scope::Tenant),
                    other => Err(format!("expected shared or tenant, found `{other}`")),
                },
            ),
            expiry: faults.duration("cache-expiry", settings.cache_expiry.as_ref(), DEFAULT_EXPIRY),
            pin_ratio: faults.parsed(
                "cache-pin-ratio",
                settings.cache_pin_ratio.as_ref(),
                DEFAULT_PIN_RATIO,
                |text| match text.parse() {
                    Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
                    _ => Err(format!("expected a number from 0 to 1, found `{text}`")),
                },
            ),
            auth_ttl: faults.duration_within(
                "auth-cache-ttl",
                settings.auth_cache_ttl.as_ref(),
                Duration::ZERO,
                Duration::ZERO..=MAX_AUTH_TTL,
            ),
        };
        if (1..MIN_DISK_BYTES).contains(&disk) {
            faults.add(format!(
                "cache-disk: expected 0 or at least {}, found {}",
                format_size(MIN_DISK_BYTES),
                format_size(disk)
            ));
        }
        if cache.dir.is_some() != (disk > 0) {
            faults.add("cache-dir and cache-disk: expected both, found one");
        }
        if cache.reserved_bytes(budget_bytes) > budget_bytes / 4 * 3 {
            faults.add(format!(
                "cache-memory: the cache requires {} with its tables and buffers, expected at most 3/4 of the memory budget of {}",
                format_size(cache.reserved_bytes(budget_bytes)),
                format_size(budget_bytes)
            ));
        }
        cache
    }

    /// Whether there is a cache.
    pub const fn is_on(&self) -> bool {
        self.memory > 0 || self.disk > 0
    }

    /// Bytes of the table of known objects, of a memory budget of `budget_bytes`.
    pub fn objects_bytes(&self, budget_bytes: u64) -> u64 {
        if self.is_on() {
            MAX_OBJECTS_BYTES.min(budget_bytes / 16)
        } else {
            0
        }
    }

    /// The most entries on the disk, whose index takes at most 1/8 of the memory budget.
    pub fn max_disk_entries(&self, budget_bytes: u64) -> u64 {
        (self.disk / MIN_ENTRY_BYTES).min(budget_bytes / 8 / INDEX_ENTRY_BYTES)
    }

    /// Bytes of the memory budget that the cache takes: values, the table of known objects, statistics, buffers, and the
    /// index of the disk.
    pub fn reserved_bytes(&self, budget_bytes: u64) -> u64 {
        let buffers = if self.disk > 0 { DISK_BUFFER_BYTES } else { 0 };
        let statistics = if self.is_on() { STATISTICS_BYTES } else { 0 };
        self.memory
            .saturating_add(self.objects_bytes(budget_bytes))
            .saturating_add(buffers)
            .saturating_add(statistics)
            .saturating_add(self.max_disk_entries(budget_bytes) * INDEX_ENTRY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Settings};

    use super::*;

    fn settings() -> Settings {
        Settings {
            upstream: Some("http://127.0.0.1:1".into()),
            ..Settings::default()
        }
    }

    fn fault(settings: &Settings) -> String {
        Config::validate(settings).unwrap_err().to_string()
    }

    #[test]
    fn the_cache_is_off_by_default() {
        let config = Config::validate(&settings()).unwrap();
        assert!(!config.cache.is_on());
        assert_eq!(config.cache.reserved_bytes(config.memory_budget), 0);
    }

    #[test]
    fn a_cache_takes_a_part_of_the_memory_budget() {
        let config = Config::validate(&Settings {
            cache_memory: Some("256MiB".into()),
            cache_dir: Some("cache".into()),
            cache_disk: Some("1GiB".into()),
            cache_scope: Some("tenant".into()),
            ..settings()
        });
        let Config {
            cache, memory_budget, ..
        } = config.unwrap();
        assert_eq!((cache.scope, cache.expiry), (Scope::Tenant, DEFAULT_EXPIRY));
        assert_eq!(
            cache.reserved_bytes(memory_budget),
            (256 << 20) + (64 << 20) + STATISTICS_BYTES + DISK_BUFFER_BYTES + (1 << 30) / 4096 * 96
        );
    }

    #[test]
    fn faults_name_the_setting() {
        let too_large = Settings {
            cache_memory: Some("800MiB".into()),
            ..settings()
        };
        assert!(fault(&too_large).contains("3/4 of the memory budget of 1GiB"));
        let no_folder = Settings {
            cache_disk: Some("1GiB".into()),
            ..settings()
        };
        assert!(fault(&no_folder).contains("cache-dir and cache-disk: expected both"));
        let too_small = Settings {
            cache_disk: Some("1MiB".into()),
            cache_dir: Some("cache".into()),
            ..settings()
        };
        assert!(fault(&too_small).contains("cache-disk: expected 0 or at least 128MiB"));
        let long = Settings {
            auth_cache_ttl: Some("61s".into()),
            ..settings()
        };
        assert!(
            fault(&long).contains("auth-cache-ttl: expected"),
            "{}",
            fault(&long)
        );
        let scope = Settings {
            cache_scope: Some("all".into()),
            ..settings()
        };
        assert!(fault(&scope).contains("cache-scope: expected shared or tenant"));
        for ratio in ["1.1", "-0.1", "NaN", "half"] {
            let pins = Settings {
                cache_pin_ratio: Some(ratio.into()),
                ..settings()
            };
            assert!(
                fault(&pins).contains("cache-pin-ratio: expected a number from 0 to 1"),
                "{ratio}"
            );
        }
    }
}
