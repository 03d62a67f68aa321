//! Arrays as a column: the canonical extension type `arrow.fixed_shape_tensor`.
//!
//! What the type itself does not say stands in the field's metadata, under `pushdown.*`: layout, scale, whether it
//! is an image, and dtype, because Arrow has no bf16: it is uint16 there.

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
use crate::{DType, Error, Result};

/// Name of the column with the values.
pub(in crate::wire) const VALUE: &str = "value";
/// Before the names of [`header`] in an Arrow field's or schema's metadata, where they have `x-pushdown-`.
const PREFIX: &str = "pushdown.";
const EXTENSION: &str = "arrow.fixed_shape_tensor";

/// The metadata of the extension type. A stream with permuted axes is refused.
#[derive(Serialize, Deserialize)]
struct Extension {
    shape: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permutation: Option<Vec<usize>>,
}

/// The key in Arrow metadata of what HTTP calls `name`.
pub(in crate::wire) fn key(name: &str) -> String {
    format!("{PREFIX}{}", name.trim_start_matches(header::PREFIX))
}

/// The nullable column `value` of arrays that are all of this shape.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) where Arrow cannot count the elements.
pub(in crate::wire) fn field(shape: &Shape) -> Result<Field> {
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

/// The column of `rows` arrays whose elements stand one after the other in `elements`.
pub(in crate::wire) fn array(
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
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a column that is not of fixed-shape tensors.
pub(in crate::wire) fn shape(field: &Field) -> Result<Shape> {
    let invalid = |what: &str| Error::wire(format!("found column {:?} {what}", field.name()));
    let DataType::FixedSizeList(item, size) = field.data_type() else {
        return Err(invalid("without a fixed shape"));
    };
    if field.extension_type_name() != Some(EXTENSION) {
        return Err(invalid("that is no fixed-shape tensor"));
    }
    let extension = field.extension_type_metadata().unwrap_or_default();
    let extension: Extension = serde_json::from_str(extension)
        .map_err(|error| invalid(&format!("with a shape that is none: {error}")))?;
    if extension.permutation.is_some() {
        return Err(invalid("with permuted axes"));
    }
    let get = |name: &str| field.metadata().get(&key(name)).map(String::as_str);
    let bf16 = get(header::DTYPE) == Some(DType::Bf16.name()) && *item.data_type() == DataType::UInt16;
    let plain = || {
        let mut known = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bf16);
        known.find(|dtype| element_type(*dtype) == *item.data_type())
    };
    let dtype = if bf16 { Some(DType::Bf16) } else { plain() };
    let dtype = dtype.ok_or_else(|| invalid(&format!("with elements of type {}", item.data_type())))?;
    let shape = Shape::described(dtype, extension.shape, get)?;
    match shape.elements() {
        Some(elements) if i32::try_from(elements) == Ok(*size) => Ok(shape),
        _ => Err(invalid(&format!(
            "of shape {:?} with {size} elements",
            shape.extents
        ))),
    }
}

/// The elements of row `row`, not copied.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) where the row has none.
pub(in crate::wire) fn elements(column: &ArrayRef, shape: &Shape, row: usize) -> Result<Buffer> {
    let missing = || Error::wire(format!("row {row} of column {VALUE:?} has no value"));
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
    let size =
        size.ok_or_else(|| Error::wire(format!("the shape {:?} is too large for Arrow", shape.extents)))?;
    Ok(DataType::FixedSizeList(
        Arc::new(Field::new_list_field(element_type(shape.dtype), true)),
        size,
    ))
}

pub(in crate::wire) const fn element_type(dtype: DType) -> DataType {
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
