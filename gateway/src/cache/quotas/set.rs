//! A set of values, and its quota of the cache.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    pins::Leases,
    quota::{LevelBytes, Quota, ROUNDING_RATIO},
    statistics::SetStatistics,
    threshold::Threshold,
};

/// Part of the free capacity by which a set may grow between two reallocations if it does not fit into it: the rest is for other
/// new sets, until the reallocation decides. A set that fits takes what it needs with its first value.
const GROWTH_RATIO: f64 = 0.25;

/// The identity of a set: a digest of what the values of a data set at one stage have in common, so of bucket, prefix,
/// stage and engine, and with a cache per tenant, of the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct SetId(pub [u8; 16]);

/// A set: its statistics and its quota.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) statistics: SetStatistics,
    /// By the name that saved files have had since their first version.
    #[serde(rename = "share")]
    pub(super) quota: Quota,
    /// Saved files of earlier versions have none.
    #[serde(default)]
    pub(super) leases: Leases,
}

impl Set {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            statistics: SetStatistics::new(now),
            quota: Quota::default(),
            leases: Leases::default(),
        }
    }

    /// The bytes that the quota lacks for all values that are known or announced; 0 if they are not worth caching.
    pub(super) fn missing_bytes(&self) -> f64 {
        let all_bytes = self
            .statistics
            .all_bytes()
            .filter(|_| self.statistics.is_worth_caching())
            .unwrap_or(0.0);
        let missing_bytes = all_bytes - self.quota.bytes().total();
        if missing_bytes > all_bytes * ROUNDING_RATIO {
            missing_bytes
        } else {
            0.0
        }
    }

    /// Whether it may take more than what is free: from sets of which nobody knows whether they are used again.
    pub(super) fn may_displace(&self) -> bool {
        !self.quota.has_grown && self.statistics.is_reused(self.statistics.last_request())
    }

    /// The bytes to take at a time, if the quota lacks some and `available_bytes` are free or of others: more than it lacks, as the
    /// number of objects may still be growing, and a part of them if it would take all and lack some still.
    pub(super) fn growth_bytes(&self, available_bytes: f64) -> f64 {
        let missing_bytes = self.missing_bytes();
        if missing_bytes > available_bytes {
            GROWTH_RATIO * available_bytes
        } else {
            missing_bytes
                .max(GROWTH_RATIO * self.quota.bytes().total())
                .min(available_bytes)
        }
    }

    /// Lets the quota grow by the bytes that it lacks, if as many are free, and by at least `more_bytes`, which are. If they are
    /// not, it grows once, by a part of what is free. Lowers the thresholds if the set has more bytes than its quota.
    pub(super) fn resize_quota(&mut self, free: LevelBytes, more_bytes: f64) {
        let missing_bytes = self.missing_bytes();
        let Self {
            statistics,
            quota,
            leases,
        } = self;
        let Some(all_bytes) = statistics.all_bytes() else {
            return;
        };
        if !statistics.is_worth_caching() && leases.is_empty() {
            *quota = Quota::default();
        } else if missing_bytes == 0.0 {
            quota.lower_thresholds(all_bytes);
        } else if missing_bytes <= free.total() * (1.0 + ROUNDING_RATIO) {
            let bytes = quota.bytes().plus(free.first(missing_bytes.max(more_bytes)));
            quota.set(bytes, all_bytes, &mut statistics.objects);
            quota.is_full = false;
        } else if quota.has_grown {
            quota.lower_thresholds(all_bytes);
        } else {
            // All objects that were counted have been admitted. With a threshold that falls while more are counted, a quota of G
            // writes G ln(1/T) bytes more until it is T, over values that are needed.
            quota.is_full =
                quota.threshold() == Threshold::ALL && statistics.tenants.announced_samples() == 0;
            let growth_bytes = more_bytes.max(GROWTH_RATIO * free.total());
            let bytes = quota.bytes().plus(free.first(growth_bytes));
            quota.set(bytes, all_bytes, &mut statistics.objects);
            quota.has_grown = true;
        }
    }

    /// Gives up at most `bytes` of the quota, in the ratio of what is to `spare` in each level. Returns those that are free now.
    pub(super) fn give_up(&mut self, bytes: f64, spare: LevelBytes) -> LevelBytes {
        let before = self.quota.bytes();
        if spare.total() > 0.0 {
            let ratio = (bytes / spare.total()).clamp(0.0, 1.0);
            self.set_bytes(before.minus(spare.scaled(ratio)));
        }
        before.minus(self.quota.bytes())
    }

    /// Replaces the quota, and pins what its leases have of it.
    pub(super) fn pin(&mut self, bytes: LevelBytes, leases: Leases) {
        if bytes != self.quota.bytes() {
            self.set_bytes(bytes);
        }
        self.quota.is_full &= self.quota.threshold() != Threshold::ALL;
        self.leases = leases;
        self.leases.limit(bytes.total());
    }

    /// Lowers the quota to a ratio of each of its parts.
    pub(super) fn shrink_to(&mut self, ratio: LevelBytes) {
        self.set_bytes(self.quota.bytes().times(ratio));
    }

    fn set_bytes(&mut self, bytes: LevelBytes) {
        let Self {
            statistics, quota, ..
        } = self;
        match statistics.all_bytes() {
            Some(all_bytes) => quota.set(bytes, all_bytes, &mut statistics.objects),
            None => *quota = Quota::default(),
        }
    }

    /// A set of an earlier run: what it had in memory is gone.
    pub(super) fn restart(&mut self) {
        let in_memory = self.quota.memory_threshold();
        self.statistics.objects.unmark_below(in_memory);
    }

    pub(super) fn reallocate(&mut self, bytes: LevelBytes) {
        let Self {
            statistics,
            quota,
            leases,
        } = self;
        if let Some(all_bytes) = statistics.all_bytes() {
            quota.set(bytes, all_bytes, &mut statistics.objects);
        }
        leases.limit(bytes.total());
        quota.has_grown = false;
        quota.is_full = false;
    }

    /// Forgets the tenants without a request for this time, and with them what they announced.
    pub(super) fn forget_tenants(&mut self, expiry: Duration, now: Duration) {
        self.statistics.tenants.expire(expiry, now);
        if let Some(all_bytes) = self.statistics.all_bytes() {
            self.quota.lower_thresholds(all_bytes);
        }
    }

    pub(super) fn cached_ratio(&self) -> f64 {
        self.statistics.cached_ratio(self.quota.threshold())
    }

    /// The bytes of the values that are admitted.
    pub(super) fn used_bytes(&self) -> LevelBytes {
        self.quota.used_bytes(self.statistics.all_bytes().unwrap_or(0.0))
    }

    /// Requests per second and byte of all values. Never 0, however long ago the last one was: until it expires, a set has a claim.
    pub(super) fn requests_per_byte(&self, now: Duration) -> f64 {
        let requests_per_second = self.statistics.requests_per_second(now);
        let all_bytes = self.statistics.all_bytes();
        all_bytes.map_or(0.0, |all_bytes| {
            (requests_per_second / all_bytes).max(f64::MIN_POSITIVE)
        })
    }

    /// Seconds saved per second and cached byte; 0 if the set is not worth caching.
    pub(super) fn gain_per_byte(&self, now: Duration) -> f64 {
        self.requests_per_byte(now) * self.statistics.saved_seconds().unwrap_or(0.0).max(0.0)
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl From<SetId> for String {
    fn from(id: SetId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SetId {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id)?;
        Ok(Self(id))
    }
}
