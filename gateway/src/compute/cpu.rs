//! The CPU pool: decoding and other computation never runs on the I/O threads.

use std::{
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
};

use super::{
    Ledger, QueuePosition, Tenant,
    fair_queue::{FairQueue, QueueEntry},
};
use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for computation, shared fairly between tenants. Clones share the pool.
///
/// The threads are the blocking threads of a dedicated Tokio runtime. Each task that they are sent runs the next item
/// of the fair queue. A thread without work sleeps. A work-stealing pool searches for work first: this search took 2 % of
/// the CPU time of small photos.
#[derive(Debug, Clone)]
pub struct CpuPool {
    threads: Handle,
    count: NonZeroUsize,
    queue: FairQueue<Work>,
    ledger: Ledger,
    _runtime: Arc<BackgroundRuntime>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A runtime that can be dropped on another runtime's threads, because it does not wait for its tasks.
#[derive(Debug)]
pub(super) struct BackgroundRuntime(Option<Runtime>);

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
type SharedWork = Mutex<Option<(Work, Vec<QueueEntry<Work>>)>>;

impl CpuPool {
    /// A pool of `threads` threads that orders work by `ledger`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the runtime cannot be created.
    pub fn build(threads: NonZeroUsize, ledger: Ledger) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads.get())
            .thread_name("pushdown-cpu")
            .thread_keep_alive(Duration::MAX)
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "cannot start the CPU pool").with_source(error)
            })?;
        Ok(Self {
            threads: runtime.handle().clone(),
            count: threads,
            queue: FairQueue::new(ledger.clone()),
            ledger,
            _runtime: Arc::new(BackgroundRuntime::new(runtime)),
        })
    }

    /// The number of threads.
    pub const fn threads(&self) -> NonZeroUsize {
        self.count
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
        let (done, value) = oneshot::channel();
        let (ledger, payer) = (self.ledger.clone(), position.tenant().clone());
        let _entry = self.enqueue(position, move || {
            let meter = Meter::start(&ledger, &payer);
            let value = work(&|| !done.is_closed());
            drop(meter);
            // Fails if the future was dropped.
            drop(done.send(value));
        });
        value
            .await
            .map_err(|_panic| Error::new(ErrorKind::Internal, "a step panicked"))
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
            let entry = self.enqueue(&position, move || {
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

    fn enqueue(&self, position: &QueuePosition, work: impl FnOnce() + Send + 'static) -> QueueEntry<Work> {
        let entry = self.queue.push(position, Box::new(work));
        let queue = self.queue.clone();
        let next = move || {
            // `None` if an item was cancelled.
            if let Some(work) = queue.pop() {
                work();
            }
        };
        drop(self.threads.spawn_blocking(next));
        entry
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

impl BackgroundRuntime {
    pub(super) const fn new(runtime: Runtime) -> Self {
        Self(Some(runtime))
    }

    pub(super) const fn get(&self) -> Option<&Runtime> {
        self.0.as_ref()
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
