//! Whole data sets: parts of their values that a gateway writes, and values that it caches.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc};

use futures::TryStreamExt as _;
use pushdown_client::{
    materialize::{BadSample, LabelType, LabelValues, Labels, Materialize, PartFormat, Progress},
    reader::{OnError, PushdownReader},
    store::StoreSpec,
};
use pushdown_exec::sync::Mutex;
use pyo3::{prelude::*, types::PyTuple};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    error::{config, native},
    logging,
    objects::Objects,
    runtime::ProcessRuntime,
    settings::{self, Keys},
};

/// The settings of a materialization.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MaterializeSpec {
    store: StoreSpec,
    /// The prefix of the keys of all objects.
    prefix: String,
    pipeline: String,
    format: PartFormat,
    /// Bucket and prefix of the parts.
    target: (String, String),
    target_store: Option<StoreSpec>,
    labels: Option<LabelSpec>,
    seed: Option<u64>,
    epoch: u32,
    samples_per_part: Option<NonZeroU32>,
    append: bool,
    local: bool,
    /// A folder of models, instead of those of the gateway.
    models: Option<PathBuf>,
}

/// The labels of all objects, in their order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum LabelSpec {
    Class { names: Vec<String>, values: Vec<i64> },
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<String>),
}

impl LabelSpec {
    fn labels(self) -> pushdown_client::Result<Labels> {
        let (label_type, values) = match self {
            Self::Class { names, values } => (LabelType::Class { names }, LabelValues::Int(values)),
            Self::Int(values) => (LabelType::Int, LabelValues::Int(values)),
            Self::Float(values) => (LabelType::Float, LabelValues::Float(values)),
            Self::Text(values) => (LabelType::Text, LabelValues::Text(values)),
        };
        Labels::new(label_type, values)
    }
}

impl MaterializeSpec {
    async fn job(
        self,
        credentials: Option<Keys>,
        target_credentials: Option<Keys>,
        objects: pushdown_client::store::Objects,
    ) -> pushdown_client::Result<Materialize> {
        let store = settings::store_of(self.store, credentials).build().await?;
        let target_store = match self.target_store {
            Some(spec) => Some(settings::store_of(spec, target_credentials).build().await?),
            None => None,
        };
        let (bucket, prefix) = self.target;
        let source = objects.bucket().to_owned();
        let mut job = Materialize::new(store, source, self.prefix, self.pipeline, self.format)
            .to(bucket, prefix)
            .objects(objects)
            .epoch(self.epoch);
        if let Some(store) = target_store {
            job = job.target_store(store);
        }
        if let Some(labels) = self.labels {
            job = job.labels(labels.labels()?);
        }
        if let Some(seed) = self.seed {
            job = job.seed(seed);
        }
        if let Some(samples) = self.samples_per_part {
            job = job.samples_per_part(samples);
        }
        if self.append {
            job = job.append();
        }
        if self.local {
            job = job.local();
        }
        if let Some(folder) = self.models {
            job = job.models(folder);
        }
        Ok(job)
    }
}

/// Counts of a job: those of the last progress, `None` before the first one.
type Counts<const N: usize> = Mutex<Option<[u64; N]>>;

/// Writes the values of all objects as parts of a data set, and returns what was written, as JSON; with `is_trial` an estimate, and nothing is
/// written. `progress` is called from time to time, and at the end, with five numbers: samples that are done, samples, parts that are done, parts,
/// and bytes that were written. All threads of network I/O have ended when it returns.
#[pyfunction]
pub(crate) fn materialize_json(
    py: Python<'_>,
    spec_json: &str,
    credentials: Option<Keys>,
    target_credentials: Option<Keys>,
    objects: &Objects,
    is_trial: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let spec: MaterializeSpec =
        serde_json::from_str(spec_json).map_err(|error| config(format!("invalid settings: {error}")))?;
    let objects = objects.shared();
    let counts: Arc<Counts<5>> = Arc::default();
    let observed = Arc::clone(&counts);
    let observe = move |progress: Progress| {
        let Progress {
            samples,
            samples_done,
            parts,
            parts_done,
            bytes,
        } = progress;
        *observed.lock() = Some([samples_done, samples, parts_done, parts, bytes]);
    };
    let materializing = || async {
        let job = spec.job(credentials, target_credentials, objects).await?;
        if is_trial {
            let estimate = Box::pin(job.estimate()).await?;
            return Ok(json!({
                "samples": estimate.samples,
                "samples_per_part": estimate.samples_per_part,
                "parts": estimate.parts,
                "parts_done": estimate.parts_done,
                "bytes": estimate.bytes,
                "cpu_seconds": estimate.cpu_seconds,
                "seconds": estimate.seconds,
            }));
        }
        let done = Box::pin(job.on_progress(observe).run()).await?;
        Ok(json!({
            "samples": done.samples,
            "parts": done.parts,
            "parts_written": done.parts_written,
            "bytes": done.bytes,
            "cpu_seconds": done.cpu_seconds,
            "seconds": done.seconds,
            "errors": done.errors,
            "vanished": done.vanished,
        }))
    };
    run(py, materializing, &counts, progress)
}

/// Has the gateway compute and cache the values of all samples, and returns what is cached, as JSON. The spec's members are those of the library's
/// `ReaderSpec`. `progress` is called from time to time, and at the end, with the number of samples that are done and of all. All threads have
/// ended when it returns.
#[pyfunction]
pub(crate) fn warm_json(
    py: Python<'_>,
    spec_json: &str,
    credentials: Option<Keys>,
    objects: &Objects,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let builder = settings::reader(spec_json, credentials, objects)?.on_error(OnError::Report);
    let counts: Counts<2> = Mutex::default();
    let warming = || async {
        let start = Instant::now();
        let mut reader: PushdownReader = builder.build().await?;
        let samples = reader.len() as u64;
        let mut samples_done = 0;
        let mut errors = Vec::new();
        while let Some(batch) = reader.try_next().await? {
            errors.extend(batch.errors().map(|(row, error)| BadSample {
                name: row.name().to_string(),
                code: error.code.clone(),
                message: error.message.clone(),
            }));
            samples_done += batch.len() as u64;
            *counts.lock() = Some([samples_done, samples]);
        }
        let stats = reader.stats();
        reader.close().await;
        Ok(json!({
            "samples": samples,
            "cached": stats.warmed,
            "found": stats.gateway_cache_hits,
            "not_cached": stats.not_warmed,
            "errors": errors,
            "wire_bytes_up": stats.wire_bytes_up,
            "wire_bytes_down": stats.wire_bytes_down,
            "seconds": start.elapsed().as_secs_f64(),
        }))
    };
    run(py, warming, &counts, progress)
}

/// Waits for the report that `start` returns, on threads of its own, and calls `progress` with the counts.
fn run<F, const N: usize>(
    py: Python<'_>,
    start: impl FnOnce() -> F + Send,
    counts: &Counts<N>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String>
where
    F: Future<Output = pushdown_client::Result<Value>>,
{
    let progress = progress.map(Bound::unbind);
    let report = |py: Python<'_>| {
        let counts = *counts.lock();
        match (&progress, counts) {
            (Some(progress), Some(counts)) => progress.call1(py, PyTuple::new(py, counts)?).map(drop),
            _ => Ok(()),
        }
    };
    let runtime = ProcessRuntime::start()?;
    let done = runtime.wait_with(py, start, report)?;
    py.detach(|| runtime.shutdown());
    logging::drain(py)?;
    let done = done.map_err(|error| native(&error))?;
    report(py)?;
    Ok(done.to_string())
}
