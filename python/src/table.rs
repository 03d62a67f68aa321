//! Tables, and a live reader of rows.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pushdown::wire::{Compression, TableDecoder, TableEncoder, TableForm};
use pushdown_client::{
    reader::TailCounts,
    table::{RowGroupSamples, RowId, TableMonitor, TableReader as Rows},
};
use pyo3::{
    buffer::PyBuffer,
    prelude::*,
    types::{PyBytes, PyCapsule},
};
use pyo3_arrow::PyTable;

use crate::{
    batch::Batch,
    column::{column, values},
    error::config,
    live::Live,
    objects::Objects,
    pickle::{self, Pickled},
    reader::{Observations, mode_name, stats_json},
    runtime::wait_detached,
    settings::{self, Keys},
    tensor::{Tensor, to_vec},
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

    /// The table as the value of a sample.
    pub(crate) fn to_value(&self) -> PyResult<pushdown::Table> {
        let table = pushdown::Table::new(SchemaRef::clone(&self.schema), self.batches.clone());
        table.map_err(|error| config(error.to_string()))
    }

    /// The rows as an Arrow IPC stream.
    fn encoded(&self) -> pushdown::Result<Vec<u8>> {
        let form = TableForm::ArrowStream(Compression::None);
        let mut encoder = TableEncoder::new(form, &self.schema)?;
        let mut stream = Vec::new();
        for batch in &self.batches {
            stream.extend(encoder.write(batch)?);
        }
        stream.extend(encoder.finish()?);
        Ok(stream.concat())
    }

    /// The rows of an Arrow IPC stream.
    fn decoded(stream: Vec<u8>) -> pushdown::Result<Self> {
        let mut decoder = TableDecoder::new();
        let batches = decoder.push(stream.into())?;
        Ok(Self::new(decoder.finish()?, batches))
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
    /// The rows of an Arrow IPC stream.
    #[new]
    fn py_new(py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<Self> {
        let stream = to_vec(py, stream)?;
        let table = py.detach(|| Self::decoded(stream));
        table.map_err(|error| config(format!("invalid table: {error}")))
    }

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

    /// The table itself, whose rows never change.
    const fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The table itself, whose rows never change.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Pickles as an Arrow IPC stream, which may travel out of band with protocol 5.
    fn __reduce_ex__<'py>(
        slf: &Bound<'py, Self>,
        protocol: u8,
    ) -> PyResult<Pickled<'py, (Bound<'py, PyAny>,)>> {
        let (py, table) = (slf.py(), slf.get());
        let stream = py.detach(|| table.encoded());
        let stream = stream.map_err(|error| config(format!("cannot pickle the table: {error}")))?;
        let stream = pickle::memory(PyBytes::new(py, &stream).as_any(), protocol)?;
        Ok((slf.get_type(), (stream,)))
    }
}

/// Rows that are consecutive in the order of the epoch.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct TableBatch(pushdown_client::table::TableBatch);

#[pymethods]
impl TableBatch {
    /// A batch from the parts that `__reduce__` returns.
    #[new]
    fn py_new(
        number: usize,
        table: &Table,
        objects: &Bound<'_, Tensor>,
        rows: &Bound<'_, Tensor>,
        position: &Bound<'_, Tensor>,
    ) -> PyResult<Self> {
        let (objects, rows, positions) = (numbers(objects)?, numbers(rows)?, numbers(position)?);
        let counts = [objects.len(), rows.len(), positions.len()];
        if counts != [table.num_rows(); 3] {
            return Err(config(format!(
                "invalid batch: expected {} rows, found {counts:?} objects, rows and positions",
                table.num_rows()
            )));
        }
        let records = match table.batches.as_slice() {
            [records] => records.clone(),
            [] => RecordBatch::new_empty(SchemaRef::clone(&table.schema)),
            parts => {
                return Err(config(format!(
                    "invalid batch: expected one record batch, found {}",
                    parts.len()
                )));
            }
        };
        let ids = objects.into_iter().zip(rows);
        let ids = ids.map(|(object, row)| RowId {
            object: usize::try_from(object).unwrap_or(usize::MAX),
            row,
        });
        Ok(Self(pushdown_client::table::TableBatch {
            number,
            rows: records,
            ids: ids.collect(),
            positions,
        }))
    }

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

    /// The batch itself, which never changes.
    const fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The batch itself, which never changes.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Pickles with its rows.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py, Arguments>> {
        let batch = slf.get();
        let arguments = (
            batch.number(),
            batch.table(),
            batch.objects()?,
            batch.rows()?,
            batch.position()?,
        );
        Ok((slf.get_type(), arguments))
    }
}

/// The arguments of the constructor of a batch.
type Arguments = (usize, Table, Tensor, Tensor, Tensor);

