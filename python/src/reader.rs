//! A live reader of objects.

use futures::FutureExt as _;
use pushdown_client::{
    reader::{Mode, OnError, PushdownReader, ReaderMonitor},
    store::ReplicaReport,
};
use pyo3::prelude::*;
use serde_json::json;

use crate::{
    batch::Batch,
    live::Live,
    objects::Objects,
    settings::{self, Keys},
};

/// A reader whose threads live until `close`, or until it is dropped.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Reader {
    live: Live<PushdownReader>,
    monitor: ReaderMonitor,
}

/// What the planner of a reader, of objects or rows, has observed.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Observations(pushdown_client::reader::Observations);

impl Observations {
    /// The observations.
    pub(crate) const fn get(&self) -> &pushdown_client::reader::Observations {
        &self.0
    }
}

impl From<pushdown_client::reader::Observations> for Observations {
    fn from(observations: pushdown_client::reader::Observations) -> Self {
        Self(observations)
    }
}

#[pymethods]
impl Reader {
    /// Starts threads. The spec's members are those of the library's `ReaderSpec`; rows without a value are always reported.
    #[new]
    #[pyo3(signature = (spec_json, credentials, objects, observations = None))]
    fn new(
        py: Python<'_>,
        spec_json: &str,
        credentials: Option<Keys>,
        objects: &Objects,
        observations: Option<&Observations>,
    ) -> PyResult<Self> {
        let builder = settings::reader(spec_json, credentials, objects)?;
        let mut builder = builder.on_error(OnError::Report);
        if let Some(known) = observations {
            builder = builder.observations(known.get().clone());
        }
        let (live, monitor) = Live::start(py, || builder.build(), PushdownReader::monitor)?;
        Ok(Self { live, monitor })
    }

    /// The next batch; `None` after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(self.live.next(py)?.map(Batch::from))
    }

    /// The samples with these indices, in this order, as one batch.
    fn take(&self, py: Python<'_>, indices: Vec<usize>) -> PyResult<Batch> {
        let batch = self.live.read(py, |reader| {
            async move { PushdownReader::take(reader, &indices).await }.boxed()
        })?;
        Ok(batch.into())
    }

    /// Starts another epoch from its first batch.
    fn set_epoch(&self, py: Python<'_>, epoch: u32) -> PyResult<()> {
        self.live.read(py, |reader| {
            reader.set_epoch(epoch);
            async { Ok(()) }.boxed()
        })
    }

    /// Counts so far, as JSON.
    fn stats_json(&self) -> String {
        stats_json(&self.monitor)
    }

    /// The plan in force, for people; `None` before the first one and in other modes than auto.
    fn plan(&self) -> Option<String> {
        self.monitor.plan().map(|plan| plan.to_string())
    }

    /// The mode in force: "auto", "pushdown" or "plain".
    #[getter]
    fn mode(&self) -> &'static str {
        mode_name(self.monitor.mode())
    }

    /// What the planner has observed, for the next reader of the same data; `None` before the first plan and in other modes than auto.
    fn observations(&self) -> Option<Observations> {
        self.monitor.observations().map(Observations::from)
    }

    /// Cancels everything in flight, and waits until all threads have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.live.close(py, PushdownReader::close)
    }
}

/// The name of a mode in Python.
pub(crate) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "auto",
        Mode::Pushdown => "pushdown",
        Mode::Plain => "plain",
    }
}

fn replica_json(replica: &ReplicaReport) -> serde_json::Value {
    json!({
        "id": replica.id,
        "address": replica.address,
        "state": replica.state,
        "cores": replica.cores,
        "samples": replica.samples,
    })
}

/// Counts so far as JSON, and the addresses with which bytes are exchanged.
pub(crate) fn stats_json(monitor: &ReaderMonitor) -> String {
    let stats = monitor.stats();
    let replicas: Vec<_> = monitor.replicas().iter().map(replica_json).collect();
    json!({
        "endpoint": monitor.endpoint(),
        "gateway": monitor.gateway_url(),
        "samples": stats.samples,
        "errors": stats.errors,
        "skipped": stats.skipped,
        "value_bytes": stats.value_bytes,
        "wire_bytes_down": stats.wire_bytes_down,
        "wire_bytes_up": stats.wire_bytes_up,
        "gateway_bytes_down": stats.gateway_bytes_down,
        "gateway_bytes_up": stats.gateway_bytes_up,
        "stored_bytes": stats.stored_bytes,
        "cache_hits": stats.cache_hits,
        "cache_writes": stats.cache_writes,
        "cropped_samples": stats.cropped_samples,
        "gateway_cache_hits": stats.gateway_cache_hits,
        "gateway_shared": stats.gateway_shared,
        "gateway_prefix_hits": stats.gateway_prefix_hits,
        "retries": stats.retries,
        "waiting_seconds": stats.waiting.as_secs_f64(),
        "replicas": replicas,
    })
    .to_string()
}
