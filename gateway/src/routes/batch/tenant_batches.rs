//! Batches in flight per tenant. Clients plan with their part of the cores.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::compute::Tenant;

/// Number of batches in flight per tenant. A batch counts after the store has authorized one of its samples. Clones share
/// the counts.
#[derive(Debug, Clone, Default)]
pub(super) struct TenantBatches(Arc<Mutex<HashMap<Tenant, usize>>>);

/// A batch in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlightBatch {
    counts: TenantBatches,
    tenant: Tenant,
}

/// How many tenants and batches use the gateway at the same time as a new batch of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Concurrency {
    /// Tenants with batches in flight, including this one.
    pub(super) tenants: usize,
    /// Batches of this tenant, including the new one.
    pub(super) batches: usize,
}

impl TenantBatches {
    /// Counts a batch of this tenant until it is dropped.
    pub(super) fn enter(&self, tenant: &Tenant) -> InFlightBatch {
        *self.0.lock().entry(tenant.clone()).or_default() += 1;
        InFlightBatch {
            counts: self.clone(),
            tenant: tenant.clone(),
        }
    }

    /// The concurrency of a batch that has not entered yet.
    pub(super) fn concurrency(&self, tenant: &Tenant) -> Concurrency {
        let counts = self.0.lock();
        let own = counts.get(tenant).copied().unwrap_or_default();
        Concurrency {
            tenants: counts.len() + usize::from(own == 0),
            batches: own + 1,
        }
    }
}

impl Drop for InFlightBatch {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(batches) = counts.get_mut(&self.tenant) {
            *batches -= 1;
            if *batches == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_counts_tenants_and_batches() {
        let batches = TenantBatches::default();
        let (one, other) = (
            Tenant::from_access_key(Some("one")),
            Tenant::from_access_key(Some("other")),
        );
        let concurrency = |tenants, batches| Concurrency { tenants, batches };
        assert_eq!(batches.concurrency(&one), concurrency(1, 1));
        let first = batches.enter(&one);
        let second = batches.enter(&one);
        assert_eq!(batches.concurrency(&one), concurrency(1, 3));
        assert_eq!(batches.concurrency(&other), concurrency(2, 1));
        drop(first);
        let third = batches.enter(&other);
        assert_eq!(batches.concurrency(&one), concurrency(2, 2));
        drop((second, third));
        assert!(batches.0.lock().is_empty());
    }
}
