//! The CPU pool: decoding and the like never run on the network's threads.

use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for work that computes. Clones share it.
#[derive(Debug, Clone)]
pub struct CpuPool {
    threads: Arc<rayon::ThreadPool>,
}

impl CpuPool {
    /// A pool of `threads` threads.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when the system gives no threads.
    pub fn build(threads: NonZeroUsize) -> Result<Self> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .thread_name(|index| format!("pushdown-cpu-{index}"))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "cannot start the CPU pool").with_source(error)
            })?;
        Ok(Self {
            threads: Arc::new(threads),
        })
    }

    /// Runs `work` on the pool, first come, first served. Dropping the future before the work starts cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when `work` panics; the pool goes on.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        // FIFO over all threads: a LIFO queue would starve the oldest request under load.
        self.threads.spawn_fifo(move || {
            if sender.is_closed() {
                return;
            }
            // A panic must not take the thread with it; the caller hears of it through the closed channel.
            if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
                drop(sender.send(done));
            }
        });
        receiver
            .await
            .map_err(|_closed| Error::new(ErrorKind::Internal, "a step panicked"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool() -> CpuPool {
        CpuPool::build(NonZeroUsize::MIN).unwrap()
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_pool_goes_on() {
        let pool = pool();
        let error = pool.run(|| panic!("broken")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn dropped_work_that_waits_is_not_run() {
        let pool = pool();
        let (release, blocked) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(move || blocked.recv().is_ok()).await }
        });
        let (ran, runs) = mpsc::channel();
        {
            let waiting = pool.run(move || ran.send(()).is_ok());
            tokio::pin!(waiting);
            // Polled once, so that it is queued, then dropped.
            assert!(futures::poll!(&mut waiting).is_pending());
        }
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        pool.run(|| ()).await.unwrap();
        assert!(runs.try_recv().is_err());
    }
}
