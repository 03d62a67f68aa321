//! The members of shards.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use pushdown::shard;
use pushdown_client::shards::{ColumnSelection, IndexProgress};
use pyo3::prelude::*;

use crate::{
    error::{config, native},
    logging,
    objects::Objects,
    runtime::{ProcessRuntime, wait_detached},
    settings::{self, Keys},
};

/// All members of a set of shards, compact.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct ShardIndex(pushdown_client::shards::ShardIndex);

#[pymethods]
impl ShardIndex {
    /// Finds the members of the shards with these keys. `progress` is called from time to time with the numbers of complete shards and of
    /// members so far. All threads have ended when it returns.
    #[staticmethod]
    fn read_shards(
        py: Python<'_>,
        store_json: &str,
        credentials: Option<Keys>,
        bucket: &str,
        keys: Vec<String>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let builder = settings::store(store_json, credentials)?;
        let keys = pushdown_client::store::Objects::from_keys(bucket, keys);
        let (shards, members) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let report = |progress: IndexProgress| {
            shards.store(progress.shards, Relaxed);
            members.store(progress.members, Relaxed);
        };
        let progress = progress.map(Bound::unbind);
        let tick = |py: Python<'_>| match &progress {
            Some(progress) => progress
                .call1(py, (shards.load(Relaxed), members.load(Relaxed)))
                .map(drop),
            None => Ok(()),
        };
        let runtime = ProcessRuntime::start()?;
        let indexing = || async {
            let store = builder.build().await?;
            store.index_shards(&keys, report).await
        };
        let index = runtime.wait_with(py, indexing, tick)?;
        py.detach(|| runtime.shutdown());
        Ok(Self(index.map_err(|error| native(&error))?))
    }

    /// A saved index.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        wait_detached(py, || pushdown_client::shards::ShardIndex::load(path)).map(Self)
    }

    /// Saves the index as a Parquet file. It contains no credentials.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        wait_detached(py, || self.0.save(path))
    }

    #[getter]
    fn bucket(&self) -> &str {
        self.0.bucket()
    }

    /// Number of members.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Number of members that are left out.
    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    /// Keys of the shards that have members, in order.
    #[getter]
    fn shards(&self) -> Vec<&str> {
        self.0.shards().map(|(key, _etag)| key).collect()
    }

    /// Every member as a sample.
    #[getter]
    fn members(&self) -> Objects {
        self.0.members().clone().into()
    }

    /// The index of the shards with these keys alone, in this order.
    fn select_shards(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<Self> {
        wait_detached(py, move || self.0.select_shards(&keys)).map(Self)
    }

    /// The samples that members of one base name form. `column` is the extension of the value, by default that of an image; `columns` are
    /// those of the further columns.
    fn samples(&self, py: Python<'_>, column: Option<String>, columns: Vec<String>) -> PyResult<Objects> {
        logging::start();
        let selection = ColumnSelection {
            value: column,
            further: columns,
        };
        let samples = wait_detached(py, || self.0.samples(&selection));
        logging::drain(py)?;
        samples.map(Objects::from)
    }
}

/// The texts that a pattern with braces names, such as `train-{000..999}.tar`. A text without braces names itself.
#[pyfunction]
pub(crate) fn expand_braces(py: Python<'_>, pattern: &str) -> PyResult<Vec<String>> {
    let expanded = py.detach(|| shard::expand_braces(pattern));
    expanded.map_err(|error| config(error.to_string()))
}

/// Whether a key is that of a shard, also of a compressed one.
#[pyfunction]
pub(crate) fn is_shard(key: &str) -> bool {
    shard::shard_kind(key).is_some()
}
