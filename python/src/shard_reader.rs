//! A live reader of whole shards, and its state.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use pushdown_client::{
    reader::{OnError, ReaderMonitor},
    shards::ShardReader as Shards,
};
use pyo3::prelude::*;

use crate::{
    batch::Batch,
    error::{config, internal, native},
    live::Live,
    objects::Objects,
    reader::{mode_name, stats_json},
    settings::{self, Keys},
};

/// A reader of the samples in tar shards without an index, whose threads live until `close`, or until it is dropped.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct ShardReader {
    live: Live<Shards>,
    monitor: ReaderMonitor,
}

/// What one reader has read of an epoch's shards.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct ShardsRead(Arc<pushdown_client::shards::ShardsRead>);

impl From<Arc<pushdown_client::shards::ShardsRead>> for ShardsRead {
    fn from(state: Arc<pushdown_client::shards::ShardsRead>) -> Self {
        Self(state)
    }
}

impl ShardsRead {
    /// As `to_json` writes it.
    pub(crate) fn from_json(text: &str) -> PyResult<Self> {
        let state = serde_json::from_str(text);
        let state = state.map_err(|error| config(format!("invalid state of shards: {error}")))?;
        Ok(Self(Arc::new(state)))
    }

    /// The state, shared.
    pub(crate) fn into_shared(self) -> Arc<pushdown_client::shards::ShardsRead> {
        self.0
    }
}

#[pymethods]
impl ShardReader {
    /// Starts threads. The objects are the shards; rows without a value are always reported.
    #[new]
    fn new(py: Python<'_>, spec_json: &str, credentials: Option<Keys>, objects: &Objects) -> PyResult<Self> {
        let builder = settings::reader(spec_json, credentials, objects)?.on_error(OnError::Report);
        let (live, monitor) = Live::start(py, || builder.build_shards(), Shards::monitor)?;
        Ok(Self { live, monitor })
    }

    /// The next batch; `None` after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.live.read(py, |reader| {
            async move {
                let batch = reader.next().await.transpose();
                batch.map(|batch| batch.map(|batch| Batch::of_shards(batch, reader.shards_read())))
            }
            .boxed()
        })
    }

    /// The mode in force: always "plain".
    #[getter]
    fn mode(&self) -> &'static str {
        mode_name(self.monitor.mode())
    }

    /// Counts so far, as JSON.
    fn stats_json(&self) -> String {
        stats_json(&self.monitor)
    }

    /// Cancels everything in flight, and waits until all threads have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.live.close(py, Shards::close)
    }
}

#[pymethods]
impl ShardsRead {
    /// The state of a reader before its first batch. The objects are the shards. It checks the settings, and starts no threads.
    #[staticmethod]
    fn initial(py: Python<'_>, spec_json: &str, objects: &Objects) -> PyResult<Self> {
        let builder = settings::reader(spec_json, None, objects)?;
        let state = py.detach(move || builder.initial_shards_read(objects.list_ref()));
        Ok(Self(Arc::new(state.map_err(|error| native(&error))?)))
    }

    /// Whether no sample is left for the reader whose state it is.
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// As the settings of a reader have it in `shards_read`.
    pub(crate) fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.0)
            .map_err(|error| internal(format!("cannot write what was read of shards: {error}")))
    }
}
