//! Work that computes and waits by turns: it has a thread of the CPU pool while it computes, a slice of time at once, and
//! none while what it reads is on its way.

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
use tokio::{runtime::Builder, sync::Notify};

use super::{CpuPool, Tenant, cpu::Background};
use crate::error::{Error, ErrorKind, Result};

/// How long a turn takes at most, if the future gives way meanwhile: others, and who would end it, wait no longer.
const SLICE: Duration = Duration::from_millis(25);

/// Runs futures of one request on the CPU pool, in the tenant's turns, each until it waits or has had its slice of time.
///
/// What they spawn runs within the same turns: they have a runtime of one thread, without a clock and without sockets.
#[derive(Debug)]
pub struct Turns {
    cpu: CpuPool,
    tenant: Tenant,
    /// Gone with a future that panicked or was dropped on its way.
    stage: Option<Stage>,
    awake: Awake,
    spent: Duration,
}

/// Gives a future of [`Turns`] its next turn. Whoever ends a wait calls it, once what was waited for is there.
#[derive(Debug, Clone, Default)]
pub struct Awake(Arc<Notify>);

/// Gives the next turn when it is dropped.
#[derive(Debug)]
#[must_use = "the turn is given as soon as this is dropped"]
pub struct WakeOnDrop(Awake);

/// Where futures are polled.
#[derive(Debug)]
struct Stage {
    runtime: Background,
    signal: Arc<Signal>,
}

/// What a turn has to know: whether the future has something to do, and whether anything it spawned has.
#[derive(Debug, Default)]
struct Signal {
    woken: AtomicBool,
    idle: AtomicBool,
    root: AtomicWaker,
}

/// How a turn ended.
enum Turn<T> {
    Done(T),
    /// There is nothing to do until it is woken.
    Waits(BoxFuture<'static, T>),
    /// There is more to do.
    GivesWay(BoxFuture<'static, T>),
}

/// Why a turn ended before the future did.
enum Pause {
    Waits,
    GivesWay,
}

// === impl Turns ===

impl Turns {
    /// Turns of a tenant.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when the system gives no runtime.
    pub fn new(cpu: CpuPool, tenant: Tenant) -> Result<Self> {
        Ok(Self {
            cpu,
            tenant,
            stage: Some(Stage::build()?),
            awake: Awake::default(),
            spent: Duration::ZERO,
        })
    }

    /// What gives the next turn.
    pub fn awake(&self) -> Awake {
        self.awake.clone()
    }

    /// What the turns so far took of the CPU pool.
    pub const fn spent(&self) -> Duration {
        self.spent
    }

    /// Runs `future` to its end. Dropping the future that this gives ends it, at the end of its turn if it has one.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when `future` panics, and ever after.
    pub async fn run<T: Send + 'static>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let mut stage = self
            .stage
            .take()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the work before this was given up"))?;
        let mut future = future.boxed();
        loop {
            let turn = move || {
                let started = Instant::now();
                let turn = stage.turn(future);
                (stage, turn, started.elapsed())
            };
            let (back, turn, spent) = self.cpu.run(&self.tenant.now(), turn).await?;
            stage = back;
            self.spent += spent;
            match turn {
                Turn::Done(value) => {
                    self.stage = Some(stage);
                    return Ok(value);
                }
                Turn::Waits(waiting) => {
                    future = waiting;
                    self.awake.0.notified().await;
                }
                Turn::GivesWay(busy) => future = busy,
            }
        }
    }
}

// === impl Awake ===

impl Awake {
    /// Gives the next turn.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Gives it later, in any case.
    pub fn on_drop(&self) -> WakeOnDrop {
        WakeOnDrop(self.clone())
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

// === impl Stage ===

impl Stage {
    fn build() -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let parked = Arc::clone(&signal);
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || {
                parked.idle.store(true, Ordering::Release);
                parked.root.wake();
            })
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "cannot start a runtime for a scan").with_source(error)
            })?;
        Ok(Self {
            runtime: Background::new(runtime),
            signal,
        })
    }

    /// Polls until the future is done, or neither it nor what it spawned can go on, or the time is over.
    fn turn<T>(&self, mut future: BoxFuture<'static, T>) -> Turn<T> {
        let Some(runtime) = self.runtime.get() else {
            return Turn::Waits(future);
        };
        let signal = &self.signal;
        let waker = Waker::from(Arc::clone(signal));
        let end = Instant::now() + SLICE;
        signal.woken.store(true, Ordering::Release);
        let mut begun = false;
        let turn = runtime.block_on(poll_fn(|root| {
            signal.root.register(root.waker());
            if signal.woken.swap(false, Ordering::AcqRel) {
                if begun && Instant::now() >= end {
                    return Poll::Ready(Err(Pause::GivesWay));
                }
                begun = true;
                // Polling may give spawned work something to do: idle is what comes behind that.
                signal.idle.store(false, Ordering::Release);
                return future.poll_unpin(&mut Context::from_waker(&waker)).map(Ok);
            }
            if signal.idle.swap(false, Ordering::AcqRel) {
                return Poll::Ready(Err(Pause::Waits));
            }
            Poll::Pending
        }));
        match turn {
            Ok(value) => Turn::Done(value),
            Err(Pause::Waits) => Turn::Waits(future),
            Err(Pause::GivesWay) => Turn::GivesWay(future),
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.root.wake();
    }
}

#[cfg(test)]
mod tests;
