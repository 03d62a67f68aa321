//! A set of values, and its share of the cache.

use std::{fmt, time::Duration};

use super::{
    share::{Share, TierBytes},
    statistics::SetStatistics,
};

/// Part of the free capacity by which a set may grow between two reallocations. A new set has nothing, so it grows with its first
/// value: the first epoch of the only job fills the cache.
///
/// If no reader announced the number of objects, the threshold starts at 1 and falls while objects are counted. When it has
/// fallen to T, values of G (1 + ln(1/T)) bytes have been admitted to a share of G: at 5 %, four times the share, so what
/// was free.
const GROWTH_RATIO: f64 = 0.25;
/// Relative differences of bytes up to this are rounding errors.
const ROUNDING_RATIO: f64 = 1e-9;

/// The identity of a set: a digest of what the values of a data set at one stage have in common, so of bucket, prefix,
/// stage and engine, and with a cache per tenant, of the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SetId(pub [u8; 16]);

/// A set: its statistics and its share.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) statistics: SetStatistics,
    pub(super) share: Share,
}

// === impl Set ===

impl Set {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            statistics: SetStatistics::new(now),
            share: Share::default(),
        }
    }

    /// Lowers the thresholds if the set has more bytes than known before, or lets the share grow, once, if the set is worth it.
    pub(super) fn fit(&mut self, free: TierBytes) {
        let Self { statistics, share } = self;
        let Some(all_bytes) = statistics.all_bytes() else {
            return;
        };
        if statistics.saved_seconds().is_some_and(|seconds| seconds <= 0.0) {
            share.clear();
            return;
        }
        let is_too_small = all_bytes > share.bytes().total() * (1.0 + ROUNDING_RATIO);
        if is_too_small && !share.has_grown && statistics.is_worth_caching(statistics.last_request()) {
            let bytes = share.bytes().plus(free.scaled(GROWTH_RATIO));
            share.set(bytes, all_bytes, &mut statistics.objects);
            share.has_grown = true;
        } else {
            share.fit(all_bytes);
        }
    }

    pub(super) fn reallocate(&mut self, bytes: TierBytes) {
        let Self { statistics, share } = self;
        if let Some(all_bytes) = statistics.all_bytes() {
            share.set(bytes, all_bytes, &mut statistics.objects);
        }
        share.has_grown = false;
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

    /// Requests per second and byte of all values.
    pub(super) fn requests_per_byte(&self, now: Duration) -> f64 {
        let requests_per_second = self.statistics.requests_per_second(now);
        let all_bytes = self.statistics.all_bytes();
        all_bytes.map_or(0.0, |all_bytes| requests_per_second / all_bytes)
    }

    /// Seconds saved per second and cached byte; 0 if the set is not worth caching.
    pub(super) fn gain_per_byte(&self, now: Duration) -> f64 {
        if !self.statistics.is_worth_caching(now) {
            return 0.0;
        }
        self.requests_per_byte(now) * self.statistics.saved_seconds().unwrap_or(0.0)
    }
}

// === impl SetId ===

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
