//! Columns of arrays with the canonical extension type `arrow.fixed_shape_tensor`.
//!
//! The metadata of the field has the properties that the type lacks, under `pushdown.*`: layout, scale, kind, and dtype,
//! since Arrow has no bf16 and stores it as uint16.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array as _, ArrayRef, FixedSizeListArray, cast::AsArray as _, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{
    DataType, Field,
    extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY},
};
use serde::{Deserialize, Serialize};

use super::super::{header, ipc, shape::Shape};
use pushdown_core::{DType, Error, Result};

/// Name of the column with the values.
pub(crate) const VALUE: &str = "value";
/// Prefix in the metadata of Arrow fields and schemas; it replaces the prefix `x-pushdown-` of [`header`].
const PREFIX: &str = "pushdown.";
const EXTENSION: &str = "arrow.fixed_shape_tensor";

/// The metadata of the extension type. Permuted axes are not supported.
#[derive(Serialize, Deserialize)]
struct Extension {
    shape: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permutation: Option<Vec<usize>>,
}

/// The key in Arrow metadata for the HTTP header `name`.
pub(crate) fn key(name: &str) -> String {
    format!("{PREFIX}{}", name.trim_start_matches(header::PREFIX))
}

/// The nullable column `value` of arrays of this shape.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for more elements than Arrow supports.
pub(crate) fn field(shape: &Shape) -> Result<Field> {
    let extension = Extension {
        shape: shape.extents.clone(),
        permutation: None,
    };
    let extension = serde_json::to_string(&extension).map_err(|error| Error::internal(error.to_string()))?;
    let mut metadata: HashMap<String, String> = shape
        .metadata()
        .into_iter()
        .filter(|(name, _)| *name != header::SHAPE)
        .map(|(name, value)| (key(name), value))
        .collect();
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), EXTENSION.to_owned());
    metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), extension);
    Ok(Field::new(VALUE, data_type(shape)?, true).with_metadata(metadata))
}

/// The column of `rows` arrays whose elements are concatenated in `elements`.
pub(crate) fn array(
    shape: &Shape,
    elements: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let values = ArrayData::builder(element_type(shape.dtype))
        .len(elements.len() / shape.dtype.size())
        .add_buffer(elements)
        .align_buffers(true)
        .build()
        .map_err(ipc::internal)?;
    let list = ArrayData::builder(data_type(shape)?)
        .len(rows)
        .nulls(nulls)
        .add_child_data(values)
        .build()
        .map_err(ipc::internal)?;
    Ok(make_array(list))
}

/// The shape of the arrays in a column.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a column of another type.
pub(crate) fn shape(field: &Field) -> Result<Shape> {
    let invalid = |found: &str| {
        Error::wire(format!(
            "invalid column {:?}: expected fixed-shape tensors, found {found}",
            field.name()
        ))
    };
    let DataType::FixedSizeList(item, size) = field.data_type() else {
        return Err(invalid(&field.data_type().to_string()));
    };
    if field.extension_type_name() != Some(EXTENSION) {
        return Err(invalid("another extension type"));
    }
    let extension = field.extension_type_metadata().unwrap_or_default();
    let extension: Extension =
        serde_json::from_str(extension).map_err(|error| invalid(&format!("an invalid shape: {error}")))?;
    if extension.permutation.is_some() {
        return Err(invalid("permuted axes"));
    }
    let get = |name: &str| field.metadata().get(&key(name)).map(String::as_str);
    let bf16 = get(header::DTYPE) == Some(DType::Bf16.name()) && *item.data_type() == DataType::UInt16;
    let plain = || {
        let mut known = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bf16);
        known.find(|dtype| element_type(*dtype) == *item.data_type())
    };
    let dtype = if bf16 { Some(DType::Bf16) } else { plain() };
    let dtype = dtype.ok_or_else(|| invalid(&format!("elements of type {}", item.data_type())))?;
    let shape = Shape::from_metadata(dtype, extension.shape, get)?;
    match shape.elements() {
        Some(elements) if i32::try_from(elements) == Ok(*size) => Ok(shape),
        _ => Err(invalid(&format!(
            "shape {:?} with {size} elements",
            shape.extents
        ))),
    }
}

/// The elements of row `row`, without a copy.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if the row has no value.
pub(crate) fn elements(column: &ArrayRef, shape: &Shape, row: usize) -> Result<Buffer> {
    let missing = || Error::wire(format!("missing value in row {row} of column {VALUE:?}"));
    let list: &FixedSizeListArray = column.as_fixed_size_list_opt().ok_or_else(missing)?;
    let values = list.values().to_data();
    let bytes = shape.elements().ok_or_else(missing)? * shape.dtype.size();
    let start = values.offset() * shape.dtype.size() + row * bytes;
    match values.buffers() {
        [buffer] if row < list.len() && list.is_valid(row) && start + bytes <= buffer.len() => {
            Ok(buffer.slice_with_length(start, bytes))
        }
        _ => Err(missing()),
    }
}

fn data_type(shape: &Shape) -> Result<DataType> {
    let size = shape.elements().and_then(|elements| i32::try_from(elements).ok());
    let size = size.ok_or_else(|| {
        Error::wire(format!(
            "the shape {:?} has more elements than Arrow supports",
            shape.extents
        ))
    })?;
    Ok(DataType::FixedSizeList(
        Arc::new(Field::new_list_field(element_type(shape.dtype), true)),
        size,
    ))
}

pub(crate) const fn element_type(dtype: DType) -> DataType {
    match dtype {
        DType::U8 => DataType::UInt8,
        DType::I8 => DataType::Int8,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::Bf16 => DataType::UInt16,
        DType::F32 => DataType::Float32,
    }
}
