//! Pins: tenants lease a part of the cache for a set, and no other set gets it while the lease lasts.
//!
//! Each lease has bytes, up to all values of its set: those with the lowest hashes, so that the leases of several tenants on one set
//! cover each other. All leases of a tenant together have at most a ratio of the level. It is the disk, if there is one, since values in
//! memory would not survive a restart.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    Quotas,
    quota::{LevelBytes, ROUNDING_RATIO},
    set::SetId,
    status::PinStatus,
    tenants::access_key,
};
use crate::compute::Tenant;

/// Maximum number of leases on a set. One more displaces the one that ends first.
const MAX_LEASES: usize = 64;

/// The leases on a set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Leases(Vec<Lease>);

/// The lease of a tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    #[serde(with = "access_key")]
    tenant: Tenant,
    until: Duration,
    /// What is pinned. It follows from the size of the set, and from the other leases.
    #[serde(skip)]
    bytes: f64,
}

impl Leases {
    /// Begins or renews the lease of a tenant. It never ends earlier than it would have.
    fn renew(&mut self, tenant: &Tenant, until: Duration) {
        if let Some(lease) = self.0.iter_mut().find(|lease| lease.tenant == *tenant) {
            lease.until = lease.until.max(until);
            return;
        }
        if self.0.len() >= MAX_LEASES
            && let Some((first, _)) = self.0.iter().enumerate().min_by_key(|(_, lease)| lease.until)
        {
            self.0.remove(first);
        }
        self.0.push(Lease {
            tenant: tenant.clone(),
            until,
            bytes: 0.0,
        });
    }

    /// Removes the leases that have ended. Returns whether there were any.
    pub(super) fn end(&mut self, now: Duration) -> bool {
        let before = self.0.len();
        self.0.retain(|lease| lease.until > now);
        self.0.len() < before
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the set that are pinned.
    pub(super) fn bytes(&self) -> f64 {
        self.0.iter().map(|lease| lease.bytes).fold(0.0, f64::max)
    }

    /// Whether each of them has all bytes of the set.
    fn have(&self, all_bytes: f64) -> bool {
        let is_all = |lease: &Lease| (lease.bytes - all_bytes).abs() <= ROUNDING_RATIO * all_bytes;
        self.0.iter().all(is_all)
    }

    pub(super) fn bytes_of(&self, tenant: &Tenant) -> f64 {
        let own = self.0.iter().filter(|lease| lease.tenant == *tenant);
        own.map(|lease| lease.bytes).sum()
    }

    /// Pins no more than these bytes.
    pub(super) fn limit(&mut self, bytes: f64) {
        for lease in &mut self.0 {
            lease.bytes = lease.bytes.min(bytes);
        }
    }
}

impl Quotas {
    /// Begins or renews the lease of a tenant on a set that it has asked for, from `now` on.
    pub(crate) fn pin(&mut self, id: SetId, tenant: &Tenant, keep: Duration, now: Duration) {
        let Some(set) = self.sets.get_mut(&id) else { return };
        set.leases.renew(tenant, now.saturating_add(keep));
        self.recompute_quota(id);
    }

    /// Ends leases: what was pinned is an ordinary part of the quotas again.
    pub(crate) fn end_leases(&mut self, now: Duration) {
        for set in self.sets.values_mut() {
            self.changes += u64::from(set.leases.end(now));
        }
    }

    /// The bytes that are pinned.
    pub(crate) fn pinned_bytes(&self) -> f64 {
        self.sets.values().map(|set| set.leases.bytes()).sum()
    }

    /// What each tenant has pinned.
    pub(crate) fn pins(&self, now: Duration) -> Vec<PinStatus> {
        let mut pins: BTreeMap<&str, PinStatus> = BTreeMap::new();
        for lease in self.sets.values().flat_map(|set| &set.leases.0) {
            let name = lease.tenant.name();
            let left_seconds = lease.until.saturating_sub(now).as_secs();
            pins.entry(name)
                .or_insert_with(|| PinStatus::new(name))
                .add(lease.bytes, left_seconds);
        }
        pins.into_values().collect()
    }

    /// 1 for the level of pinned values, 0 for the other one.
    pub(super) fn pin_level(&self) -> LevelBytes {
        let is_disk = f64::from(u8::from(self.capacity.disk > 0.0));
        LevelBytes {
            memory: 1.0 - is_disk,
            disk: is_disk,
        }
    }

    /// Pins all values of a set that are known or announced, as far as its leases allow. Other sets give up what the quota lacks for
    /// that: first those of which nobody knows whether they are used again, and of these the ones that have been unused for longest.
    pub(super) fn grow_pin(&mut self, id: SetId) {
        let level = self.pin_level();
        let Some(set) = self.sets.get(&id).filter(|set| !set.leases.is_empty()) else {
            return;
        };
        let Some(all_bytes) = set.statistics.all_bytes() else {
            return;
        };
        let held = set.quota.bytes();
        if set.leases.have(all_bytes) && held.times(level) == held {
            return;
        }
        let space_bytes = self.capacity.times(level).total();
        let others = || {
            self.sets
                .iter()
                .filter(|(other, _)| **other != id)
                .map(|(_, set)| &set.leases)
        };
        let room_bytes = space_bytes - others().map(Leases::bytes).sum::<f64>();
        let max_bytes = |tenant: &Tenant| {
            let elsewhere: f64 = others().map(|leases| leases.bytes_of(tenant)).sum();
            (self.pin_ratio * space_bytes - elsewhere)
                .min(room_bytes)
                .max(0.0)
        };
        let mut leases = set.leases.clone();
        for lease in &mut leases.0 {
            lease.bytes = all_bytes.min(max_bytes(&lease.tenant));
        }
        let lacking_bytes = (leases.bytes() - held.times(level).total()).max(0.0);
        let free_bytes = self.free(level).total();
        if lacking_bytes > free_bytes {
            let others = self.spare_of_others(id, level, true);
            self.take(&others, lacking_bytes - free_bytes, level);
        }
        let grown_bytes = lacking_bytes.min(self.free(level).total());
        let Some(set) = self.sets.get_mut(&id) else { return };
        let bytes = held.times(level).plus(level.scaled(grown_bytes));
        set.pin(bytes, leases);
        self.granted = self.granted.minus(held).plus(set.quota.bytes());
    }
}
