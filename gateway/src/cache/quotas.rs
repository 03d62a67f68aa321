//! Decides which values are cached: the quota of each set of objects, and which of its objects have one.
//!
//! A set takes what it needs as long as its level has free space, if a hit is cheaper than computing. When space is short, sets
//! with evidence that their objects are read again come first.
//!
//! Pure: the caller says what happens and when. A *set* is all values of a data set at one stage. Each set has an admission
//! threshold, and an object is cached if its hash is below it. Nothing is evicted inside a quota, which is optimal for random
//! orders that use each object once per epoch.

mod allocate;
mod decayed;
mod distinct;
mod movement;
mod pins;
mod quota;
mod reallocate;
mod saved;
mod set;
mod statistics;
mod status;
mod tenants;
mod threshold;

use std::{collections::BTreeMap, time::Duration};

use quota::LevelBytes;
pub(super) use reallocate::REALLOCATION_INTERVAL;
pub(super) use saved::SavedQuotas;
use set::Set;
pub(super) use set::SetId;
pub(super) use status::{PinStatus, SetStatus};
pub use tenants::Hints;

use crate::compute::Tenant;

/// Tenants, plans and repeats within this time count.
const RECENT: Duration = Duration::from_mins(10);
/// Part of the capacity that quotas use: disk space is reclaimed in whole blocks, and late.
const USED_RATIO: f64 = 0.9;
/// Maximum number of sets.
const MAX_SETS: usize = 1024;
/// Sets that are forgotten at once when there are too many.
const FORGOTTEN_SETS: usize = MAX_SETS / 64;

/// The quotas of all sets.
#[derive(Debug)]
pub(super) struct Quotas {
    /// Bytes for the quotas of all sets.
    capacity: LevelBytes,
    /// Bytes of the quotas of all sets.
    granted: LevelBytes,
    /// Sets without a request for this time are forgotten.
    expiry: Duration,
    /// The part of the capacity that a tenant can pin, from 0 to 1.
    pin_ratio: f64,
    sets: BTreeMap<SetId, Set>,
    reallocated_at: Option<Duration>,
    /// Changes so far, so that only changed quotas are saved.
    changes: u64,
}

/// What a set can give up.
#[derive(Debug)]
struct SpareBytes {
    is_reused: bool,
    last_request: Duration,
    set: SetId,
    bytes: f64,
}

/// Where a value is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// In memory: the lowest hashes.
    Memory,
    /// On disk: the next ones.
    Disk,
}

impl CacheLevel {
    /// The name in answers and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

impl Quotas {
    /// No sets. A size of 0 turns its level off. `pin_ratio` is the part of the level that a tenant can pin, from 0 to 1.
    pub(super) fn new(memory_bytes: u64, disk_bytes: u64, expiry: Duration, pin_ratio: f64) -> Self {
        let bytes = LevelBytes {
            memory: float(memory_bytes),
            disk: float(disk_bytes),
        };
        Self {
            capacity: bytes.scaled(USED_RATIO),
            granted: LevelBytes::default(),
            expiry,
            pin_ratio,
            sets: BTreeMap::new(),
            reallocated_at: None,
            changes: 0,
        }
    }

    /// Records a request that the store authorized, for the value of an object in a set. `now` is the time since any fixed start.
    pub(super) fn observe_request(
        &mut self,
        id: SetId,
        tenant: &Tenant,
        object_hash: u64,
        hints: Option<Hints>,
        now: Duration,
    ) {
        if self.sets.len() >= MAX_SETS && !self.sets.contains_key(&id) {
            self.forget_oldest_sets(now);
        }
        let set = self.sets.entry(id).or_insert_with(|| Set::new(now));
        set.statistics.observe_request(tenant, object_hash, hints, now);
        self.recompute_quota(id);
    }

    /// Records a computed value, cached or not: the bytes that it uses in the cache, and the seconds that a hit would have
    /// saved, so those of fetching and computing less those of a hit. They may be negative. The value is to be cached if
    /// [`Quotas::placement`] then has a level for it.
    pub(super) fn observe_value(&mut self, id: SetId, object_hash: u64, bytes: u64, saved_seconds: f64) {
        let Some(set) = self.sets.get_mut(&id) else { return };
        set.statistics.observe_value(bytes, saved_seconds);
        self.recompute_quota(id);
        self.mark_cached(id, object_hash);
    }

    /// Records that the cache answered a request. Returns the seconds that this saved, by the mean of the set.
    pub(super) fn observe_hit(&mut self, id: SetId, object_hash: u64) -> f64 {
        let Some(set) = self.sets.get_mut(&id) else {
            return 0.0;
        };
        set.statistics.observe_hit();
        let saved = set.statistics.saved_seconds().unwrap_or_default();
        self.mark_cached(id, object_hash);
        saved
    }

    /// The level for the value of this object; `None` if it is not worth caching.
    pub(super) fn placement(&self, id: SetId, object_hash: u64) -> Option<CacheLevel> {
        self.sets.get(&id)?.quota.placement(object_hash)
    }

    /// Whether a value of the set is worth measuring: nothing is known of them yet.
    pub(super) fn is_unmeasured(&self, id: SetId) -> bool {
        self.sets
            .get(&id)
            .is_some_and(|set| set.statistics.saved_seconds().is_none())
    }

    /// Whether so few values have been measured that hits are worth measuring, too: after a restart there may be nothing else.
    pub(super) fn is_hardly_measured(&self, id: SetId) -> bool {
        self.sets
            .get(&id)
            .is_some_and(|set| set.statistics.is_hardly_measured())
    }

