//! Futures that a scan waits for: they run on the I/O threads, and wake the scan when they end.

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::ScanWaker;

/// Runs the futures that one scan waits for. Clones share the threads.
#[derive(Debug, Clone)]
pub struct ScanIo {
    io: Handle,
    waker: ScanWaker,
}

impl ScanIo {
    /// For the scan that `waker` wakes. Must be called within the runtime of the I/O threads.
    pub fn new(waker: ScanWaker) -> Self {
        Self {
            io: Handle::current(),
            waker,
        }
    }

    /// Runs a future from now on. Dropping the result cancels it. `None` if it panicked.
    pub fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, Option<T>> {
        let (waker, (done, result)) = (self.waker.clone(), oneshot::channel());
        let task = AbortOnDropHandle::new(self.io.spawn(async move {
            // Locals are dropped in reverse order, after a panic too: the channel is closed before the scan wakes.
            let _wake_on_drop = waker.wake_on_drop();
            let done = done;
            drop(done.send(future.await));
        }));
        async move {
            let _task = task;
            result.await.ok()
        }
        .boxed()
    }
}
