//! Columns of tables as arrays.

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray as _, types};
use arrow_buffer::MutableBuffer;
use arrow_schema::{DataType, Field, SchemaRef};
use pyo3::{
    IntoPyObjectExt as _,
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{
    error::config,
    tensor::{ElementType, Tensor},
};

/// A column without nulls of numbers, or of fixed-size lists of numbers, as one array `[n, ...]`. Texts, binaries, booleans and numbers
/// with nulls as a list.
pub(crate) fn column<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
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
    let field = schema.field(index);
    let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
    if let Some(tensor) = dense(field, &arrays)? {
        return tensor.into_bound_py_any(py);
    }
    let list = PyList::empty(py);
    for array in arrays {
        for row in 0..array.len() {
            list.append(object(py, field, array, row)?)?;
        }
    }
    Ok(list.into_any())
}

/// The values as one array, if they are numbers without nulls.
fn dense(field: &Field, arrays: &[&ArrayRef]) -> PyResult<Option<Tensor>> {
    let (item, sizes) = match field.data_type() {
        DataType::FixedSizeList(item, size) => (item.data_type(), tensor_shape(field, *size)),
        item => (item, Some(Vec::new())),
    };
    let (Some(element), Some(sizes)) = (element_type(item), sizes) else {
        return Ok(None);
    };
    let rows = arrays.iter().map(Array::len).sum();
    let mut memory = MutableBuffer::new(0);
    for array in arrays {
        let values = match array.as_fixed_size_list_opt() {
            Some(list) => {
                let width = usize::try_from(list.value_length()).unwrap_or_default();
                list.values().slice(list.offset() * width, list.len() * width)
            }
            None => ArrayRef::clone(array),
        };
        if array.null_count() > 0 || values.null_count() > 0 {
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

/// One value of a column that is no array.
fn object<'py>(py: Python<'py>, field: &Field, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Utf8View => array.as_string_view().value(row).into_bound_py_any(py),
        DataType::Int8 => array
            .as_primitive::<types::Int8Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Int16 => array
            .as_primitive::<types::Int16Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Int32 => array
            .as_primitive::<types::Int32Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Int64 => array
            .as_primitive::<types::Int64Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::UInt8 => array
            .as_primitive::<types::UInt8Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::UInt16 => array
            .as_primitive::<types::UInt16Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::UInt32 => array
            .as_primitive::<types::UInt32Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::UInt64 => array
            .as_primitive::<types::UInt64Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Float16 => array
            .as_primitive::<types::Float16Type>()
            .value(row)
            .to_f32()
            .into_bound_py_any(py),
        DataType::Float32 => array
            .as_primitive::<types::Float32Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Float64 => array
            .as_primitive::<types::Float64Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, array.as_binary_view().value(row)).into_any()),
        other => Err(config(format!(
            "the column `{}` is {other}, which has no plain form: use the table, for instance with pyarrow.table(batch.table)",
            field.name()
        ))),
    }
}
