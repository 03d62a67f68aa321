//! The CPU pool: decoding and other computation never runs on the I/O threads.

use std::{
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pushdown_exec::{Task, TaskQueue};

use super::{
    Ledger, QueuePosition, Tenant,
    fair_queue::{FairQueue, QueueEntry},
};
use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for computation, shared fairly between tenants. Clones share the pool.
#[derive(Debug, Clone)]
pub struct CpuPool {
    pool: pushdown_exec::CpuPool<FairQueue<Task>>,
    ledger: Ledger,
}

/// Charges a tenant for the time until it is dropped.
///
/// Measures wall-clock time: it equals CPU time for work that never blocks. Reading a thread's CPU time costs more
/// than everything else that the pool does per work item.
struct Meter<'a> {
    ledger: &'a Ledger,
    tenant: &'a Tenant,
    start: Instant,
}

/// Work that waits in the queues of several tenants, with its queue entries.
type SharedWork = Mutex<Option<(Task, Vec<QueueEntry<Task>>)>>;

impl CpuPool {
    /// A pool of `threads` threads that orders work by `ledger`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if a thread cannot be started.
    pub fn build(threads: NonZeroUsize, ledger: Ledger) -> Result<Self> {
        let queue = FairQueue::new(ledger.clone());
        let pool = pushdown_exec::CpuPool::build(threads, queue).map_err(|error| {
            Error::new(ErrorKind::Internal, "cannot start the CPU pool").with_source(error)
        })?;
        Ok(Self { pool, ledger })
    }

    /// The number of threads.
    pub fn threads(&self) -> NonZeroUsize {
        self.pool.threads()
    }

    /// The ledger that orders the pool's work.
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Runs `work` at its position in the tenant's queue, and charges the tenant for the time. Dropping the future before
    /// the work starts cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if `work` panics. The pool continues.
    pub async fn run<T: Send + 'static>(
        &self,
        position: &QueuePosition,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.run_while_awaited(position, |_| work()).await
    }

    /// Like [`run`](Self::run), for work in several parts: `work` can check before each part whether the future still
    /// exists, and return early if not.
    ///
    /// # Errors
    /// Like [`run`](Self::run).
    pub async fn run_while_awaited<T: Send + 'static>(
        &self,
        position: &QueuePosition,
        work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
    ) -> Result<T> {
        let (ledger, payer) = (self.ledger.clone(), position.tenant().clone());
        let metered = move |is_awaited: &(dyn Fn() -> bool + Sync)| {
            let _meter = Meter::start(&ledger, &payer);
            work(is_awaited)
        };
        self.pool
            .run_while_awaited(position, metered)
            .await
            .map_err(|_panic| Error::new(ErrorKind::Internal, "a step panicked"))
    }

    /// Divides the cost of finished work of `payer` equally among the tenants that waited for it. A tenant that occurs more
    /// than once has as many parts.
    pub fn divide_cost(&self, payer: &Tenant, tenants: &[Tenant], time: Duration) {
        let part = time / u32::try_from(tenants.len().max(1)).unwrap_or(u32::MAX);
        for tenant in tenants.iter().filter(|tenant| *tenant != payer) {
            self.ledger.transfer(payer, tenant, part);
        }
    }

    /// Runs `work` of several tenants: it waits in the queue of each, and runs once, when the first of them is scheduled.
    /// `work` charges the tenants itself.
    pub fn run_shared(
        &self,
        positions: impl IntoIterator<Item = QueuePosition>,
        work: impl FnOnce() + Send + 'static,
    ) {
        let shared: Arc<SharedWork> = Arc::new(Mutex::new(Some((Box::new(work), Vec::new()))));
        for position in positions {
            let work = Arc::clone(&shared);
            let entry = self.pool.spawn(&position, move || {
                let taken = work.lock().take();
                if let Some((work, entries)) = taken {
                    drop(entries);
                    work();
                }
            });
            match &mut *shared.lock() {
                Some((_, entries)) => entries.push(entry),
                // The work has already started.
                None => break,
            }
        }
    }
}

impl TaskQueue for FairQueue<Task> {
    type Position = QueuePosition;
    type Entry = QueueEntry<Task>;

    fn push(&self, position: &QueuePosition, task: Task) -> QueueEntry<Task> {
        Self::push(self, position, task)
    }

    fn pop(&self) -> Option<Task> {
        Self::pop(self)
    }
}

impl<'a> Meter<'a> {
    fn start(ledger: &'a Ledger, tenant: &'a Tenant) -> Self {
        Self {
            ledger,
            tenant,
            start: Instant::now(),
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.ledger.charge(self.tenant, self.start.elapsed());
    }
}

#[cfg(test)]
mod tests;
