//! The CPU pool: steps, signatures and shuffles never run on I/O threads.

use std::{
    fmt,
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pushdown_exec::sync::Mutex;
use pushdown_exec::{PendingWork, Task, TaskQueue};

use crate::{
    epoch::{BatchQueue, Ticket},
    error::{Error, Result},
};

/// A fixed number of threads for CPU work. Work of the oldest batch, the next one for the consumer, runs first. Clones share
/// the threads.
#[derive(Debug, Clone)]
pub(crate) struct CpuPool(pushdown_exec::CpuPool<BatchTasks>);

/// The tasks of the pool; the position of a task is its batch. Clones share the queue.
#[derive(Clone, Default)]
struct BatchTasks(Arc<Mutex<BatchQueue<Task>>>);

/// A task's entry in the queue. Dropping it removes the task, if it still waits.
#[derive(Debug)]
struct BatchEntry {
    tasks: BatchTasks,
    ticket: Ticket,
}

/// Work on the pool. It runs whether or not this is polled; dropping it before it starts cancels it.
#[derive(Debug)]
#[must_use = "dropping it cancels the work"]
pub(crate) struct Work<T>(PendingWork<T, BatchEntry>);

impl CpuPool {
    /// A pool of `threads` threads; by default as many as CPUs that this process may use, divided by the readers of this host.
    pub(crate) fn build(threads: Option<NonZeroUsize>, local_ranks: NonZeroUsize) -> Result<Self> {
        let cpus = || {
            let cpus = std::thread::available_parallelism().ok()?;
            NonZeroUsize::new(cpus.get() / local_ranks)
        };
        let threads = threads.or_else(cpus).unwrap_or(NonZeroUsize::MIN);
        let pool = pushdown_exec::CpuPool::build(threads, BatchTasks::default())
            .map_err(|error| Error::internal("cannot start the CPU pool").with_source(error))?;
        Ok(Self(pool))
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.0.threads().get()
    }

    /// Ends the threads and waits for them. Work that waits never runs.
    #[expect(clippy::disallowed_methods, reason = "the pool cannot wait for its own end")]
    pub(crate) async fn close(&self) {
        let pool = self.clone();
        // Fails only if the runtime is shut down, and then nobody waits.
        drop(tokio::task::spawn_blocking(move || pool.0.join()).await);
    }

    /// Starts `work` that is short, or that all batches wait for.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
        self.run_for(0, work)
    }

    /// Starts `work` of a batch, after the queued work of this and older batches.
    pub(crate) fn run_for<T: Send + 'static>(
        &self,
        batch: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Work<T> {
        Work(self.0.run(&batch, work))
    }
}

impl TaskQueue for BatchTasks {
    type Position = usize;
    type Entry = BatchEntry;

    fn push(&self, batch: &usize, task: Task) -> BatchEntry {
        BatchEntry {
            ticket: self.0.lock().push(*batch, task),
            tasks: self.clone(),
        }
    }

    fn pop(&self) -> Option<Task> {
        self.0.lock().pop()
    }
}

impl Drop for BatchEntry {
    fn drop(&mut self) {
        // The task is dropped after the queue is unlocked.
        let task = self.tasks.0.lock().remove(self.ticket);
        drop(task);
    }
}

impl fmt::Debug for BatchTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchTasks").finish_non_exhaustive()
    }
}

impl<T> Future for Work<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let done = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(done.map_err(|_panic| Error::internal("a step panicked")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool() -> CpuPool {
        CpuPool::build(Some(NonZeroUsize::MIN), NonZeroUsize::MIN).unwrap()
    }

    /// A pool whose thread is busy until something is sent, and the work it is busy with.
    fn busy() -> (CpuPool, mpsc::Sender<()>, Work<bool>) {
        let pool = pool();
        let (release, blocked) = mpsc::channel::<()>();
        let work = pool.run(move || blocked.recv().is_ok());
        (pool, release, work)
    }

    #[test]
    fn ranks_of_a_host_divide_its_cpus() {
        let cpus = std::thread::available_parallelism().unwrap();
        let threads = |set, ranks: usize| {
            let pool = CpuPool::build(NonZeroUsize::new(set), NonZeroUsize::new(ranks).unwrap());
            pool.unwrap().threads()
        };
        assert_eq!(threads(0, 1), cpus.get());
        assert_eq!(threads(0, cpus.get()), 1);
        assert_eq!(threads(0, usize::MAX), 1);
        assert_eq!(threads(3, 8), 3);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_pool_keeps_running() {
        let pool = pool();
        assert!(pool.run(|| panic!("broken")).await.is_err());
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn dropped_work_in_the_queue_is_not_run() {
        let (pool, release, first) = busy();
        let (ran, runs) = mpsc::channel();
        drop(pool.run(move || ran.send(()).is_ok()));
        release.send(()).unwrap();
        assert!(first.await.unwrap());
        pool.run(|| ()).await.unwrap();
        assert!(runs.try_recv().is_err());
    }

    #[tokio::test]
    async fn the_oldest_batch_runs_first() {
        let (pool, release, first) = busy();
        let (ran, order) = mpsc::channel();
        let work = |name: &'static str| {
            let ran = ran.clone();
            move || ran.send(name).is_ok()
        };
        let rest = [
            pool.run_for(7, work("c")),
            pool.run_for(7, work("d")),
            pool.run_for(6, work("b")),
            pool.run(work("a")),
        ];
        release.send(()).unwrap();
        assert!(first.await.unwrap());
        for work in rest {
            assert!(work.await.unwrap());
        }
        assert_eq!(order.try_iter().collect::<String>(), "abcd");
    }
}
