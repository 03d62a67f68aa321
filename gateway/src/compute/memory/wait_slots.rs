//! Slots for waiting requests. No tenant can take all of them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::compute::Tenant;

/// A fixed number of slots. Clones share them.
///
/// A tenant may use as many slots as are left free: a single tenant half of them, two tenants a third each, and so on,
/// so that a new tenant always finds a slot. After Choudhury and Hahne, "Dynamic queue length thresholds for
/// shared-memory packet switches" (1998), with a factor of one.
#[derive(Debug, Clone)]
pub(super) struct WaitSlots {
    total: usize,
    used: Arc<Mutex<UsedSlots>>,
}

#[derive(Debug, Default)]
struct UsedSlots {
    total: usize,
    /// Only tenants with a slot.
    by_tenant: HashMap<Tenant, usize>,
}

/// A used slot, until it is dropped.
#[derive(Debug)]
pub(super) struct WaitSlot {
    used: Arc<Mutex<UsedSlots>>,
    tenant: Tenant,
}

impl WaitSlots {
    pub(super) fn new(total: usize) -> Self {
        Self {
            total,
            used: Arc::default(),
        }
    }

    /// Takes a slot, if the tenant may have one more.
    pub(super) fn acquire(&self, tenant: &Tenant) -> Option<WaitSlot> {
        let mut used = self.used.lock();
        let free = self.total.saturating_sub(used.total);
        if used.by_tenant.get(tenant).copied().unwrap_or_default() >= free {
            return None;
        }
        used.total += 1;
        *used.by_tenant.entry(tenant.clone()).or_default() += 1;
        Some(WaitSlot {
            used: Arc::clone(&self.used),
            tenant: tenant.clone(),
        })
    }
}

impl Drop for WaitSlot {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        used.total -= 1;
        if let Entry::Occupied(mut slots) = used.by_tenant.entry(self.tenant.clone()) {
            *slots.get_mut() -= 1;
            if *slots.get() == 0 {
                slots.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn fill(slots: &WaitSlots, tenant: &Tenant) -> Vec<WaitSlot> {
        iter::from_fn(|| slots.acquire(tenant)).collect()
    }

    #[test]
    fn a_new_tenant_always_finds_a_slot() {
        let slots = WaitSlots::new(64);
        let tenants = ["a", "b", "c", "d"].map(|key| Tenant::from_access_key(Some(key)));
        let used: Vec<_> = tenants.iter().map(|tenant| fill(&slots, tenant)).collect();
        let counts: Vec<_> = used.iter().map(Vec::len).collect();
        assert_eq!(counts, [32, 16, 8, 4]);
        // Slots that a tenant releases are free for all.
        let [mut first, rest @ ..] = <[Vec<WaitSlot>; 4]>::try_from(used).unwrap();
        first.clear();
        assert_eq!(fill(&slots, &tenants[3]).len(), 16);
        drop((first, rest));
        assert_eq!(fill(&slots, &tenants[0]).len(), 32);
        let used = slots.used.lock();
        assert!(used.total == 0 && used.by_tenant.is_empty(), "{used:?}");
    }

    #[test]
    fn there_may_be_no_slots() {
        assert!(WaitSlots::new(0).acquire(&Tenant::default()).is_none());
        let one = WaitSlots::new(1);
        let slot = one.acquire(&Tenant::default());
        assert!(slot.is_some() && one.acquire(&Tenant::from_access_key(Some("b"))).is_none());
    }
}
