//! The processor's threads, which runs of different models share.

use std::{num::NonZeroUsize, sync::Arc};

use futures::executor::block_on;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many threads, taken in the order in which they are asked for. Clones share them.
///
/// A model's runs are bounded by how often it is there, but several models, or layers between different places of one,
/// are each bounded by themselves only: a large one runs on all threads, and two of them would on twice as many.
#[derive(Debug, Clone)]
pub(super) struct Threads {
    free: Arc<Semaphore>,
    all: usize,
}

impl Threads {
    pub(super) fn new(all: NonZeroUsize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(all.get())),
            all: all.get(),
        }
    }

    /// Waits, on a thread that may, until `count` threads are free at once; who asks for more than there are gets all. The
    /// next run begins as soon as they are dropped.
    #[must_use]
    pub(super) fn take(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count.min(self.all)).unwrap_or(u32::MAX);
        // Fails only where the semaphore was closed, which nobody does.
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
    fn together_runs_never_have_more_threads_than_there_are() {
        let threads = Threads::new(NonZeroUsize::new(4).unwrap());
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for count in [1, 4, 2, 3, 1, 9, 2, 1] {
                let (threads, busy, most) = (&threads, &busy, &most);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let taken = threads.take(count);
                        let now = busy.fetch_add(count.min(4), Ordering::SeqCst) + count.min(4);
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(100));
                        busy.fetch_sub(count.min(4), Ordering::SeqCst);
                        drop(taken);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 4, "all are used, and no more");
        assert_eq!(threads.free.available_permits(), 4);
    }
}
