//! Who has batches under way: a reader plans with its part of the cores.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::compute::Tenant;

/// Batches under way by tenant, of which the store has accepted a sample. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<HashMap<Tenant, usize>>>);

/// A batch under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    crowd: Crowd,
    tenant: Tenant,
}

/// What a new batch finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Company {
    /// Tenants with batches under way, this one's among them.
    pub(super) tenants: usize,
    /// Batches of this tenant, the new one among them.
    pub(super) batches: usize,
}

impl Crowd {
    /// A batch of this tenant is under way.
    pub(super) fn enter(&self, tenant: &Tenant) -> Guest {
        *self.0.lock().entry(tenant.clone()).or_default() += 1;
        Guest {
            crowd: self.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Whom a batch that is about to enter shares the gateway with.
    pub(super) fn company(&self, tenant: &Tenant) -> Company {
        let crowd = self.0.lock();
        let own = crowd.get(tenant).copied().unwrap_or_default();
        Company {
            tenants: crowd.len() + usize::from(own == 0),
            batches: own + 1,
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut crowd = self.crowd.0.lock();
        if let Some(batches) = crowd.get_mut(&self.tenant) {
            *batches -= 1;
            if *batches == 0 {
                crowd.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_part_of_the_cores() {
        let crowd = Crowd::default();
        let (one, other) = (Tenant::of(Some("one")), Tenant::of(Some("other")));
        let company = |tenants, batches| Company { tenants, batches };
        assert_eq!(crowd.company(&one), company(1, 1));
        let first = crowd.enter(&one);
        let second = crowd.enter(&one);
        assert_eq!(crowd.company(&one), company(1, 3));
        assert_eq!(crowd.company(&other), company(2, 1));
        drop(first);
        let third = crowd.enter(&other);
        assert_eq!(crowd.company(&one), company(2, 2));
        drop((second, third));
        assert!(crowd.0.lock().is_empty());
    }
}