    /// The part of the set's objects that is cached, from 0 to 1.
    pub(super) fn cached_ratio(&self, id: SetId) -> f64 {
        self.sets.get(&id).map_or(0.0, Set::cached_ratio)
    }

    /// All sets, the largest quotas first.
    pub(super) fn snapshot(&self, now: Duration) -> Vec<SetStatus> {
        let statuses = self.sets.iter().map(|(id, set)| SetStatus::new(*id, set, now));
        let mut statuses: Vec<SetStatus> = statuses.collect();
        statuses.sort_by(|one, other| other.bytes().total_cmp(&one.bytes()));
        statuses
    }

    /// Adapts the quota of a set to what has been observed.
    fn recompute_quota(&mut self, id: SetId) {
        self.changes += 1;
        self.grow_pin(id);
        let Some(set) = self.sets.get(&id) else { return };
        let levels = self.levels_of(set);
        let is_short = set.missing_bytes() > self.free(levels).total();
        let more_bytes = if is_short && set.may_displace() {
            self.displace(id)
        } else {
            0.0
        };
        let free = self.free(levels);
        let Some(set) = self.sets.get_mut(&id) else { return };
        let before = set.quota.bytes();
        set.resize_quota(free, more_bytes);
        self.granted = self.granted.minus(before).plus(set.quota.bytes());
    }

    /// Takes bytes for a set from those of which nobody knows whether they are used again: first from those that have been unused
    /// for longest. Returns how many the set is to get, with those that were free.
    fn displace(&mut self, id: SetId) -> f64 {
        let Some(set) = self.sets.get(&id) else { return 0.0 };
        let levels = self.levels_of(set);
        let others = self.spare_of_others(id, levels, false);
        let free_bytes = self.free(levels).total();
        let available_bytes = free_bytes + others.iter().map(|other| other.bytes).sum::<f64>();
        let wanted_bytes = set.growth_bytes(available_bytes);
        self.take(&others, wanted_bytes - free_bytes, levels);
        wanted_bytes
    }

    /// The levels that a set may use: 1 for these, else 0. All values of a pinned set are in one.
    fn levels_of(&self, set: &Set) -> LevelBytes {
        if set.leases.is_empty() {
            LevelBytes {
                memory: 1.0,
                disk: 1.0,
            }
        } else {
            self.pin_level()
        }
    }

    /// What no set has, in these levels.
    fn free(&self, levels: LevelBytes) -> LevelBytes {
        self.capacity.minus(self.granted).times(levels)
    }

    /// What a set has in these levels, and has not pinned.
    fn spare(&self, set: &Set, levels: LevelBytes) -> LevelBytes {
        let pinned = self.pin_level().scaled(set.leases.bytes());
        set.quota.bytes().minus(pinned).times(levels)
    }

    /// What other sets can give up in these levels, in the order in which they are to. Those that are used again only if `is_reused_too`.
    fn spare_of_others(&self, id: SetId, levels: LevelBytes, is_reused_too: bool) -> Vec<SpareBytes> {
        let now = self.sets.get(&id).map(|set| set.statistics.last_request());
        let spare = |(id, set): (&SetId, &Set)| SpareBytes {
            is_reused: now.is_some_and(|now| set.statistics.is_reused(now)),
            last_request: set.statistics.last_request(),
            set: *id,
            bytes: self.spare(set, levels).total(),
        };
        let others = self.sets.iter().filter(|(other, _)| **other != id).map(spare);
        let is_displaced = |other: &SpareBytes| other.bytes > 0.0 && (is_reused_too || !other.is_reused);
        let mut others: Vec<SpareBytes> = others.filter(is_displaced).collect();
        others.sort_unstable_by_key(|other| (other.is_reused, other.last_request, other.set));
        others
    }

    /// Takes bytes of these levels from sets, in their order.
    fn take(&mut self, others: &[SpareBytes], bytes: f64, levels: LevelBytes) {
        let mut taken_bytes = 0.0;
        for other in others {
            let Some(set) = self.sets.get(&other.set).filter(|_| taken_bytes < bytes) else {
                return;
            };
            let spare = self.spare(set, levels);
            if let Some(set) = self.sets.get_mut(&other.set) {
                let given_up = set.give_up(bytes - taken_bytes, spare);
                self.granted = self.granted.minus(given_up);
                taken_bytes += given_up.total();
            }
        }
    }

    fn mark_cached(&mut self, id: SetId, object_hash: u64) {
        if let Some(set) = self.sets.get_mut(&id)
            && set.quota.placement(object_hash).is_some()
        {
            set.statistics.objects.mark_cached(object_hash);
        }
    }

    /// Forgets the sets that have been unused for longest, first of all those without a quota, and then those of which nobody
    /// knows whether they are used again. Pinned ones are the last.
    fn forget_oldest_sets(&mut self, now: Duration) {
        let age = |(id, set): (&SetId, &Set)| {
            let is_pinned = !set.leases.is_empty();
            let has_quota = set.quota.bytes() != LevelBytes::default();
            let is_reused = has_quota && set.statistics.is_reused(now);
            (
                is_pinned,
                has_quota,
                is_reused,
                set.statistics.last_request(),
                *id,
            )
        };
        let mut ages: Vec<_> = self.sets.iter().map(age).collect();
        ages.select_nth_unstable(FORGOTTEN_SETS);
        for (.., id) in &ages[..FORGOTTEN_SETS] {
            if let Some(set) = self.sets.remove(id) {
                self.granted = self.granted.minus(set.quota.bytes());
            }
        }
    }
}

/// Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
