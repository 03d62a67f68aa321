//! The CPU pool: decoding and the like never run on the network's threads.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for work that computes. Clones share it.
///
/// They are the blocking threads of a Tokio runtime that does nothing else. Their queue is first in, first out, so
/// that the oldest request never starves; and a thread without work sleeps, where one of a work-stealing pool first
/// looks around, at 2 % of the CPU time of small photos.
#[derive(Debug, Clone)]
pub struct CpuPool {
    threads: Handle,
    count: NonZeroUsize,
    _runtime: Arc<Background>,
}

/// A runtime that may be dropped on another runtime's threads: it does not wait for its work.
#[derive(Debug)]
struct Background(Option<Runtime>);

impl CpuPool {
    /// A pool of `threads` threads.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when the system gives no runtime.
    pub fn build(threads: NonZeroUsize) -> Result<Self> {
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
            _runtime: Arc::new(Background(Some(runtime))),
        })
    }

    /// How many threads there are.
    pub const fn threads(&self) -> NonZeroUsize {
        self.count
    }

    /// Runs `work` on the pool, first come, first served. Dropping the future before the work starts cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when `work` panics; the pool goes on.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        AbortOnDropHandle::new(self.threads.spawn_blocking(work))
            .await
            .map_err(|_panic| Error::new(ErrorKind::Internal, "a step panicked"))
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
