//! A set of values, and its share of the cache.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    share::{ROUNDING_RATIO, Share, TierBytes},
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

/// A set: its statistics and its share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) statistics: SetStatistics,
    pub(super) share: Share,
}

impl Set {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            statistics: SetStatistics::new(now),
            share: Share::default(),
        }
    }

    /// The bytes that the share lacks for all values that are known or announced; 0 if they are not worth caching.
    pub(super) fn missing_bytes(&self) -> f64 {
        let all_bytes = self
            .statistics
            .all_bytes()
            .filter(|_| self.statistics.is_worth_caching())
            .unwrap_or(0.0);
        let missing_bytes = all_bytes - self.share.bytes().total();
        if missing_bytes > all_bytes * ROUNDING_RATIO {
            missing_bytes
        } else {
            0.0
        }
    }

    /// Whether it may take more than what is free: from sets of which nobody knows whether they are used again.
    pub(super) fn may_displace(&self) -> bool {
        !self.share.has_grown && self.statistics.is_reused(self.statistics.last_request())
    }

    /// The bytes to take at a time, if the share lacks some and `available_bytes` are free or of others: more than it lacks, as the
    /// number of objects may still be growing, and a part of them if it would take all and lack some still.
    pub(super) fn growth_bytes(&self, available_bytes: f64) -> f64 {
        let missing_bytes = self.missing_bytes();
        if missing_bytes > available_bytes {
            GROWTH_RATIO * available_bytes
        } else {
            missing_bytes
                .max(GROWTH_RATIO * self.share.bytes().total())
                .min(available_bytes)
        }
    }

    /// Lets the share grow by the bytes that it lacks, if as many are free, and by at least `more_bytes`, which are. If they are
    /// not, it grows once, by a part of what is free. Lowers the thresholds if the set has more bytes than its share.
    pub(super) fn fit(&mut self, free: TierBytes, more_bytes: f64) {
        let missing_bytes = self.missing_bytes();
        let Self { statistics, share } = self;
        let Some(all_bytes) = statistics.all_bytes() else {
            return;
        };
        if !statistics.is_worth_caching() {
            *share = Share::default();
        } else if missing_bytes == 0.0 {
            share.fit(all_bytes);
        } else if missing_bytes <= free.total() * (1.0 + ROUNDING_RATIO) {
            let bytes = share.bytes().plus(free.first(missing_bytes.max(more_bytes)));
            share.set(bytes, all_bytes, &mut statistics.objects);
            share.is_full = false;
        } else if share.has_grown {
            share.fit(all_bytes);
        } else {
            // All objects that were counted have been admitted. With a threshold that falls while more are counted, a share of G
            // writes G ln(1/T) bytes more until it is T, over values that are needed.
            share.is_full =
                share.threshold() == Threshold::ALL && statistics.tenants.announced_samples() == 0;
            let growth_bytes = more_bytes.max(GROWTH_RATIO * free.total());
            let bytes = share.bytes().plus(free.first(growth_bytes));
            share.set(bytes, all_bytes, &mut statistics.objects);
            share.has_grown = true;
        }
    }

    /// Gives up at most `bytes` of the share. Returns those that are free now.
    pub(super) fn give_up(&mut self, bytes: f64) -> TierBytes {
        let before = self.share.bytes();
        let ratio = (1.0 - bytes / before.total()).clamp(0.0, 1.0);
        self.shrink_to(TierBytes {
            memory: ratio,
            disk: ratio,
        });
        before.minus(self.share.bytes())
    }

    /// Lowers the share to a ratio of each of its parts.
    pub(super) fn shrink_to(&mut self, ratio: TierBytes) {
        let Self { statistics, share } = self;
        match statistics.all_bytes() {
            Some(all_bytes) => share.set(share.bytes().times(ratio), all_bytes, &mut statistics.objects),
            None => *share = Share::default(),
        }
    }

    /// A set of an earlier run: what it had in memory is gone.
    pub(super) fn restart(&mut self) {
        let in_memory = self.share.memory_threshold();
        self.statistics.objects.unmark_below(in_memory);
    }

    pub(super) fn reallocate(&mut self, bytes: TierBytes) {
        let Self { statistics, share } = self;
        if let Some(all_bytes) = statistics.all_bytes() {
            share.set(bytes, all_bytes, &mut statistics.objects);
        }
        share.has_grown = false;
        share.is_full = false;
    }

    /// Forgets the tenants without a request for this time, and with them what they announced.
    pub(super) fn forget_tenants(&mut self, expiry: Duration, now: Duration) {
        self.statistics.tenants.expire(expiry, now);
        if let Some(all_bytes) = self.statistics.all_bytes() {
            self.share.fit(all_bytes);
        }
    }

    pub(super) fn cached_ratio(&self) -> f64 {
        self.statistics.cached_ratio(self.share.threshold())
    }

    /// The bytes of the values that are admitted.
    pub(super) fn used_bytes(&self) -> TierBytes {
        self.share.used_bytes(self.statistics.all_bytes().unwrap_or(0.0))
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
