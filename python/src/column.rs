//! Columns of tables as arrays.

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray as _};
use arrow_buffer::MutableBuffer;
use arrow_schema::{DataType, Field, SchemaRef};
use pyo3::{IntoPyObjectExt as _, prelude::*, types::PyList};

use crate::{
    error::config,
    tensor::{ElementType, Tensor},
    values::Converter,
};

/// A column without nulls of numbers, or of fixed-size lists of numbers, nested ones too, as one array `[n, ...]`. Any other as a list of Python
/// objects.
pub(crate) fn column<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (field, arrays) = find(schema, batches, name)?;
    match dense(field, &arrays)? {
        Some(tensor) => tensor.into_bound_py_any(py),
        None => Ok(PyList::new(py, objects(py, field, &arrays)?)?.into_any()),
    }
}

/// The Python objects of a column.
pub(crate) fn values<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    name: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (field, arrays) = find(schema, batches, name)?;
    objects(py, field, &arrays)
}

fn objects<'py>(py: Python<'py>, field: &Field, arrays: &[&ArrayRef]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let converter = Converter {
        py,
        column: field.name(),
    };
    let objects = arrays.iter().map(|array| converter.objects(field, array));
    Ok(objects.collect::<PyResult<Vec<_>>>()?.concat())
}

fn find<'a>(
    schema: &'a SchemaRef,
    batches: &'a [RecordBatch],
    name: &str,
) -> PyResult<(&'a Field, Vec<&'a ArrayRef>)> {
    let Ok(index) = schema.index_of(name) else {
        let names: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        return Err(config(format!(
            "no column `{name}`, expected one of: {}",
            names.join(", ")
        )));
    };
    let arrays = batches.iter().map(|batch| batch.column(index)).collect();
    Ok((schema.field(index), arrays))
}

/// The values as one array, if they are numbers without nulls.
fn dense(field: &Field, arrays: &[&ArrayRef]) -> PyResult<Option<Tensor>> {
    let (mut inner, mut sizes) = (field, Vec::new());
    while let DataType::FixedSizeList(item, size) = inner.data_type() {
        let Some(shape) = tensor_shape(inner, *size) else {
            return Ok(None);
        };
        (inner, sizes) = (item, [sizes, shape].concat());
    }
    let Some(element) = element_type(inner.data_type()) else {
        return Ok(None);
    };
    let rows = arrays.iter().map(Array::len).sum();
    let mut memory = MutableBuffer::new(0);
    for array in arrays {
        let mut values = ArrayRef::clone(array);
        while let Some(list) = values.as_fixed_size_list_opt() {
            if list.null_count() > 0 {
                return Ok(None);
            }
            let width = usize::try_from(list.value_length()).unwrap_or_default();
            values = list.values().slice(list.offset() * width, list.len() * width);
        }
        if values.null_count() > 0 {
            return Ok(None);
        }
        let data = values.to_data();
        let (start, bytes) = (data.offset() * element.bytes(), data.len() * element.bytes());
        let elements = data
            .buffers()
            .first()
            .and_then(|buffer| buffer.get(start..start + bytes));
        let Some(elements) = elements else {
            return Ok(None);
        };
        memory.extend_from_slice(elements);
    }
    let shape = std::iter::once(rows).chain(sizes).collect();
    Tensor::new(element, shape, memory).map(Some)
}

/// The shape of each value of a fixed-size list: that of a tensor, or its length.
fn tensor_shape(field: &Field, size: i32) -> Option<Vec<usize>> {
    let size = usize::try_from(size).ok()?;
    let metadata = field.metadata().get("ARROW:extension:metadata");
    let shape = metadata
        .and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
        .and_then(|value| serde_json::from_value::<Vec<usize>>(value.get("shape")?.clone()).ok())
        .filter(|shape| {
            shape
                .iter()
                .try_fold(1, |product: usize, side| product.checked_mul(*side))
                == Some(size)
        });
    Some(shape.unwrap_or_else(|| vec![size]))
}

const fn element_type(item: &DataType) -> Option<ElementType> {
    match item {
        DataType::UInt8 => Some(ElementType::U8),
        DataType::Int8 => Some(ElementType::I8),
        DataType::Int32 => Some(ElementType::I32),
        DataType::Int64 => Some(ElementType::I64),
        DataType::Float16 => Some(ElementType::F16),
        DataType::Float32 => Some(ElementType::F32),
        DataType::Float64 => Some(ElementType::F64),
        _ => None,
    }
}
