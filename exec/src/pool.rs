//! The CPU pool.

use std::{
    fmt, io,
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::oneshot;

use crate::threads::Threads;

/// A unit of work for a thread.
pub type Task = Box<dyn FnOnce() + Send>;

/// A queue that orders the tasks of a pool. Clones share it.
pub trait TaskQueue: Clone + Send + 'static {
    /// Where a task waits, such as a tenant or a batch.
    type Position: ?Sized;
    /// A task's entry in the queue. Dropping it removes the task, if it still waits.
    type Entry;

    /// Adds a task.
    fn push(&self, position: &Self::Position, task: Task) -> Self::Entry;

    /// Removes and returns the task to run next.
    fn pop(&self) -> Option<Task>;
}

/// A fixed number of threads that run the tasks of a queue in its order. Clones share the threads, which end with the last
/// clone.
#[derive(Debug)]
pub struct CpuPool<Q> {
    threads: Arc<Threads>,
    queue: Q,
}

/// Work on the pool. It runs whether or not this is polled; dropping it before the work starts cancels it.
#[derive(Debug)]
#[must_use = "dropping it cancels the work"]
pub struct PendingWork<T, E> {
    result: oneshot::Receiver<T>,
    _entry: E,
}

/// The work panicked. The pool continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPanicked;

impl<Q: TaskQueue> CpuPool<Q> {
    /// A pool of `threads` threads that run the tasks of `queue`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn build(threads: NonZeroUsize, queue: Q) -> io::Result<Self> {
        let tasks = queue.clone();
        let threads = Threads::start(threads, move || {
            // `None` if a task was cancelled.
            if let Some(task) = tasks.pop() {
                task();
            }
        })?;
        Ok(Self {
            threads: Arc::new(threads),
            queue,
        })
    }

    /// The number of threads.
    pub fn threads(&self) -> NonZeroUsize {
        self.threads.count()
    }

    /// Ends the threads of all clones and waits for them. Work that runs is finished, work that waits never runs: nobody may
    /// await it.
    pub fn join(&self) {
        self.threads.join();
    }

    /// Starts `work` at a position of the queue.
    pub fn run<T: Send + 'static>(
        &self,
        position: &Q::Position,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PendingWork<T, Q::Entry> {
        self.run_while_awaited(position, |_| work())
    }

    /// Like [`run`](Self::run), for work in several parts: `work` can check before each part whether the [`PendingWork`] still
    /// exists, and return early if not.
    pub fn run_while_awaited<T: Send + 'static>(
        &self,
        position: &Q::Position,
        work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
    ) -> PendingWork<T, Q::Entry> {
        let (done, result) = oneshot::channel();
        let task = move || {
            let value = work(&|| !done.is_closed());
            // Fails if the receiver was dropped.
            drop(done.send(value));
        };
        PendingWork {
            _entry: self.spawn(position, task),
            result,
        }
    }

    /// Starts a task without a result at a position of the queue.
    pub fn spawn(&self, position: &Q::Position, task: impl FnOnce() + Send + 'static) -> Q::Entry {
        let entry = self.queue.push(position, Box::new(task));
        // One signal per task: each runs the task that is first in the queue by then.
        self.threads.signal();
        entry
    }
}

impl<Q: Clone> Clone for CpuPool<Q> {
    fn clone(&self) -> Self {
        Self {
            threads: Arc::clone(&self.threads),
            queue: self.queue.clone(),
        }
    }
}

impl<T, E: Unpin> Future for PendingWork<T, E> {
    type Output = Result<T, WorkPanicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.result).poll(context));
        Poll::Ready(result.map_err(|_closed| WorkPanicked))
    }
}

impl fmt::Display for WorkPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work panicked")
    }
}

impl std::error::Error for WorkPanicked {}
