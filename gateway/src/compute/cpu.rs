//! The CPU pool: decoding and the like never run on the I/O threads.

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
    Ledger, Standing, Tenant,
    fair::{FairQueue, Place},
};
use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for work that computes, shared fairly between tenants. Clones share it.
///
/// They are the blocking threads of a Tokio runtime that does nothing else, and what they are sent is the order to run
/// whatever comes next in the fair queue. A thread without work sleeps, where one of a work-stealing pool first looks
/// around, at 2 % of the CPU time of small photos.
#[derive(Debug, Clone)]
pub struct CpuPool {
    threads: Handle,
    count: NonZeroUsize,
    queue: FairQueue<Work>,
    ledger: Ledger,
    _runtime: Arc<Background>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A runtime that may be dropped on another runtime's threads: it does not wait for its work.
#[derive(Debug)]
pub(super) struct Background(Option<Runtime>);

/// Charges a tenant for this thread's time, until it is dropped.
///
/// By the clock on the wall, which is that of the thread for work that never waits: asking for a thread's CPU time costs
/// more than all else that is done around a piece of work.
struct Meter<'a> {
    ledger: &'a Ledger,
    tenant: &'a Tenant,
    start: Instant,
}

/// Work that waits in several lines, with its places there.
type Together = Mutex<Option<(Work, Vec<Place<Work>>)>>;

impl CpuPool {
    /// A pool of `threads` threads, which runs work in the order of `ledger`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when the system gives no runtime.
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
            _runtime: Arc::new(Background::new(runtime)),
        })
    }

    /// How many threads there are.
    pub const fn threads(&self) -> NonZeroUsize {
        self.count
    }

    /// In whose order it runs.
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Runs `work` where it stands in its tenant's line, and charges the tenant for the time. Dropping the future before the work starts
    /// cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when `work` panics; the pool goes on.
    pub async fn run<T: Send + 'static>(
        &self,
        standing: &Standing,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.run_while_awaited(standing, |_| work()).await
    }

    /// As [`run`](Self::run), for work of several parts: it may ask before each whether the future still exists, and return
    /// early if not.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_while_awaited<T: Send + 'static>(
        &self,
        standing: &Standing,
        work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
    ) -> Result<T> {
        let (done, value) = oneshot::channel();
        let (ledger, payer) = (self.ledger.clone(), standing.tenant().clone());
        let _place = self.queue(standing, move || {
            let meter = Meter::start(&ledger, &payer);
            let value = work(&|| !done.is_closed());
            drop(meter);
            // Whoever left does not want it.
            drop(done.send(value));
        });
        value
            .await
            .map_err(|_panic| Error::new(ErrorKind::Internal, "a step panicked"))
    }

    /// Runs `work` that belongs to several tenants: it stands in the line of each, and runs when the turn of the first
    /// of them comes. What it costs, `work` charges itself.
    pub(super) fn run_together(
        &self,
        standings: impl IntoIterator<Item = Standing>,
        work: impl FnOnce() + Send + 'static,
    ) {
        let shared: Arc<Together> = Arc::new(Mutex::new(Some((Box::new(work), Vec::new()))));
        for standing in standings {
            let work = Arc::clone(&shared);
            let place = self.queue(&standing, move || {
                let taken = work.lock().take();
                if let Some((work, places)) = taken {
                    drop(places);
                    work();
                }
            });
            match &mut *shared.lock() {
                Some((_, places)) => places.push(place),
                // It runs by now.
                None => break,
            }
        }
    }

    fn queue(&self, standing: &Standing, work: impl FnOnce() + Send + 'static) -> Place<Work> {
        let place = self.queue.push(standing, Box::new(work));
        let queue = self.queue.clone();
        let next = move || {
            // Nothing, where something that waited was cancelled.
            if let Some(work) = queue.pop() {
                work();
            }
        };
        drop(self.threads.spawn_blocking(next));
        place
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

impl Background {
    pub(super) const fn new(runtime: Runtime) -> Self {
        Self(Some(runtime))
    }

    pub(super) const fn get(&self) -> Option<&Runtime> {
        self.0.as_ref()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
