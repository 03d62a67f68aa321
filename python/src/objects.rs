//! The objects of a data set.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use pyo3::{exceptions::PyIndexError, prelude::*, types::PyCapsule};

use crate::{
    error::native,
    runtime::ProcessRuntime,
    settings::{self, Keys},
    table::stream_capsule,
    tensor::Tensor,
};

/// The objects of a data set in order, compact.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Objects(pushdown_client::Objects);

impl Objects {
    /// The same list. It is shared, not copied.
    pub(crate) fn shared(&self) -> pushdown_client::Objects {
        self.0.clone()
    }

    pub(crate) const fn list_ref(&self) -> &pushdown_client::Objects {
        &self.0
    }

    fn check(&self, index: usize) -> PyResult<usize> {
        if index < self.0.len() {
            return Ok(index);
        }
        Err(PyIndexError::new_err(format!(
            "found index {index}, expected less than {}",
            self.0.len()
        )))
    }
}

#[pymethods]
impl Objects {
    /// Lists a prefix. `progress` is called from time to time with the number of objects so far. All threads have ended when it returns.
    #[staticmethod]
    fn list_prefix(
        py: Python<'_>,
        store_json: &str,
        credentials: Option<Keys>,
        bucket: &str,
        prefix: &str,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let builder = settings::store(store_json, credentials)?;
        let listed_so_far = AtomicUsize::new(0);
        let report = |objects: usize| listed_so_far.store(objects, Relaxed);
        let progress = progress.map(Bound::unbind);
        let tick = |py: Python<'_>| match &progress {
            Some(progress) => progress.call1(py, (listed_so_far.load(Relaxed),)).map(drop),
            None => Ok(()),
        };
        let runtime = ProcessRuntime::start()?;
        let listing = || async {
            let store = builder.build().await?;
            store.list_objects_with(bucket, prefix, report).await
        };
        let listed = runtime.wait_with(py, listing, tick)?;
        py.detach(|| runtime.shutdown());
        Ok(Self(listed.map_err(|error| native(&error))?))
    }

    /// These keys in this order, without sizes.
    #[staticmethod]
    fn from_keys(bucket: &str, keys: Vec<String>) -> Self {
        Self(pushdown_client::Objects::from_keys(bucket, keys))
    }

    /// A saved list.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let loaded = py.detach(|| pushdown_client::Objects::load(path));
        Ok(Self(loaded.map_err(|error| native(&error))?))
    }

    /// Saves the list as an Arrow file. It contains no credentials.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = py.detach(|| self.0.save(path));
        saved.map_err(|error| native(&error))
    }

    #[getter]
    fn bucket(&self) -> &str {
        self.0.bucket()
    }

    /// Hexadecimal SHA-256 of the bucket and the keys in order.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.digest().to_owned())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn key(&self, index: usize) -> PyResult<&str> {
        Ok(self.0.key(self.check(index)?))
    }

    /// Stored size in bytes, if known.
    fn size(&self, index: usize) -> PyResult<Option<u64>> {
        Ok(self.0.bytes(self.check(index)?))
    }

    fn keys(&self) -> Vec<&str> {
        (0..self.0.len()).map(|index| self.0.key(index)).collect()
    }

    /// Some of the objects, in this order.
    fn select(&self, indices: Vec<usize>) -> PyResult<Self> {
        for index in &indices {
            self.check(*index)?;
        }
        Ok(Self(self.0.select(indices)))
    }

    /// The first part of each key after the prefix, sorted and without duplicates, and its number for each object, `i64 [n]`: -1 for an
    /// object without a folder after the prefix.
    fn folders(&self, py: Python<'_>, prefix: &str) -> PyResult<(Vec<String>, Tensor)> {
        let (names, numbers) = py.detach(|| {
            let folder = |index: usize| {
                let rest = self.0.key(index).strip_prefix(prefix)?;
                rest.split_once('/').map(|(folder, _)| folder)
            };
            let folders: Vec<Option<&str>> = (0..self.0.len()).map(folder).collect();
            let mut names: Vec<&str> = folders.iter().copied().flatten().collect();
            names.sort_unstable();
            names.dedup();
            let number = |name: &&str| names.binary_search(name).ok().and_then(|n| i64::try_from(n).ok());
            let numbers: Vec<i64> = folders
                .iter()
                .map(|folder| folder.as_ref().and_then(number).unwrap_or(-1))
                .collect();
            (names.into_iter().map(str::to_owned).collect(), numbers)
        });
        Ok((names, Tensor::from_i64s(numbers.into_iter())?))
    }

    /// Columns `key`, `bytes` and `etag`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.0.to_record_batch().map_err(|error| native(&error))?;
        let schema = batch.schema();
        stream_capsule(py, schema, vec![batch], requested_schema)
    }
}
