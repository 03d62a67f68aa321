//! How many cores readers could use, by which an autoscaler decides on the number of replicas.

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pushdown::wire::Demand;
use serde::Serialize;
use tokio::time::Instant;

use super::Tenant;

/// Maximum readers of a tenant: the one whose last batch is the oldest leaves for a new one.
const MAX_READERS: usize = 1024;
/// Maximum tenants, likewise.
const MAX_TENANTS: usize = 256;
/// How long the demand of a reader counts after its last batch.
const LIFETIME: Duration = Duration::from_secs(30);

/// The latest demand of each reader, by tenant. Clones share the table.
#[derive(Debug, Clone)]
pub struct DemandTable {
    readers: Arc<Mutex<HashMap<Tenant, Readers>>>,
    /// Cores that a tenant counts for at most.
    max_cores: usize,
}

/// The readers of a tenant.
#[derive(Debug)]
struct Readers {
    latest: HashMap<Box<str>, ReaderDemand>,
    /// The time of their last batch.
    stated_at: Instant,
}

/// The demand in the last batch of a reader.
#[derive(Debug)]
struct ReaderDemand {
    cores: f64,
    stated_at: Instant,
}

/// The demand of a tenant, for the status page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantDemand {
    /// The access key.
    tenant: String,
    /// Readers with a batch in the last 30 seconds.
    readers: usize,
    /// Cores that they could use together, at most the limit per tenant.
    cores: f64,
}

impl DemandTable {
    /// An empty table, in which a tenant counts for at most `max_cores`.
    pub fn new(max_cores: usize) -> Self {
        Self {
            readers: Arc::default(),
            max_cores,
        }
    }

    /// Replaces the demand of a reader. The tenant must be verified, not only claimed: else anybody could raise the number of replicas.
    pub fn set(&self, tenant: &Tenant, demand: &Demand) {
        let now = Instant::now();
        let mut tenants = self.readers.lock();
        make_room(&mut tenants, tenant, MAX_TENANTS, |readers| readers.stated_at);
        let readers = tenants.entry(tenant.clone()).or_insert_with(|| Readers {
            latest: HashMap::new(),
            stated_at: now,
        });
        readers.stated_at = now;
        let reader = Box::from(demand.reader.as_str());
        make_room(&mut readers.latest, &reader, MAX_READERS, |latest| {
            latest.stated_at
        });
        let latest = ReaderDemand {
            cores: demand.cores,
            stated_at: now,
        };
        readers.latest.insert(reader, latest);
    }

    /// The demand of each tenant, ordered by name.
    pub fn tenants(&self) -> Vec<TenantDemand> {
        let max_cores = f64::from(u32::try_from(self.max_cores).unwrap_or(u32::MAX));
        let mut tenants = self.readers.lock();
        tenants.retain(|_, readers| {
            readers
                .latest
                .retain(|_, latest| latest.stated_at.elapsed() < LIFETIME);
            !readers.latest.is_empty()
        });
        let demand = |(tenant, readers): (&Tenant, &Readers)| TenantDemand {
            tenant: tenant.name().to_owned(),
            readers: readers.latest.len(),
            cores: sum(readers.latest.values().map(|latest| latest.cores)).min(max_cores),
        };
        let mut tenants: Vec<_> = tenants.iter().map(demand).collect();
        tenants.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        tenants
    }

    /// Cores that the readers of all tenants could use.
    pub fn cores(&self) -> f64 {
        sum(self.tenants().iter().map(|tenant| tenant.cores))
    }
}

/// The sum, which is not -0 without numbers.
fn sum(cores: impl Iterator<Item = f64>) -> f64 {
    cores.fold(0.0, |sum, cores| sum + cores)
}

/// Removes the entry with the oldest time if `key` would be one too many.
fn make_room<K: Clone + Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    max_entries: usize,
    stated_at: impl Fn(&V) -> Instant,
) {
    if map.len() < max_entries || map.contains_key(key) {
        return;
    }
    let oldest = map.iter().min_by_key(|(_, value)| stated_at(value));
    if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::from_access_key(Some(name))
    }

    fn demand(reader: &str, cores: f64) -> Demand {
        let reader = reader.to_owned();
        Demand { reader, cores }
    }

    fn row(tenant: &str, readers: usize, cores: f64) -> TenantDemand {
        let tenant = tenant.to_owned();
        TenantDemand {
            tenant,
            readers,
            cores,
        }
    }

    fn assert_cores(table: &DemandTable, expected: f64) {
        let found = table.cores();
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
        assert!(found.is_sign_positive());
    }

    #[tokio::test(start_paused = true)]
    async fn the_latest_demand_of_each_reader_counts_for_half_a_minute() {
        let table = DemandTable::new(64);
        assert_cores(&table, 0.0);
        table.set(&tenant("b"), &demand("one", 4.0));
        table.set(&tenant("b"), &demand("two", 0.5));
        table.set(&tenant("a"), &demand("one", 2.0));
        table.set(&tenant("b"), &demand("one", 1.0));
        table.set(&Tenant::default(), &demand("one", 0.25));
        let all = [row("a", 1, 2.0), row("anonymous", 1, 0.25), row("b", 2, 1.5)];
        assert_eq!(table.tenants(), all);
        assert_cores(&table, 3.75);
        advance(Duration::from_secs(29)).await;
        table.set(&tenant("b"), &demand("two", 0.75));
        assert_cores(&table, 4.0);
        advance(Duration::from_secs(1)).await;
        assert_eq!(table.tenants(), [row("b", 1, 0.75)]);
        advance(Duration::from_secs(29)).await;
        assert_cores(&table, 0.0);
        assert!(table.readers.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_counts_for_a_bounded_number_of_cores() {
        let table = DemandTable::new(64);
        for reader in ["one", "two"] {
            table.set(&tenant("a"), &demand(reader, 1e6));
        }
        table.set(&tenant("b"), &demand("one", 3.0));
        assert_eq!(table.tenants(), [row("a", 2, 64.0), row("b", 1, 3.0)]);
        assert_cores(&table, 67.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_reader_and_the_oldest_tenant_leave_for_new_ones() {
        let table = DemandTable::new(1_000_000);
        let a = tenant("a");
        for number in 0..MAX_READERS {
            table.set(&a, &demand(&number.to_string(), 1.0));
            advance(Duration::from_millis(1)).await;
        }
        // A later batch of a known reader removes nobody.
        table.set(&a, &demand("0", 1.0));
        assert_eq!(table.tenants()[0].readers, MAX_READERS);
        table.set(&a, &demand("new", 1.0));
        let names = |name: &str| table.readers.lock()[&a].latest.contains_key(name);
        assert_eq!(["0", "1", "2", "new"].map(names), [true, false, true, true]);
        assert_eq!(table.tenants()[0].readers, MAX_READERS);
        for number in 0..MAX_TENANTS {
            advance(Duration::from_millis(1)).await;
            table.set(&tenant(&format!("t{number}")), &demand("one", 1.0));
        }
        let tenants = table.tenants();
        assert_eq!(tenants.len(), MAX_TENANTS);
        assert!(tenants.iter().all(|tenant| tenant.tenant != "a"));
    }
}
