//! Conversion between samples and the column `value`.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, LargeBinaryArray, RecordBatch, StructArray,
    builder::{Float32Builder, Int64Builder, ListBuilder, StringBuilder},
    cast::AsArray as _,
    new_null_array,
    types::{Float32Type, Int64Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};

use super::{
    MAX_COLUMN_BYTES,
    schema::{SCALE, VALUE, ValueType, any_fields},
};
use crate::{
    arrow::tensor,
    ipc,
    shape::{Shape, parse},
    table,
};
use pushdown_core::{Error, Limits, Result, Sample};

/// The columns `value` and, for quantised values, `scale` of successful rows.
pub(super) fn successful_rows(value_type: &ValueType, samples: Vec<Sample>) -> Result<Vec<ArrayRef>> {
    let rows = samples.len();
    match value_type {
        ValueType::Fixed(fixed) => {
            let mut scales = Float32Builder::new();
            let mut pieces = Vec::with_capacity(rows);
            for sample in samples {
                let (shape, elements) = Shape::split(sample).map_err(|_| wrong_type())?;
                if !fixed.matches(&shape) {
                    return Err(wrong_type());
                }
                scales.append_option(shape.scale);
                pieces.push(elements);
            }
            let mut columns = vec![tensor::array(&fixed.unscaled(), concat(pieces), rows, None)?];
            if fixed.quantized {
                columns.push(Arc::new(scales.finish()));
            }
            Ok(columns)
        }
        ValueType::Bytes => {
            let pieces = samples.into_iter().map(|sample| match sample {
                Sample::Bytes(bytes) => Ok(Buffer::from(bytes)),
                Sample::CroppedJpeg(crop) => Ok(Buffer::from(crop.into_bytes())),
                _ => Err(wrong_type()),
            });
            Ok(vec![Arc::new(binary(pieces.collect::<Result<_>>()?)?)])
        }
        ValueType::Any => Ok(vec![Arc::new(any(samples)?)]),
    }
}

/// The same columns of `rows` rows without values. Arrays are as long as those of rows with values, as Arrow requires.
pub(super) fn rows_without_values(value_type: &ValueType, rows: usize) -> Result<Vec<ArrayRef>> {
    Ok(match value_type {
        ValueType::Fixed(fixed) => {
            let shape = fixed.unscaled();
            let bytes = shape.elements().unwrap_or_default() * shape.dtype.size() * rows;
            let elements = Buffer::from(vec![0_u8; bytes]);
            let mut columns = vec![tensor::array(
                &shape,
                elements,
                rows,
                Some(NullBuffer::new_null(rows)),
            )?];
            if fixed.quantized {
                columns.push(new_null_array(&arrow_schema::DataType::Float32, rows));
            }
            columns
        }
        ValueType::Bytes => vec![new_null_array(&arrow_schema::DataType::LargeBinary, rows)],
        ValueType::Any => {
            let empty = Sample::Bytes(bytes::Bytes::new());
            let (fields, columns, _) = any(vec![empty; rows])?.into_parts();
            let nulls = Some(NullBuffer::new_null(rows));
            vec![Arc::new(
                StructArray::try_new(fields, columns, nulls).map_err(ipc::internal)?,
            )]
        }
    })
}

/// Bytes of a failed row in the columns of [`rows_without_values`].
pub(super) fn failed_row_bytes(value_type: &ValueType) -> usize {
    match value_type {
        ValueType::Fixed(fixed) => fixed
            .unscaled()
            .elements()
            .map_or(usize::MAX, |elements| elements.saturating_mul(fixed.dtype.size())),
        ValueType::Bytes | ValueType::Any => 0,
    }
}

/// Checks that a row of an answer without values has none. Its value is read as empty bytes.
pub(super) fn check_no_value(batch: &RecordBatch, row: usize) -> Result<Sample> {
    if batch.column(VALUE).is_null(row) {
        return Ok(Sample::Bytes(bytes::Bytes::new()));
    }
    Err(Error::wire(
        "invalid row: expected no value, because the request has `deliver: false`, found one",
    ))
}

/// The sample in a row of a batch answer. Tensors and bytes share the memory of the batch.
pub(super) fn sample(
    value_type: &ValueType,
    batch: &RecordBatch,
    row: usize,
    limits: &Limits,
) -> Result<Sample> {
    let column = batch.column(VALUE);
    if column.is_null(row) {
        return Err(Error::wire("invalid row: neither a value nor an error"));
    }
    match value_type {
        ValueType::Fixed(fixed) => {
            let mut shape = fixed.unscaled();
            let elements = tensor::elements(column, &shape, row)?;
            if fixed.quantized {
                let scales = batch.column(SCALE).as_primitive_opt::<Float32Type>();
                let scale = scales
                    .filter(|scales| scales.is_valid(row))
                    .map(|scales| scales.value(row));
                shape.scale = Some(scale.ok_or_else(|| Error::wire("invalid quantised value: no scale"))?);
            }
            shape.into_sample(elements, limits)
        }
        ValueType::Bytes => bytes(column, row, value_limit(limits)).map(Sample::Bytes),
        ValueType::Any => read_any(column, row, limits),
    }
}

