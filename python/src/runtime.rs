//! The threads of network I/O, and waiting for them from Python.

use std::{mem::ManuallyDrop, pin::pin, process, time::Duration};

use pushdown_exec::sync::RwLock;
use pyo3::{PyResult, Python};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::{
    error::{closed, forked, internal, native},
    logging,
};

/// Interval of looking for signals, such as that of Ctrl-C, while Python waits.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);
/// Threads of network I/O. Steps run on the reader's own threads.
const IO_THREADS: usize = 2;
/// The longest wait for threads of network I/O to end.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// A runtime that belongs to the process that started it. In a forked child its threads do not exist, so there it is never used and
/// never dropped.
#[derive(Debug)]
pub(crate) struct ProcessRuntime {
    /// `None` once it is shut down.
    runtime: RwLock<Option<Runtime>>,
    process: u32,
}

impl ProcessRuntime {
    pub(crate) fn start() -> PyResult<Self> {
        logging::start();
        let runtime = Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("pushdown-io")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| internal(format!("cannot start threads: {error}")))?;
        Ok(Self {
            runtime: RwLock::new(Some(runtime)),
            process: process::id(),
        })
    }

    /// Whether this is the process that started the runtime.
    pub(crate) fn is_alive(&self) -> bool {
        self.process == process::id()
    }

    /// Waits for the future that `start` returns, without the interpreter lock. A signal whose handler raises, such as that of Ctrl-C,
    /// ends the wait.
    pub(crate) fn wait<T: Send, F: Future<Output = T>>(
        &self,
        py: Python<'_>,
        start: impl FnOnce() -> F + Send,
    ) -> PyResult<T> {
        self.wait_with(py, start, |_| Ok(()))
    }

    /// As `wait`, and calls `tick` from time to time, with the interpreter lock. What it raises ends the wait. Python code runs there
    /// only, never inside of the future.
    pub(crate) fn wait_with<T: Send, F: Future<Output = T>>(
        &self,
        py: Python<'_>,
        start: impl FnOnce() -> F + Send,
        tick: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    ) -> PyResult<T> {
        if !self.is_alive() {
            return Err(forked());
        }
        logging::drain(py)?;
        py.detach(|| {
            let mut future = pin!(start());
            loop {
                let step = async { timeout(SIGNAL_INTERVAL, future.as_mut()).await };
                let done = self.runtime.read().as_ref().map(|runtime| runtime.block_on(step));
                match done {
                    Some(Ok(done)) => return Ok(done),
                    Some(Err(_elapsed)) => Python::attach(|py| {
                        py.check_signals()?;
                        logging::drain(py)?;
                        tick(py)
                    })?,
                    None => return Err(closed()),
                }
            }
        })
    }

    /// Ends the threads and waits for them, but not for long.
    pub(crate) fn shutdown(&self) {
        if let Some(runtime) = self.runtime.write().take() {
            runtime.shutdown_timeout(SHUTDOWN);
        }
    }
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        if self.is_alive() {
            // Not with the interpreter lock, which threads may wait for. Without an interpreter there is no such lock.
            if Python::try_attach(|py| py.detach(|| self.shutdown())).is_none() {
                self.shutdown();
            }
        } else {
            // Dropping it would wait for threads that do not exist here.
            let _leaked = self.runtime.get_mut().take().map(ManuallyDrop::new);
        }
    }
}

/// Waits for a call of the client that reads or writes a file, or computes, without the interpreter lock.
pub(crate) fn wait_detached<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> pushdown_client::Result<T> + Send,
) -> PyResult<T> {
    py.detach(call).map_err(|error| native(&error))
}
