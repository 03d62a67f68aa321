//! The objects of a data set.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use pushdown_client::store::HiddenObjects;
use pyo3::{
    exceptions::{PyIndexError, PyKeyError},
    prelude::*,
    types::PyCapsule,
};

use crate::{
    error::native,
    logging,
    runtime::{ProcessRuntime, wait_detached},
    settings::{self, Keys},
    table::stream_capsule,
    tensor::Tensor,
};

/// The objects of a data set in order, compact. Each is a sample, or its members are, if it is a shard.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Objects(pushdown_client::store::Objects);

impl Objects {
    /// The same list. It is shared, not copied.
    pub(crate) fn shared(&self) -> pushdown_client::store::Objects {
        self.0.clone()
    }

    pub(crate) const fn list_ref(&self) -> &pushdown_client::store::Objects {
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

    /// What labels are found by: the name of the member, or the key of the whole object.
    fn path_of(&self, index: usize) -> &str {
        match self.0.member(index) {
            Some(member) => member.name,
            None => self.0.key(index),
        }
    }
}

impl From<pushdown_client::store::Objects> for Objects {
    fn from(objects: pushdown_client::store::Objects) -> Self {
        Self(objects)
    }
}

#[pymethods]
impl Objects {
    /// Lists a prefix, with or without hidden objects; by the S3 Inventory whose manifest has the URL `inventory`, if there is one. `progress` is
    /// called from time to time with the number of objects so far. All threads have ended when it returns.
    #[staticmethod]
    #[pyo3(signature = (store_json, credentials, bucket, prefix, progress, include_hidden, inventory = None))]
    #[expect(clippy::too_many_arguments, reason = "those of a call from Python")]
    fn list_prefix(
        py: Python<'_>,
        store_json: &str,
        credentials: Option<Keys>,
        bucket: &str,
        prefix: &str,
        progress: Option<Bound<'_, PyAny>>,
        include_hidden: bool,
        inventory: Option<&str>,
    ) -> PyResult<Self> {
        let builder = settings::store(store_json, credentials)?;
        let hidden = if include_hidden {
            HiddenObjects::Listed
        } else {
            HiddenObjects::LeftOut
        };
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
            match inventory {
                Some(manifest) => {
                    store
                        .read_inventory(manifest, bucket, prefix, hidden, report)
                        .await
                }
                None => store.list_objects_with(bucket, prefix, hidden, report).await,
            }
        };
        let listed = runtime.wait_with(py, listing, tick)?;
        py.detach(|| runtime.shutdown());
        // How many objects were left out.
        logging::drain(py)?;
        Ok(Self(listed.map_err(|error| native(&error))?))
    }

    /// These keys in this order, without sizes.
    #[staticmethod]
    fn from_keys(bucket: &str, keys: Vec<String>) -> Self {
        Self(pushdown_client::store::Objects::from_keys(bucket, keys))
    }

    /// A saved list.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        wait_detached(py, || pushdown_client::store::Objects::load(path)).map(Self)
    }

    /// Saves the list as an Arrow file. It contains no credentials.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        wait_detached(py, || self.0.save(path))
    }

    #[getter]
    fn bucket(&self) -> &str {
        self.0.bucket()
    }

    /// The digest of what is in the list. That of a saved list, in contrast, is the one that its file states.
    fn computed_digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.computed_digest())
    }

    /// Hexadecimal SHA-256 of the bucket and the keys in order; with members, of their names, places and columns as well.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.digest().to_owned())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Key of an object; of a member, the key of its shard.
    fn key(&self, index: usize) -> PyResult<&str> {
        Ok(self.0.key(self.check(index)?))
    }

    /// Stored size in bytes, if known; of a member, the size of its content.
    fn size(&self, index: usize) -> PyResult<Option<u64>> {
        Ok(self.0.bytes(self.check(index)?))
    }

    fn keys(&self) -> Vec<&str> {
        (0..self.0.len()).map(|index| self.0.key(index)).collect()
    }

    /// Whether samples are members of shards.
    #[getter]
    fn has_members(&self) -> bool {
        self.0.has_members()
    }

    /// Name of the member in its shard; `None` for a whole object.
    fn member(&self, index: usize) -> PyResult<Option<&str>> {
        Ok(self.0.member(self.check(index)?).map(|member| member.name))
    }

    /// Names of the further columns of members, in order.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.0.columns().iter().map(AsRef::as_ref).collect()
    }

    /// Name of the member of a further column; `None` if the sample has none.
    fn column_member(&self, index: usize, column: &str) -> PyResult<Option<&str>> {
        let index = self.check(index)?;
        let mut columns = self.0.columns().iter();
        let Some(column) = columns.position(|name| **name == *column) else {
            return Err(PyKeyError::new_err(column.to_owned()));
        };
        let member = self.0.column_member(index, column);
        Ok(member.map(|member| member.name))
    }

    /// What labels are found by: the name of each member, or the key of each whole object.
    fn paths(&self) -> Vec<&str> {
        (0..self.0.len()).map(|index| self.path_of(index)).collect()
    }

    /// The longest folder that all paths begin with, with its slash; empty if there is none.
    fn common_folder(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let paths = || (0..self.0.len()).map(move |index| self.path_of(index));
            let (Some(first), Some(last)) = (paths().min(), paths().max()) else {
                return String::new();
            };
            let pairs = first.chars().zip(last.chars());
            let shared: String = pairs
                .take_while(|(first, last)| first == last)
                .map(|(first, _)| first)
                .collect();
            shared
                .rsplit_once('/')
                .map_or_else(String::new, |(folder, _)| format!("{folder}/"))
        })
    }

    /// Some of the objects, in this order.
    fn select(&self, indices: Vec<usize>) -> PyResult<Self> {
        for index in &indices {
            self.check(*index)?;
        }
        Ok(Self(self.0.select(indices)))
    }

    /// The first part of each path after the prefix, sorted and without duplicates, and its number for each sample, `i64 [n]`: -1 for a
    /// sample without a folder after the prefix.
    fn folders(&self, py: Python<'_>, prefix: &str) -> PyResult<(Vec<String>, Tensor)> {
        let (names, numbers) = py.detach(|| {
            let folder = |index: usize| {
                let rest = self.path_of(index).strip_prefix(prefix)?;
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

    /// Columns `key`, `bytes` and `etag`; with members also `member`, `offset`, `header_bytes` and `size`, and a struct `column:NAME` of these
    /// four for each further column.
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
