//! A reader together with the threads that it needs.

use std::mem::ManuallyDrop;

use futures::{FutureExt as _, Stream, StreamExt, future::BoxFuture};
use pyo3::{PyResult, Python};
use tokio::{select, sync::Mutex};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{closed, native},
    runtime::ProcessRuntime,
};

/// A reader and its threads. In a forked child it is neither used nor dropped, since its threads are not there.
#[derive(Debug)]
pub(crate) struct Live<R> {
    runtime: ProcessRuntime,
    /// `None` once it is closed.
    reader: Mutex<Option<R>>,
    /// Ends what other Python threads wait for.
    closing: CancellationToken,
}

impl<R: Send> Live<R> {
    /// Starts threads, builds the reader on them, and returns what `describe` says of it, too.
    pub(crate) fn start<T: Send, F>(
        py: Python<'_>,
        build: impl FnOnce() -> F + Send,
        describe: impl FnOnce(&R) -> T + Send,
    ) -> PyResult<(Self, T)>
    where
        F: Future<Output = pushdown_client::Result<R>>,
    {
        let runtime = ProcessRuntime::start()?;
        let building = || async {
            let reader = build().await?;
            let description = describe(&reader);
            Ok((reader, description))
        };
        let (reader, description) = runtime.wait(py, building)?.map_err(|error| native(&error))?;
        let live = Self {
            runtime,
            reader: Mutex::new(Some(reader)),
            closing: CancellationToken::new(),
        };
        Ok((live, description))
    }

    /// Waits for what `read` reads. Another Python thread that reads is waited for, too.
    pub(crate) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl for<'a> FnOnce(&'a mut R) -> BoxFuture<'a, pushdown_client::Result<T>> + Send,
    ) -> PyResult<T> {
        self.wait(py, || async {
            let mut reader = self.reader.lock().await;
            Some(read(reader.as_mut()?).await)
        })
    }

    /// As `read`, with a clone, so that several Python threads can wait at once.
    pub(crate) fn read_concurrently<T: Send, F>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(R) -> F + Send,
    ) -> PyResult<T>
    where
        R: Clone,
        F: Future<Output = pushdown_client::Result<T>>,
    {
        self.wait(py, || async {
            let reader = self.reader.lock().await.clone()?;
            Some(read(reader).await)
        })
    }

    /// Waits for what `start` returns, which is `None` if the reader is closed, or until it is closed.
    fn wait<T: Send, F>(&self, py: Python<'_>, start: impl FnOnce() -> F + Send) -> PyResult<T>
    where
        F: Future<Output = Option<pushdown_client::Result<T>>>,
    {
        let reading = || async {
            select! {
                biased;
                () = self.closing.cancelled() => None,
                done = start() => done,
            }
        };
        match self.runtime.wait(py, reading)? {
            Some(done) => done.map_err(|error| native(&error)),
            None => Err(closed()),
        }
    }

    /// Ends all reads and calls `close` with the reader, unless it is closed already. In a forked child it does nothing.
    pub(crate) fn close<F>(&self, py: Python<'_>, close: impl FnOnce(R) -> F + Send) -> PyResult<()>
    where
        F: Future<Output = ()>,
    {
        if !self.runtime.is_alive() {
            return Ok(());
        }
        self.closing.cancel();
        self.runtime.wait(py, || async {
            if let Some(reader) = self.reader.lock().await.take() {
                close(reader).await;
            }
        })?;
        py.detach(|| self.runtime.shutdown());
        Ok(())
    }
}

impl<R, B: Send> Live<R>
where
    R: Stream<Item = pushdown_client::Result<B>> + Send + Unpin,
{
    /// The next batch; `None` after the last one.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<B>> {
        self.read(py, |reader| {
            async { StreamExt::next(reader).await.transpose() }.boxed()
        })
    }
}

impl<R> Drop for Live<R> {
    fn drop(&mut self) {
        if !self.runtime.is_alive() {
            let _leaked = self.reader.get_mut().take().map(ManuallyDrop::new);
        }
    }
}
