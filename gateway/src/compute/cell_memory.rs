//! Memory for values that `each` computes from cells of tables.
//!
//! The memory of a value is known only after its scan has reserved its own, and a request that has memory must not wait for
//! more (deadlock). So all scans with `each` share a part of the budget, which the first of them reserves together with its own
//! memory. A value with memory waits only for micro-batches, which reserve none.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pushdown::step::{CellMemory, TOO_MUCH_MEMORY};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Memory, Permit, ScanIo, Tenant};
use crate::error::Result;

/// The part of the budget that all values take together, and at most a single one.
const BUDGET_PARTS: u64 = 3;
/// Bytes per permit of the semaphore.
const UNIT_BYTES: u64 = 1024;

/// Hands out the memory for values. Clones share it.
#[derive(Debug, Clone)]
pub struct CellBudget {
    memory: Memory,
    /// Of the scans that run.
    shared: Arc<Mutex<Weak<SharedMemory>>>,
}

/// The memory for values of all scans, as long as one of them runs.
#[derive(Debug)]
pub struct SharedMemory {
    units: Arc<Semaphore>,
    bytes: u64,
    _permit: Option<Permit>,
}

/// The memory of a value. The shared memory lives as long.
struct ValueMemory {
    _units: OwnedSemaphorePermit,
    _shared: Arc<SharedMemory>,
}

impl CellBudget {
    /// A part of `memory`.
    pub fn new(memory: Memory) -> Self {
        Self {
            memory,
            shared: Arc::default(),
        }
    }

    /// Waits for `bytes` of a scan, together with the memory for values unless other scans have it already.
    ///
    /// # Errors
    /// As [`Memory::acquire`].
    pub async fn acquire(&self, tenant: &Tenant, bytes: u64) -> Result<(Permit, Arc<SharedMemory>)> {
        let scan_bytes = bytes.div_ceil(UNIT_BYTES).saturating_mul(UNIT_BYTES);
        let both = scan_bytes.saturating_add(self.shared_bytes());
        // A scan that leaves no room for values is refused, whether other scans run or not.
        let can_fit = both <= self.memory.max_bytes(tenant);
        if can_fit && self.shared.lock().strong_count() > 0 {
            let permit = self.memory.acquire(tenant, bytes).await?;
            let shared = self.shared.lock().upgrade();
            if let Some(shared) = shared {
                return Ok((permit, shared));
            }
            // The other scans ended meanwhile. A request that has memory must not wait for more.
        }
        let permit = self.memory.acquire(tenant, both).await?;
        Ok(self.settle(permit, scan_bytes))
    }

    const fn shared_bytes(&self) -> u64 {
        self.memory.total_bytes() / BUDGET_PARTS
    }

    /// Divides memory of a scan and for values. The latter is released if other scans have reserved it meanwhile.
    fn settle(&self, mut permit: Permit, bytes: u64) -> (Permit, Arc<SharedMemory>) {
        let rest = permit.split_at(bytes);
        let mut shared = self.shared.lock();
        if let Some(shared) = shared.upgrade() {
            return (permit, shared);
        }
        let bytes = rest.as_ref().map_or(0, Permit::bytes);
        let units = usize::try_from(bytes / UNIT_BYTES).unwrap_or(usize::MAX);
        let new = Arc::new(SharedMemory {
            units: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
            bytes,
            _permit: rest,
        });
        *shared = Arc::downgrade(&new);
        (permit, new)
    }
}

