//! Batches: what rows are, and their values as arrays.

mod parts;

use std::sync::Arc;

use arrow_buffer::MutableBuffer;
use pushdown::{Layout, Sample};
use pushdown_client::reader::{Row, StackLayout};
use pyo3::{IntoPyObjectExt as _, prelude::*, types::PyBytes};

pub(crate) use self::parts::ErrorParts;
use self::parts::RowParts;
use crate::{
    error::{FailedSample, config, failed_sample, internal, native},
    pickle::Pickled,
    shard_reader::ShardsRead,
    table::Table,
    tensor::{ElementType, Tensor, write_to},
};

/// Samples that are consecutive in the order of the epoch.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Batch {
    batch: Arc<pushdown_client::reader::Batch>,
    /// Of a reader of shards: its state after the batch.
    shards_read: Option<Arc<pushdown_client::shards::ShardsRead>>,
}

impl From<pushdown_client::reader::Batch> for Batch {
    fn from(batch: pushdown_client::reader::Batch) -> Self {
        Self {
            batch: Arc::new(batch),
            shards_read: None,
        }
    }
}

impl Batch {
    /// A batch of a reader of shards, and the state after it.
    pub(crate) fn of_shards(
        batch: pushdown_client::reader::Batch,
        shards_read: pushdown_client::shards::ShardsRead,
    ) -> Self {
        Self {
            batch: Arc::new(batch),
            shards_read: Some(Arc::new(shards_read)),
        }
    }

    fn rows(&self) -> &[Row] {
        self.batch.rows()
    }

    /// The batch of the client.
    pub(crate) fn inner(&self) -> &pushdown_client::reader::Batch {
        &self.batch
    }

    /// The batch with other rows.
    pub(crate) fn with_rows(&self, batch: pushdown_client::reader::Batch) -> Self {
        Self {
            batch: Arc::new(batch),
            shards_read: self.shards_read.clone(),
        }
    }
}

#[pymethods]
impl Batch {
    /// A batch from the parts that `__reduce_ex__` returns: `values` has one entry per row, stacked or in a list. `shards_read` is JSON.
    #[new]
    #[pyo3(signature = (number, rows, values, errors, shards_read = None))]
    fn py_new(
        number: usize,
        rows: Vec<RowParts>,
        values: &Bound<'_, PyAny>,
        errors: Vec<ErrorParts>,
        shards_read: Option<&str>,
    ) -> PyResult<Self> {
        let shards_read = shards_read.map(ShardsRead::from_json).transpose()?;
        Ok(Self {
            batch: Arc::new(parts::join(number, rows, values, errors)?),
            shards_read: shards_read.map(ShardsRead::into_shared),
        })
    }

    /// Number of the batch within this reader's share, from 0.
    #[getter]
    fn number(&self) -> usize {
        self.batch.number()
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    /// Key of each row's object, or of its shard.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.rows().iter().map(|row| row.key.as_ref()).collect()
    }

    /// Name of the member that each row is; `None` for a whole object.
    #[getter]
    fn members(&self) -> Vec<Option<&str>> {
        self.rows().iter().map(|row| row.member.as_deref()).collect()
    }

