//! Who has batches under way: a reader plans with its part of the cores.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::compute::Tenant;

/// Batches under way by tenant, of which the store has accepted a sample. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<HashMap<Tenant, usize>>>);

/// A batch under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    in_flight: InFlight,
    tenant: Tenant,
}

/// What a new batch finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Tenants with batches under way, this one's among them.
    pub(super) tenants: usize,
    /// Batches of this tenant, the new one among them.
    pub(super) batches: usize,
}

impl InFlight {
    /// A batch of this tenant is under way.
    pub(super) fn enter(&self, tenant: &Tenant) -> Running {
        *self.0.lock().entry(tenant.clone()).or_default() += 1;
        Running {
            in_flight: self.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Whom a batch that is about to enter shares the gateway with.
    pub(super) fn share(&self, tenant: &Tenant) -> Share {
        let in_flight = self.0.lock();
        let own = in_flight.get(tenant).copied().unwrap_or_default();
        Share {
            tenants: in_flight.len() + usize::from(own == 0),
            batches: own + 1,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.0.lock();
        if let Some(batches) = in_flight.get_mut(&self.tenant) {
            *batches -= 1;
            if *batches == 0 {
                in_flight.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_part_of_the_cores() {
        let in_flight = InFlight::default();
        let (one, other) = (Tenant::of(Some("one")), Tenant::of(Some("other")));
        let share = |tenants, batches| Share { tenants, batches };
        assert_eq!(in_flight.share(&one), share(1, 1));
        let first = in_flight.enter(&one);
        let second = in_flight.enter(&one);
        assert_eq!(in_flight.share(&one), share(1, 3));
        assert_eq!(in_flight.share(&other), share(2, 1));
        drop(first);
        let third = in_flight.enter(&other);
        assert_eq!(in_flight.share(&one), share(2, 2));
        drop((second, third));
        assert!(in_flight.0.lock().is_empty());
    }
}