/// A column of values of different kinds.
fn any(samples: Vec<Sample>) -> Result<StructArray> {
    let (mut kinds, mut dtypes, mut layouts) =
        (StringBuilder::new(), StringBuilder::new(), StringBuilder::new());
    let (mut shapes, mut scales) = (ListBuilder::new(Int64Builder::new()), Float32Builder::new());
    let mut pieces = Vec::with_capacity(samples.len());
    for sample in samples {
        match Shape::split(sample) {
            Ok((shape, elements)) => {
                shape.check_axes()?;
                kinds.append_value(if shape.image { "image" } else { "tensor" });
                dtypes.append_value(shape.dtype.name());
                layouts.append_value(shape.layout.name());
                let extents = shape.extents.iter().map(|extent| i64::try_from(*extent).ok());
                shapes.append_value(extents);
                scales.append_option(shape.scale);
                pieces.push(elements);
            }
            Err(other) => {
                let (kind, data) = match other {
                    Sample::Table(table) => ("table", joined(table::encode(&table)?)),
                    Sample::Bytes(bytes) => ("bytes", Buffer::from(bytes)),
                    Sample::CroppedJpeg(crop) => ("bytes", Buffer::from(crop.into_bytes())),
                    Sample::Image(_) | Sample::Tensor(_) => return Err(wrong_type()),
                };
                kinds.append_value(kind);
                dtypes.append_null();
                layouts.append_null();
                shapes.append_null();
                scales.append_null();
                pieces.push(data);
            }
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kinds.finish()),
        Arc::new(dtypes.finish()),
        Arc::new(shapes.finish()),
        Arc::new(layouts.finish()),
        Arc::new(scales.finish()),
        Arc::new(binary(pieces)?),
    ];
    StructArray::try_new(any_fields(), columns, None).map_err(ipc::internal)
}

fn read_any(column: &ArrayRef, row: usize, limits: &Limits) -> Result<Sample> {
    let invalid = |missing: &str| Error::wire(format!("invalid value: no {missing}"));
    let [kinds, dtypes, shapes, layouts, scales, data] =
        column.as_struct_opt().map_or(&[][..], StructArray::columns)
    else {
        return Err(invalid("columns"));
    };
    let text = |column: &'_ ArrayRef| {
        let texts = column.as_string_opt::<i32>()?;
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let kind = text(kinds).ok_or_else(|| invalid("kind"))?;
    let data = bytes(data, row, value_limit(limits))?;
    match kind.as_str() {
        "bytes" => return Ok(Sample::Bytes(data)),
        "table" => return table::decode(data, limits).map(Sample::Table),
        _ => {}
    }
    let extents = shapes
        .as_list_opt::<i32>()
        .filter(|lists| lists.is_valid(row))
        .map(|lists| lists.value(row));
    let extents = extents.ok_or_else(|| invalid("shape"))?;
    let extents = extents
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| invalid("shape"))?;
    let extents = extents
        .iter()
        .map(|extent| extent.and_then(|extent| usize::try_from(extent).ok()));
    let scales = scales
        .as_primitive_opt::<Float32Type>()
        .ok_or_else(|| invalid("scale"))?;
    let shape = Shape {
        dtype: parse("dtype", &text(dtypes).ok_or_else(|| invalid("dtype"))?)?,
        layout: parse("layout", &text(layouts).ok_or_else(|| invalid("layout"))?)?,
        extents: extents.collect::<Option<_>>().ok_or_else(|| invalid("shape"))?,
        scale: scales.is_valid(row).then(|| scales.value(row)),
        image: match kind.as_str() {
            "image" => true,
            "tensor" => false,
            _ => return Err(Error::wire(format!("invalid value: unknown kind {kind:?}"))),
        },
    };
    shape.into_sample(Buffer::from(data), limits)
}

/// A binary column with one value per piece.
fn binary(pieces: Vec<Buffer>) -> Result<LargeBinaryArray> {
    let offsets = OffsetBuffer::from_lengths(pieces.iter().map(Buffer::len));
    LargeBinaryArray::try_new(offsets, concat(pieces), None).map_err(ipc::internal)
}

/// The further columns of a row, without a copy.
pub(super) fn further_columns(batch: &RecordBatch, row: usize) -> Result<Vec<Option<bytes::Bytes>>> {
    let mut left = MAX_COLUMN_BYTES;
    let content = |column: &ArrayRef| -> Result<Option<bytes::Bytes>> {
        if column.is_null(row) {
            return Ok(None);
        }
        let content = bytes(column, row, left)?;
        left -= content.len() as u64;
        Ok(Some(content))
    };
    batch.columns().iter().map(content).collect()
}

/// Maximum bytes of a value.
fn value_limit(limits: &Limits) -> u64 {
    limits.max_object_bytes.max(limits.max_value_bytes)
}

/// A row of a binary column of at most `limit` bytes, without a copy.
fn bytes(column: &ArrayRef, row: usize, limit: u64) -> Result<bytes::Bytes> {
    let missing = || Error::wire("invalid row: no bytes");
    let array = column
        .as_binary_opt::<i64>()
        .filter(|array| array.is_valid(row))
        .ok_or_else(missing)?;
    let [start, end, ..] = array.value_offsets().get(row..).unwrap_or_default() else {
        return Err(missing());
    };
    // Arrow has checked that offsets are ascending and within the buffer.
    let (Ok(start), Ok(end)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(missing());
    };
    if (end - start) as u64 > limit {
        return Err(Error::too_large(format!(
            "the value is too large: expected at most {limit} bytes, found {}",
            end - start
        )));
    }
    Ok(ipc::share(array.values().slice_with_length(start, end - start)))
}

/// Concatenates pieces. This is the only copy of the values of an answer; a single piece is not copied.
fn concat(mut pieces: Vec<Buffer>) -> Buffer {
    if pieces.len() == 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut joined = Vec::with_capacity(pieces.iter().map(Buffer::len).sum());
    for piece in pieces {
        joined.extend_from_slice(&piece);
    }
    Buffer::from_vec(joined)
}

fn joined(parts: Vec<bytes::Bytes>) -> Buffer {
    concat(parts.into_iter().map(Buffer::from).collect())
}

fn wrong_type() -> Error {
    Error::internal("a value does not have the type that the pipeline determines for its stage")
}
