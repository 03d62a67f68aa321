//! Cooperative scheduling of asynchronous work on the CPU pool: a future has a thread while it computes, for one time
//! slice at a time, and no thread while it waits for I/O.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture, task::AtomicWaker};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};

use super::{CpuPool, Tenant};
use crate::error::{Error, ErrorKind, Result};

/// Maximum length of a slice, if the future yields. Other tasks, and a drop of the task, wait no longer than this.
const SLICE_TIME: Duration = Duration::from_millis(25);

/// Runs futures of one request on the CPU pool in time slices. A slice ends when the future waits, or at the first yield
/// after 25 ms. The tenant's credit decides when the next slice runs.
///
/// Tasks that the futures spawn run in the same slices, on a single-threaded runtime without timers and sockets.
#[derive(Debug)]
pub struct CooperativeTask {
    cpu: CpuPool,
    tenant: Tenant,
    /// `None` after a future panicked or was dropped before its end.
    executor: Option<Executor>,
    waker: ScanWaker,
    compute_time: Duration,
}

/// Schedules the next slice of a waiting [`CooperativeTask`]. I/O that the task waits for calls it after its result is
/// ready.
#[derive(Debug, Clone, Default)]
pub struct ScanWaker(Arc<Notify>);

/// Schedules the next slice when it is dropped.
#[derive(Debug)]
#[must_use = "the next slice is scheduled when this is dropped"]
pub struct WakeOnDrop(ScanWaker);

/// Polls the futures.
#[derive(Debug)]
struct Executor {
    runtime: BackgroundRuntime,
    signal: Arc<WakeSignal>,
}

/// A runtime that can be dropped on another runtime's threads, because it does not wait for its tasks.
#[derive(Debug)]
struct BackgroundRuntime(Option<Runtime>);

/// Whether the future, or a task that it spawned, is ready to be polled.
#[derive(Debug, Default)]
struct WakeSignal {
    is_woken: AtomicBool,
    is_idle: AtomicBool,
    root: AtomicWaker,
}

/// The result of a slice.
enum Slice<T> {
    Done(T),
    /// The future waits to be woken.
    Waiting(BoxFuture<'static, T>),
    /// The future can continue, but its time is over.
    Yielded(BoxFuture<'static, T>),
}

/// Why a slice ended before the future did.
enum SliceEnd {
    Waiting,
    Yielded,
}

impl CooperativeTask {
    /// A task of a tenant.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the runtime cannot be created.
    pub fn new(cpu: CpuPool, tenant: Tenant) -> Result<Self> {
        Ok(Self {
            cpu,
            tenant,
            executor: Some(Executor::build()?),
            waker: ScanWaker::default(),
            compute_time: Duration::ZERO,
        })
    }

    /// A handle that schedules the next slice.
    pub fn waker(&self) -> ScanWaker {
        self.waker.clone()
    }

    /// Time of all slices so far on the CPU pool.
    pub const fn compute_time(&self) -> Duration {
        self.compute_time
    }

    /// Runs `future` to completion. Dropping the returned future cancels it, at the end of a running slice.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if `future` panics, and for all calls after that.
    pub async fn run<T: Send + 'static>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let mut executor = self.executor.take().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "earlier work of this task panicked or was cancelled",
            )
        })?;
        let mut future = future.boxed();
        loop {
            let work = move || {
                let started = Instant::now();
                let slice = executor.run_slice(future);
                (executor, slice, started.elapsed())
            };
            let (returned, slice, compute_time) = self.cpu.run(&self.tenant.position_now(), work).await?;
            executor = returned;
            self.compute_time += compute_time;
            match slice {
                Slice::Done(value) => {
                    self.executor = Some(executor);
                    return Ok(value);
                }
                Slice::Waiting(waiting) => {
                    future = waiting;
                    self.waker.0.notified().await;
                }
                Slice::Yielded(busy) => future = busy,
            }
        }
    }
}

impl ScanWaker {
    /// Schedules the next slice.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// A guard that schedules the next slice when it is dropped, after a panic too.
    pub fn wake_on_drop(&self) -> WakeOnDrop {
        WakeOnDrop(self.clone())
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Executor {
    fn build() -> Result<Self> {
        let signal = Arc::new(WakeSignal::default());
        let parked = Arc::clone(&signal);
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || {
                parked.is_idle.store(true, Ordering::Release);
                parked.root.wake();
            })
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "cannot start a runtime for a scan").with_source(error)
            })?;
        Ok(Self {
            runtime: BackgroundRuntime(Some(runtime)),
            signal,
        })
    }

    /// Polls until the future is done, or neither it nor its spawned tasks can continue, or the time is over.
    fn run_slice<T>(&self, mut future: BoxFuture<'static, T>) -> Slice<T> {
        let Some(runtime) = &self.runtime.0 else {
            return Slice::Waiting(future);
        };
        let signal = &self.signal;
        let waker = Waker::from(Arc::clone(signal));
        let end = Instant::now() + SLICE_TIME;
        signal.is_woken.store(true, Ordering::Release);
        let mut was_polled = false;
        let result = runtime.block_on(poll_fn(|root| {
            signal.root.register(root.waker());
            if signal.is_woken.swap(false, Ordering::AcqRel) {
                if was_polled && Instant::now() >= end {
                    return Poll::Ready(Err(SliceEnd::Yielded));
                }
                was_polled = true;
                // Polling may wake spawned tasks, so the runtime is idle only if it parks after this.
                signal.is_idle.store(false, Ordering::Release);
                return future.poll_unpin(&mut Context::from_waker(&waker)).map(Ok);
            }
            if signal.is_idle.swap(false, Ordering::AcqRel) {
                return Poll::Ready(Err(SliceEnd::Waiting));
            }
            Poll::Pending
        }));
        match result {
            Ok(value) => Slice::Done(value),
            Err(SliceEnd::Waiting) => Slice::Waiting(future),
            Err(SliceEnd::Yielded) => Slice::Yielded(future),
        }
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.root.wake();
    }
}

#[cfg(test)]
mod tests;