/// Whole numbers of at least 0 in a tensor.
fn numbers(tensor: &Bound<'_, Tensor>) -> PyResult<Vec<u64>> {
    let values: Vec<i64> = PyBuffer::get(tensor.as_any())?.to_vec(tensor.py())?;
    let numbers = values.into_iter().map(u64::try_from);
    let numbers = numbers.collect::<Result<_, _>>();
    numbers.map_err(|_| config("invalid batch: expected numbers of at least 0, found a negative one"))
}

/// A reader of rows whose threads live until `close`, or until it is dropped.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct TableReader {
    live: Live<Rows>,
    monitor: TableMonitor,
    counts: Counts,
    footers: pushdown_client::table::Footers,
}

/// What a rank has left in the epoch.
#[derive(Debug)]
struct Counts {
    /// Those of the whole data set.
    row_groups: Vec<RowGroupSamples>,
    rows: u64,
    batches: u64,
    /// The most batches that a rank has.
    most_batches: u64,
    tail: TailCounts,
}

/// What a reader of rows has read of the ends of its objects.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Footers(pushdown_client::table::Footers);

#[pymethods]
impl TableReader {
    /// Starts threads, reads the footers that are not known, and evaluates the condition.
    #[new]
    #[pyo3(signature = (spec_json, credentials, objects, observations = None, footers = None))]
    fn new(
        py: Python<'_>,
        spec_json: &str,
        credentials: Option<Keys>,
        objects: &Objects,
        observations: Option<&Observations>,
        footers: Option<&Footers>,
    ) -> PyResult<Self> {
        let mut builder = settings::reader(spec_json, credentials, objects)?;
        if let Some(known) = observations {
            builder = builder.observations(known.get().clone());
        }
        if let Some(known) = footers {
            builder = builder.footers(known.0.clone());
        }
        let describe = |reader: &Rows| {
            let counts = Counts {
                row_groups: reader.row_groups(),
                rows: reader.len(),
                batches: reader.batches(),
                most_batches: reader.most_batches(),
                tail: reader.tail_counts(),
            };
            (reader.monitor(), counts, reader.footers())
        };
        let (live, (monitor, counts, footers)) = Live::start(py, || builder.build_table(), describe)?;
        Ok(Self {
            live,
            monitor,
            counts,
            footers,
        })
    }

    /// The next batch; `None` after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<TableBatch>> {
        Ok(self.live.next(py)?.map(TableBatch))
    }

    /// The values of a batch that `each` computed in a column, as the samples of a batch. The index of a sample is the number of its row
    /// in the data set.
    fn samples(&self, py: Python<'_>, batch: &TableBatch, column: &str) -> PyResult<Batch> {
        wait_detached(py, || self.monitor.samples(&batch.0, column)).map(Batch::from)
    }

    /// Rows of this rank that are left in the epoch.
    fn __len__(&self) -> usize {
        usize::try_from(self.counts.rows).unwrap_or(usize::MAX)
    }

    /// Batches of this rank that are left in the epoch.
    #[getter]
    const fn batches(&self) -> u64 {
        self.counts.batches
    }

    /// The most batches that a rank has left in the epoch; the same on every rank.
    #[getter]
    const fn most_batches(&self) -> u64 {
        self.counts.most_batches
    }

    /// The row groups with samples, in the order of the data set: index of the object, number in the data set of the object's first row,
    /// and number of samples.
    #[getter]
    fn row_groups(&self) -> Vec<(usize, u64, u64)> {
        let groups = self.counts.row_groups.iter();
        groups
            .map(|group| (group.object, group.first_row, group.samples))
            .collect()
    }

    /// Rows that the tail policy drops and repeats, over all ranks.
    #[getter]
    const fn tail_counts(&self) -> (usize, usize) {
        (self.counts.tail.dropped, self.counts.tail.repeated)
    }

    /// The mode in force: "auto", "pushdown" or "plain".
    #[getter]
    fn mode(&self) -> &'static str {
        mode_name(self.monitor.mode())
    }

    /// Counts so far, as JSON.
    fn stats_json(&self) -> String {
        stats_json(self.monitor.as_reader_monitor())
    }

    /// The plan in force, for people; `None` before the first one, in other modes than auto, and once all rows are read plainly.
    fn plan(&self) -> Option<String> {
        self.monitor.plan().map(|plan| plan.to_string())
    }

    /// What the planner has observed, for the next reader of the same data; `None` before the first plan and in other modes than auto.
    fn observations(&self) -> Option<Observations> {
        self.monitor.observations().map(Observations::from)
    }

    /// What it has read of the ends of its objects, for the next reader of them.
    fn footers(&self) -> Footers {
        Footers(self.footers.clone())
    }

    /// Cancels everything in flight, and waits until all threads have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.live.close(py, |reader| async move { drop(reader) })
    }
}
