//! The CPU pool: decoding and the like never run on the network's threads.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
};

use super::{
    Ledger, Tenant,
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
struct Background(Option<Runtime>);

/// Charges a tenant for this thread's time, until it is dropped.
struct Meter<'a> {
    ledger: &'a Ledger,
    tenant: &'a Tenant,
    start: Duration,
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
            _runtime: Arc::new(Background(Some(runtime))),
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

    /// Runs `work` in the tenant's turn, and charges it for the time. Dropping the future before the work starts
    /// cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when `work` panics; the pool goes on.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (done, value) = oneshot::channel();
        let (ledger, payer) = (self.ledger.clone(), tenant.clone());
        let _place = self.queue(tenant, move || {
            let meter = Meter::start(&ledger, &payer);
            let value = work();
            drop(meter);
            // Whoever left does not want it.
            drop(done.send(value));
        });
        value
            .await
            .map_err(|_panic| Error::new(ErrorKind::Internal, "a step panicked"))
    }

    /// Runs `work` that belongs to several tenants: it waits in the line of each, and runs when the turn of the first of
    /// them comes. What it costs, `work` charges itself.
    pub(super) fn run_together(
        &self,
        tenants: impl IntoIterator<Item = Tenant>,
        work: impl FnOnce() + Send + 'static,
    ) {
        let shared: Arc<Together> = Arc::new(Mutex::new(Some((Box::new(work), Vec::new()))));
        for tenant in tenants {
            let work = Arc::clone(&shared);
            let place = self.queue(&tenant, move || {
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

    fn queue(&self, tenant: &Tenant, work: impl FnOnce() + Send + 'static) -> Place<Work> {
        let place = self.queue.push(tenant, Box::new(work));
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
            start: thread_time(),
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let time = thread_time().saturating_sub(self.start);
        self.ledger.charge(self.tenant, time);
    }
}

/// CPU time of this thread so far.
pub(super) fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool() -> CpuPool {
        CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap()
    }

    fn tenant(name: &str) -> Tenant {
        Tenant::of(Some(name))
    }

    /// Keeps the pool's thread until it is told to go on.
    async fn block(pool: &CpuPool) -> mpsc::Sender<()> {
        let (release, blocked) = mpsc::channel();
        let (started, starts) = oneshot::channel();
        let work = move || {
            started.send(()).unwrap();
            blocked.recv().unwrap();
        };
        pool.run_together([tenant("blocker")], work);
        starts.await.unwrap();
        release
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_pool_goes_on() {
        let pool = pool();
        let error = pool
            .run(&Tenant::default(), || panic!("broken"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(pool.run(&Tenant::default(), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn dropped_work_that_waits_is_not_run() {
        let pool = pool();
        let release = block(&pool).await;
        let (ran, runs) = mpsc::channel();
        {
            let nobody = Tenant::default();
            let waiting = pool.run(&nobody, move || ran.send(()).is_ok());
            tokio::pin!(waiting);
            // Polled once, so that it is queued, then dropped.
            assert!(futures::poll!(&mut waiting).is_pending());
        }
        // What it held is gone at once, and not only when its turn would have come.
        assert_eq!(runs.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        release.send(()).unwrap();
        pool.run(&Tenant::default(), || ()).await.unwrap();
    }

    #[tokio::test]
    async fn one_piece_of_work_waits_for_one_of_another_tenant() {
        let pool = pool();
        let release = block(&pool).await;
        let (ran, order) = mpsc::channel();
        let names = [vec!["many"; 20], vec!["one"]].concat();
        let runs = names.into_iter().map(|name| {
            let (pool, ran) = (pool.clone(), ran.clone());
            async move { pool.run(&tenant(name), move || ran.send(name).unwrap()).await }
        });
        let runs = futures::future::join_all(runs);
        tokio::pin!(runs);
        assert!(futures::poll!(&mut runs).is_pending());
        release.send(()).unwrap();
        for run in runs.await {
            run.unwrap();
        }
        let order: Vec<_> = order.try_iter().collect();
        assert_eq!(order.len(), 21);
        assert_eq!(order.iter().position(|name| *name == "one"), Some(1));
    }

    #[tokio::test]
    async fn work_of_several_tenants_runs_once_in_the_first_turn() {
        let pool = pool();
        let release = block(&pool).await;
        let (ran, order) = mpsc::channel();
        let say = |what: &'static str| {
            let ran = ran.clone();
            move || ran.send(what).unwrap()
        };
        for _ in 0..3 {
            pool.run_together([tenant("a")], say("a"));
        }
        pool.run_together([tenant("a"), tenant("b")], say("both"));
        release.send(()).unwrap();
        pool.run(&tenant("a"), || ()).await.unwrap();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["a", "both", "a", "a"]);
    }
}
