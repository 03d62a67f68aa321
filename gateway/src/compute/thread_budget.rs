//! The CPU threads that runs of all models share.

use std::{num::NonZeroUsize, sync::Arc};

use futures::executor::block_on;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of threads, granted in the order of requests. Clones share it.
///
/// The number of concurrent runs is limited per model and layer range only. A large model runs on all threads, so two
/// of them would use twice as many threads as there are CPUs.
#[derive(Debug, Clone)]
pub(super) struct ThreadBudget {
    free: Arc<Semaphore>,
    total: usize,
}

impl ThreadBudget {
    pub(super) fn new(total: NonZeroUsize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(total.get())),
            total: total.get(),
        }
    }

    /// Blocks until `count` threads are free, or all threads if `count` exceeds their number. Call it only on a thread that
    /// may block. Dropping the permit releases the threads.
    #[must_use]
    pub(super) fn acquire(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count.min(self.total)).unwrap_or(u32::MAX);
        // Never fails: only a closed semaphore returns an error, and this one is never closed.
        block_on(Arc::clone(&self.free).acquire_many_owned(count)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
        time::Duration,
    };

    use super::*;

    #[test]
    fn concurrent_runs_never_exceed_the_thread_budget() {
        let threads = ThreadBudget::new(NonZeroUsize::new(4).unwrap());
        let (busy, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for count in [1, 4, 2, 3, 1, 9, 2, 1] {
                let (threads, busy, max) = (&threads, &busy, &max);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let permit = threads.acquire(count);
                        let now = busy.fetch_add(count.min(4), Ordering::SeqCst) + count.min(4);
                        max.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(100));
                        busy.fetch_sub(count.min(4), Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(max.load(Ordering::SeqCst), 4, "all threads are used, and no more");
        assert_eq!(threads.free.available_permits(), 4);
    }
}
