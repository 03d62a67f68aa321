//! The parts of which pickles of batches consist.

use arrow_buffer::Buffer;
use pushdown::{Sample, Tensor as Value, wire::RowError};
use pushdown_client::reader::{Batch, Row};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{
    error::config,
    table::Table,
    tensor::{Tensor, to_vec},
};

/// What a row is, without its value: position, index, key, member, whether it is padding, stage, and contents of the further columns.
pub(super) type RowParts = (
    u64,
    usize,
    String,
    Option<String>,
    bool,
    u8,
    Vec<Option<Py<PyBytes>>>,
);

/// Row, code and message of an error.
pub(crate) type ErrorParts = (usize, String, String);

/// The parts of rows but for their values.
pub(super) fn split(py: Python<'_>, rows: &[Row]) -> (Vec<RowParts>, Vec<ErrorParts>) {
    let parts = rows.iter().map(|row| {
        (
            row.position,
            row.index,
            row.key.to_string(),
            row.member.as_deref().map(str::to_owned),
            row.is_padding,
            row.stage,
            row.columns
                .iter()
                .map(|content| Some(PyBytes::new(py, content.as_ref()?).unbind()))
                .collect(),
        )
    });
    let errors = rows.iter().enumerate().filter_map(|(index, row)| {
        let error = row.value.as_ref().err()?;
        Some((index, error.code.clone(), error.message.clone()))
    });
    (parts.collect(), errors.collect())
}

/// The batch of these parts. `values`: a tensor with an entry for each row, or a list with `None` where a row has an error.
pub(super) fn join(
    number: usize,
    rows: Vec<RowParts>,
    values: &Bound<'_, PyAny>,
    errors: Vec<ErrorParts>,
) -> PyResult<Batch> {
    let py = values.py();
    let values = match values.cast::<Tensor>() {
        Ok(stacked) => entries(stacked, rows.len())?,
        Err(_) => listed(values.cast::<PyList>()?, rows.len())?,
    };
    let mut errors = errors.into_iter().peekable();
    let rows = rows.into_iter().zip(values).enumerate();
    let rows = rows.map(|(number, (row, value))| {
        let (position, index, key, member, is_padding, stage, columns) = row;
        let value = match (errors.next_if(|(row, ..)| *row == number), value) {
            (Some((_, code, message)), _) => Err(RowError::new(code, message)),
            (None, Some(value)) => Ok(value),
            (None, None) => {
                return Err(config(format!(
                    "invalid batch: row {number} has neither a value nor an error"
                )));
            }
        };
        let content = |content: Option<Py<PyBytes>>| content.map(|bytes| bytes.as_bytes(py).to_vec().into());
        Ok(Row {
            position,
            index,
            key: key.into(),
            member: member.map(Into::into),
            is_padding,
            stage,
            value,
            columns: columns.into_iter().map(content).collect(),
        })
    });
    Ok(Batch::new(number, rows.collect::<PyResult<_>>()?))
}

/// The values in a list, one for each row.
fn listed(values: &Bound<'_, PyList>, rows: usize) -> PyResult<Vec<Option<Sample>>> {
    check_count(values.len(), rows)?;
    let value = |value: Bound<'_, PyAny>| (!value.is_none()).then(|| sample(&value)).transpose();
    values.iter().map(value).collect()
}

fn check_count(found: usize, expected: usize) -> PyResult<()> {
    if found == expected {
        return Ok(());
    }
    Err(config(format!(
        "invalid batch: expected {expected} values, found {found}"
    )))
}

/// A value from its object.
fn sample(value: &Bound<'_, PyAny>) -> PyResult<Sample> {
    if let Ok(table) = value.cast::<Table>() {
        return Ok(Sample::Table(table.get().to_value()?));
    }
    let Ok(tensor) = value.cast::<Tensor>() else {
        return Ok(Sample::Bytes(to_vec(value.py(), value)?.into()));
    };
    let scales = tensor.get().scale_values(value.py())?;
    let memory = Buffer::from_vec(to_vec(value.py(), value)?);
    entry(
        tensor.get(),
        tensor.get().sizes(),
        memory,
        scales.and_then(|scales| scales.first().copied()),
    )
}

/// The entries of a tensor along its first axis, one for each row. They share the memory of one copy.
fn entries(stacked: &Bound<'_, Tensor>, rows: usize) -> PyResult<Vec<Option<Sample>>> {
    let (py, tensor) = (stacked.py(), stacked.get());
    let [count, shape @ ..] = tensor.sizes() else {
        return Err(config(
            "invalid batch: expected stacked values, found a tensor without axes",
        ));
    };
    check_count(*count, rows)?;
    let memory = Buffer::from_vec(to_vec(py, stacked.as_any())?);
    let bytes = memory.len() / rows.max(1);
    let scales = tensor.scale_values(py)?;
    let scale = |row: usize| scales.as_ref().and_then(|scales| scales.get(row).copied());
    let part = |row: usize| memory.slice_with_length(row * bytes, bytes);
    (0..rows)
        .map(|row| entry(tensor, shape, part(row), scale(row)).map(Some))
        .collect()
}

/// A value of this shape, with the dtype and the layout of a tensor.
fn entry(tensor: &Tensor, shape: &[usize], memory: Buffer, scale: Option<f32>) -> PyResult<Sample> {
    let dtype = tensor.element().value_type().ok_or_else(|| {
        config(format!(
            "invalid batch: expected values of a dtype that pipelines have, found {}",
            tensor.element().name()
        ))
    })?;
    let value = Value::new(dtype, tensor.axes(), shape.to_vec(), memory);
    let value = value.map_err(|error| config(error.to_string()))?;
    Ok(Sample::Tensor(value.with_scale(scale)))
}