impl SharedMemory {
    /// Waits for the memory of a value. The scan is woken through `io`.
    ///
    /// # Errors
    /// [`TooLarge`](pushdown::ErrorKind::TooLarge) for more than all of it.
    pub async fn reserve(self: Arc<Self>, bytes: u64, io: ScanIo) -> pushdown::Result<CellMemory> {
        if bytes > self.bytes {
            return Err(pushdown::Error::too_large(format!(
                "{TOO_MUCH_MEMORY}: expected at most {} bytes while it is computed, found {bytes}",
                self.bytes
            )));
        }
        let stopping = || pushdown::Error::internal("the gateway is stopping");
        let count = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = match Arc::clone(&self.units).try_acquire_many_owned(count) {
            Ok(units) => units,
            Err(_none_free) => {
                let waiting = Arc::clone(&self.units).acquire_many_owned(count);
                io.run(waiting)
                    .await
                    .and_then(std::result::Result::ok)
                    .ok_or_else(stopping)?
            }
        };
        let memory: CellMemory = Box::new(ValueMemory {
            _units: units,
            _shared: self,
        });
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;
    use crate::{
        compute::{Ledger, ScanWaker},
        config::UnverifiedBytes,
        error::ErrorKind,
        telemetry::Metrics,
    };

    const TOTAL_BYTES: u64 = 3 << 20;

    fn reserved_bytes(metrics: &Metrics) -> u64 {
        metrics.memory_reserved_bytes().try_into().unwrap()
    }

    fn budget() -> (CellBudget, Metrics) {
        let metrics = Metrics::default();
        let memory = Memory::build(
            TOTAL_BYTES,
            UnverifiedBytes { small: 0, large: 0 },
            4,
            Duration::from_secs(5),
            Ledger::default(),
            metrics.clone(),
        );
        (CellBudget::new(memory), metrics)
    }

    /// The memory of a scan that takes 100 KiB itself.
    async fn acquire(budget: &CellBudget) -> (Permit, Arc<SharedMemory>) {
        budget.acquire(&Tenant::default(), 100 << 10).await.unwrap()
    }

    #[tokio::test]
    async fn scans_share_a_part_of_the_budget_until_the_last_one_ends() {
        let (budget, metrics) = budget();
        let (first, second) = (acquire(&budget).await, acquire(&budget).await);
        assert!(Arc::ptr_eq(&first.1, &second.1));
        assert_eq!(reserved_bytes(&metrics), (1 << 20) + (200 << 10));
        drop(first);
        assert_eq!(reserved_bytes(&metrics), (1 << 20) + (100 << 10));
        drop(second);
        assert_eq!(reserved_bytes(&metrics), 0);
        drop(acquire(&budget).await);
        assert_eq!(reserved_bytes(&metrics), 0);
    }

    /// Neither a scan that waits nor one that ends meanwhile keeps the memory for values from another request.
    #[tokio::test]
    async fn a_scan_that_waits_has_no_memory() {
        let (budget, metrics) = budget();
        let running = acquire(&budget).await;
        let (memory, tenant) = (budget.memory.clone(), Tenant::default());
        let other = tokio::spawn(async move { memory.acquire(&tenant, TOTAL_BYTES).await });
        tokio::task::yield_now().await;
        let shared = budget.clone();
        let waiting = tokio::spawn(async move { acquire(&shared).await });
        tokio::task::yield_now().await;
        drop(running);
        let other = other.await.unwrap().unwrap();
        assert_eq!(reserved_bytes(&metrics), TOTAL_BYTES);
        drop(other);
        let waited = waiting.await.unwrap();
        assert_eq!(reserved_bytes(&metrics), (1 << 20) + (100 << 10));
        drop(waited);
        assert_eq!(reserved_bytes(&metrics), 0);
    }

    /// It would wait for other scans to end, and then be too large.
    #[tokio::test(start_paused = true)]
    async fn a_scan_that_leaves_no_room_for_values_is_refused_at_once() {
        let (budget, _) = budget();
        let _running = acquire(&budget).await;
        let refused = budget.acquire(&Tenant::default(), (2 << 20) + 1).await;
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::EntityTooLarge);
    }

    #[tokio::test]
    async fn values_wait_for_each_other() {
        let (budget, metrics) = budget();
        let (permit, shared) = acquire(&budget).await;
        drop(permit);
        let io = ScanIo::new(ScanWaker::default());
        let reserve = |bytes| Arc::clone(&shared).reserve(bytes, io.clone());
        let held = reserve(700 << 10).await.unwrap();
        let small = reserve(300 << 10).now_or_never();
        assert!(
            small.is_some_and(|memory| memory.is_ok()),
            "there is room for both"
        );
        let large = tokio::spawn(reserve(1 << 20));
        tokio::task::yield_now().await;
        assert!(!large.is_finished());
        drop(held);
        let large = large.await.unwrap().unwrap();
        drop(shared);
        assert_eq!(reserved_bytes(&metrics), 1 << 20, "the value has it");
        drop(large);
        assert_eq!(reserved_bytes(&metrics), 0);
    }

    #[tokio::test]
    async fn a_value_takes_at_most_all_of_it() {
        let (budget, _) = budget();
        let io = ScanIo::new(ScanWaker::default());
        let (_permit, shared) = acquire(&budget).await;
        let too_large = shared.reserve((1 << 20) + 1, io).await;
        assert_eq!(too_large.err().unwrap().kind(), pushdown::ErrorKind::TooLarge);
    }
}
