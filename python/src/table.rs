//! Tables, and a live reader of rows.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{FutureExt as _, StreamExt as _};
use pushdown_client::{TableMonitor, TableReader as Rows};
use pyo3::{prelude::*, types::PyCapsule};
use pyo3_arrow::PyTable;

use crate::{
    batch::Batch,
    column::{column, values},
    live::Live,
    objects::Objects,
    reader::stats_json,
    runtime::wait_detached,
    settings::{self, Keys},
    tensor::Tensor,
};

/// Rows in memory. Every export shares the memory.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) const fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

impl From<pushdown::Table> for Table {
    fn from(table: pushdown::Table) -> Self {
        Self::new(SchemaRef::clone(table.schema()), table.into_batches())
    }
}

/// A capsule of `__arrow_c_stream__` over these rows.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyAny>> {
    let table = Bound::new(py, PyTable::try_new(batches, schema)?)?;
    table.call_method1("__arrow_c_stream__", (requested_schema,))
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = pyo3_arrow::PySchema::new(SchemaRef::clone(&self.schema));
        Bound::new(py, schema)?.call_method0("__arrow_c_schema__")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        stream_capsule(
            py,
            SchemaRef::clone(&self.schema),
            self.batches.clone(),
            requested_schema,
        )
    }

    /// A numeric or fixed-size column as one array `[n, ...]`, any other as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.schema, &self.batches, name)
    }
}

/// Rows that are consecutive in the order of the epoch.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct TableBatch(pushdown_client::TableBatch);

#[pymethods]
impl TableBatch {
    /// Number of the batch within this reader's share, from 0.
    #[getter]
    const fn number(&self) -> usize {
        self.0.number
    }

    fn __len__(&self) -> usize {
        self.0.ids.len()
    }

    #[getter]
    fn table(&self) -> Table {
        Table::new(self.0.rows.schema(), vec![self.0.rows.clone()])
    }

    /// A numeric or fixed-size column as one array `[n, ...]`, any other as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        column(
            py,
            &self.0.rows.schema(),
            std::slice::from_ref(&self.0.rows),
            name,
        )
    }

    /// A column as a list of Python objects.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        values(
            py,
            &self.0.rows.schema(),
            std::slice::from_ref(&self.0.rows),
            name,
        )
    }

    /// Index of each row's object, `i64 [n]`.
    #[getter]
    fn objects(&self) -> PyResult<Tensor> {
        let objects = self
            .0
            .ids
            .iter()
            .map(|id| i64::try_from(id.object).unwrap_or(i64::MAX));
        Tensor::from_i64s(objects)
    }

    /// Position of each row in the order of the epoch over all ranks, `i64 [n]`.
    #[getter]
    fn position(&self) -> PyResult<Tensor> {
        let positions = self.0.positions.iter();
        Tensor::from_i64s(positions.map(|position| i64::try_from(*position).unwrap_or(i64::MAX)))
    }

    /// Number of each row in its object, `i64 [n]`.
    #[getter]
    fn rows(&self) -> PyResult<Tensor> {
        let rows = self
            .0
            .ids
            .iter()
            .map(|id| i64::try_from(id.row).unwrap_or(i64::MAX));
        Tensor::from_i64s(rows)
    }
}

/// A reader of rows whose threads live until `close`, or until it is dropped.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct TableReader {
    live: Live<Rows>,
    monitor: TableMonitor,
    rows: u64,
    batches: u64,
    most_batches: u64,
    columns: Vec<String>,
    stage: usize,
}

/// What the planner of a reader of rows has observed.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct RowObservations(pushdown_client::RowObservations);

#[pymethods]
impl TableReader {
    /// Starts threads, reads footers, and evaluates the condition.
    #[new]
    #[pyo3(signature = (spec_json, credentials, objects, observations = None))]
    fn new(
        py: Python<'_>,
        spec_json: &str,
        credentials: Option<Keys>,
        objects: &Objects,
        observations: Option<&RowObservations>,
    ) -> PyResult<Self> {
        let mut builder = settings::reader(spec_json, credentials, objects)?;
        if let Some(known) = observations {
            builder = builder.row_observations(known.0.clone());
        }
        let live = Live::start(py, || builder.build_table())?;
        let facts = live.read(py, |reader| {
            let fields = reader.schema().fields().iter();
            let columns = fields.map(|field| field.name().clone()).collect();
            let counts = (reader.len(), reader.batches(), reader.most_batches());
            let facts = (reader.monitor(), counts, columns, reader.stage());
            async { Ok(facts) }.boxed()
        })?;
        let (monitor, (rows, batches, most_batches), columns, stage) = facts;
        Ok(Self {
            live,
            monitor,
            rows,
            batches,
            most_batches,
            columns,
            stage,
        })
    }

    /// The next batch; `None` after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<TableBatch>> {
        let batch = self
            .live
            .read(py, |reader| async { reader.next().await.transpose() }.boxed())?;
        Ok(batch.map(TableBatch))
    }

    /// The values of a batch that `each` computed in a column, as the samples of a batch. The index of a sample is the number of its row
    /// in the data set.
    fn samples(&self, py: Python<'_>, batch: &TableBatch, column: &str) -> PyResult<Batch> {
        wait_detached(py, || self.monitor.samples(&batch.0, column)).map(Batch::from)
    }

    /// Rows of this rank that are left in the epoch.
    fn __len__(&self) -> usize {
        usize::try_from(self.rows).unwrap_or(usize::MAX)
    }

    /// Batches of this rank that are left in the epoch.
    #[getter]
    const fn batches(&self) -> u64 {
        self.batches
    }

    /// The most batches that a rank has left in the epoch; the same on every rank.
    #[getter]
    const fn most_batches(&self) -> u64 {
        self.most_batches
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.columns.clone()
    }

    /// Number of steps that run at the gateway.
    #[getter]
    const fn stage(&self) -> usize {
        self.stage
    }

    /// Counts so far, as JSON.
    fn stats_json(&self) -> String {
        stats_json(&self.monitor.stats())
    }

    /// What the planner has observed, for the next reader of the same data; `None` before the first plan and in other modes than auto.
    fn observations(&self) -> Option<RowObservations> {
        self.monitor.observations().map(RowObservations)
    }

    /// Cancels everything in flight, and waits until all threads have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.live.close(py, |reader| async move { drop(reader) })
    }
}