    /// Name of each row's sample: the key, or the key of the shard and the name of the member.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.rows().iter().map(|row| row.name().to_string()).collect()
    }

    /// Contents of a further column, by its index in the columns of the data set, of each row that has a value: the number of the row, and
    /// its content or `None`.
    fn column<'py>(&self, py: Python<'py>, index: usize) -> Vec<(usize, Option<Bound<'py, PyBytes>>)> {
        let rows = self.rows().iter().enumerate();
        let rows = rows.filter(|(_, row)| row.value.is_ok());
        rows.map(|(number, row)| {
            let content = row.columns.get(index).and_then(Option::as_ref);
            (number, content.map(|content| PyBytes::new(py, content)))
        })
        .collect()
    }

    /// Index of each row in the data set, `i64 [n]`.
    #[getter]
    fn index(&self) -> PyResult<Tensor> {
        let indices = self
            .rows()
            .iter()
            .map(|row| i64::try_from(row.index).unwrap_or(i64::MAX));
        Tensor::from_i64s(indices)
    }

    /// Position of each row in the order of the epoch over all ranks, `i64 [n]`.
    #[getter]
    fn position(&self) -> PyResult<Tensor> {
        let positions = self
            .rows()
            .iter()
            .map(|row| i64::try_from(row.position).unwrap_or(i64::MAX));
        Tensor::from_i64s(positions)
    }

    /// Whether each row has a value and is no padding, `bool [n]`.
    #[getter]
    fn valid(&self) -> PyResult<Tensor> {
        Tensor::from_bools(self.rows().iter().map(|row| row.value.is_ok() && !row.is_padding))
    }

    /// The samples without a value, in order: key, code and message of the error, position, row, and member or `None`.
    #[getter]
    fn errors(&self) -> Vec<FailedSample> {
        let rows = self.rows().iter().enumerate();
        rows.filter_map(|(number, row)| Some(failed_sample(number, row, row.value.as_ref().err()?)))
            .collect()
    }

    /// What its reader has read of the epoch with this batch; `None` but for readers of shards.
    #[getter]
    fn shards_read(&self) -> Option<ShardsRead> {
        self.shards_read.clone().map(ShardsRead::from)
    }

    /// The dtype and the shape of `stack`; `None` if no row has a value.
    fn stacked_shape(&self) -> PyResult<Option<(&'static str, Vec<usize>)>> {
        let layout = self.batch.row_layout().map_err(|error| native(&error))?;
        Ok(layout.map(|layout| (layout.dtype.name(), layout.shape)))
    }

    /// The values as one array `[n, ...]`, with zeros where a row has none; `None` if no row has a value.
    fn stack(&self, py: Python<'_>) -> PyResult<Option<Tensor>> {
        let stacked = py.detach(|| {
            let Some(layout) = self.batch.row_layout()? else {
                return Ok(None);
            };
            let mut memory = MutableBuffer::from_len_zeroed(layout.bytes);
            self.batch.stack_rows_into(memory.as_slice_mut())?;
            Ok(Some((layout, memory)))
        });
        let stacked = stacked.map_err(|error| native(&error))?;
        stacked
            .map(|(layout, memory)| of_layout(py, layout, memory))
            .transpose()
    }

    /// Copies the values, with zeros where a row has none, into a writable buffer of bytes.
    fn stack_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let written = write_to(py, buffer, |bytes| self.batch.stack_rows_into(bytes))?;
        match written.map_err(|error| native(&error))? {
            Some(_) => Ok(()),
            None => Err(config("cannot stack: no row has a value")),
        }
    }

    /// The value of each row, `None` where it has none.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let values = self.rows().iter().map(|row| row.value.as_ref().ok());
        values
            .map(|value| value.map(|value| value_object(py, value.clone())).transpose())
            .collect()
    }

    /// The batch itself, which never changes.
    const fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The batch itself, which never changes.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Pickles with its values, stacked where they can be.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, _protocol: u8) -> PyResult<Pickled<'py, Arguments<'py>>> {
        let (py, this) = (slf.py(), slf.get());
        let values = match this.batch.row_layout() {
            Ok(Some(_)) => this.stack(py)?.into_bound_py_any(py)?,
            // Values that differ, bytes, or no value at all.
            Ok(None) | Err(_) => this.values(py)?.into_bound_py_any(py)?,
        };
        let read = this.shards_read().map(|read| read.to_json()).transpose()?;
        let (rows, errors) = parts::split(py, this.rows());
        Ok((slf.get_type(), (this.number(), rows, values, errors, read)))
    }
}

/// The arguments of the constructor.
type Arguments<'py> = (
    usize,
    Vec<RowParts>,
    Bound<'py, PyAny>,
    Vec<ErrorParts>,
    Option<String>,
);

/// A tensor of stacked values.
fn of_layout(py: Python<'_>, layout: StackLayout, memory: MutableBuffer) -> PyResult<Tensor> {
    let StackLayout {
        dtype,
        layout,
        shape,
        scales,
        ..
    } = layout;
    Tensor::new(ElementType::from(dtype), shape, memory)?
        .with_layout(layout)
        .with_scales(py, scales.as_deref())
}

/// A value as a tensor, bytes or a table.
pub(crate) fn value_object(py: Python<'_>, value: Sample) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Sample::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        // A reader decodes it before it hands out a value.
        Sample::CroppedJpeg(_) => Err(internal("a cropped JPEG is no value")),
        Sample::Image(image) => {
            let shape = vec![image.height() as usize, image.width() as usize, 3];
            let memory = MutableBuffer::from(image.into_pixels());
            let tensor = Tensor::new(ElementType::U8, shape, memory)?.with_layout(Layout::Hwc);
            Ok(Bound::new(py, tensor)?.into_any())
        }
        Sample::Tensor(tensor) => {
            let mut memory = MutableBuffer::with_capacity(tensor.data().len());
            memory.extend_from_slice(tensor.data().as_slice());
            let scale = tensor.scale();
            let array = Tensor::new(ElementType::from(tensor.dtype()), tensor.shape().to_vec(), memory)?
                .with_layout(tensor.layout())
                .with_scales(py, scale.as_ref().map(std::slice::from_ref))?;
            Ok(Bound::new(py, array)?.into_any())
        }
        Sample::Table(table) => Ok(Bound::new(py, Table::from(table))?.into_any()),
    }
}
