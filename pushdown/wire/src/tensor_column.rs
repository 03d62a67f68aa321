//! Columns of arrays in a table, of a fixed shape or of variable shapes.

mod value;

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, StructArray, builder::BinaryBuilder, make_array};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{
    DataType, Field, Fields,
    extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY},
};

use super::{arrow::tensor, header, ipc, shape::Shape};
use pushdown_core::{DType, Error, Kind, Layout, Result, Sample};

const VARIABLE: &str = "arrow.variable_shape_tensor";

/// The type of a column of values of one kind: `arrow.fixed_shape_tensor`, `arrow.variable_shape_tensor` (a struct of `data` and
/// `shape`), or binary for encoded images.
#[derive(Debug)]
pub struct TensorColumn(ColumnType);

#[derive(Debug)]
enum ColumnType {
    Bytes,
    Fixed(Shape),
    /// The second field has the known extents.
    Variable(Shape, Vec<Option<usize>>),
}

impl TensorColumn {
    /// The column type for this kind; `None` for tables, and for arrays with a scale per value.
    pub fn for_kind(kind: &Kind) -> Option<Self> {
        let shape = |dtype, layout, image| Shape {
            dtype,
            layout,
            extents: Vec::new(),
            scale: None,
            image,
        };
        let (shape, extents) = match kind {
            Kind::Table(_) => return None,
            Kind::Tensor(tensor) if tensor.quantized => return None,
            Kind::Bytes(_) => return Some(Self(ColumnType::Bytes)),
            Kind::Image(image) => {
                let side = |side: Option<u32>| side.map(|side| side as usize);
                let extents = vec![side(image.height), side(image.width), Some(3)];
                (shape(DType::U8, Layout::Hwc, true), extents)
            }
            Kind::Tensor(tensor) => (shape(tensor.dtype, tensor.layout, false), tensor.shape.clone()),
        };
        Some(Self(match extents.iter().copied().collect() {
            Some(extents) => ColumnType::Fixed(Shape { extents, ..shape }),
            None => ColumnType::Variable(shape, extents),
        }))
    }

    /// Bytes of a value, if fixed.
    pub fn value_bytes(&self) -> Option<usize> {
        match &self.0 {
            ColumnType::Fixed(shape) => shape.elements()?.checked_mul(shape.dtype.size()),
            ColumnType::Bytes | ColumnType::Variable(..) => None,
        }
    }

    /// The field of the column.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for more elements than Arrow supports.
    pub fn field(&self, name: &str) -> Result<Field> {
        match &self.0 {
            ColumnType::Bytes => Ok(Field::new(name, DataType::Binary, true)),
            ColumnType::Fixed(shape) => tensor::field(shape).map(|field| field.with_name(name)),
            ColumnType::Variable(shape, extents) => {
                let extension = serde_json::json!({ "uniform_shape": extents });
                let mut metadata: HashMap<String, String> = shape
                    .metadata()
                    .into_iter()
                    .filter(|(name, _)| *name != header::SHAPE)
                    .map(|(name, value)| (tensor::key(name), value))
                    .collect();
                metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), VARIABLE.to_owned());
                metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), extension.to_string());
                let data_type = DataType::Struct(variable_fields(shape.dtype, extents.len()));
                Ok(Field::new(name, data_type, true).with_metadata(metadata))
            }
        }
    }

    /// The extents and the elements of a value of this kind.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a value of another kind.
    pub fn elements(&self, sample: Sample) -> Result<(Vec<usize>, Buffer)> {
        match (&self.0, Shape::split(sample)) {
            (ColumnType::Bytes, Err(Sample::Bytes(bytes))) => Ok((Vec::new(), Buffer::from(bytes))),
            (ColumnType::Fixed(expected), Ok((found, elements)))
                if expected.dtype == found.dtype && expected.extents == found.extents =>
            {
                Ok((found.extents, elements))
            }
            (ColumnType::Variable(expected, extents), Ok((found, elements)))
                if expected.dtype == found.dtype && extents.len() == found.extents.len() =>
            {
                Ok((found.extents, elements))
            }
            _ => Err(Error::wire("the value does not have the kind of the column")),
        }
    }

    /// A column of values, given by extents and elements; `None` becomes null.
    ///
    /// # Errors
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for more elements than Arrow supports in a column.
    pub fn array(&self, values: &[Option<(Vec<usize>, Buffer)>]) -> Result<ArrayRef> {
        let nulls: NullBuffer = values.iter().map(Option::is_some).collect();
        let concatenated = |null_bytes: usize| {
            let bytes = values.iter().flatten().map(|(_, elements)| elements.len()).sum();
            let mut elements = MutableBuffer::with_capacity(bytes);
            for value in values {
                match value {
                    Some((_, value)) => elements.extend_from_slice(value),
                    None => elements.extend_zeros(null_bytes),
                }
            }
            Buffer::from(elements)
        };
        match &self.0 {
            ColumnType::Bytes => {
                let mut column = BinaryBuilder::new();
                for value in values {
                    column.append_option(value.as_ref().map(|(_, bytes)| bytes.as_slice()));
                }
                Ok(Arc::new(column.finish()))
            }
            ColumnType::Fixed(shape) => {
                let bytes = self.value_bytes().unwrap_or_default();
                tensor::array(shape, concatenated(bytes), values.len(), Some(nulls))
            }
            ColumnType::Variable(shape, extents) => {
                let lengths = values.iter().map(|value| {
                    let elements = value.as_ref().map_or(0, |(_, elements)| elements.len());
                    elements / shape.dtype.size()
                });
                let total: usize = lengths.clone().sum();
                if i32::try_from(total).is_err() {
                    return Err(Error::too_large(format!(
                        "the column has {total} elements, more than Arrow supports"
                    )));
                }
                let offsets = OffsetBuffer::<i32>::from_lengths(lengths)
                    .into_inner()
                    .into_inner();
                let fields = variable_fields(shape.dtype, extents.len());
                let elements = child(&tensor::element_type(shape.dtype), total, concatenated(0))?;
                let data = ArrayData::builder(fields[0].data_type().clone())
                    .len(values.len())
                    .add_buffer(offsets)
                    .add_child_data(elements);
                let mut sides = Vec::with_capacity(values.len() * extents.len());
                for value in values {
                    match value {
                        Some((found, _)) => {
                            sides.extend(found.iter().map(|side| i32::try_from(*side).unwrap_or(i32::MAX)));
                        }
                        None => sides.extend(std::iter::repeat_n(0, extents.len())),
                    }
                }
                let sides = child(&DataType::Int32, sides.len(), Buffer::from_vec(sides))?;
                let shapes = ArrayData::builder(fields[1].data_type().clone())
                    .len(values.len())
                    .add_child_data(sides);
                let columns = vec![
                    make_array(data.build().map_err(ipc::internal)?),
                    make_array(shapes.build().map_err(ipc::internal)?),
                ];
                let column = StructArray::try_new(fields, columns, Some(nulls)).map_err(ipc::internal)?;
                Ok(Arc::new(column))
            }
        }
    }
}

/// The fields of a column of variable shapes.
fn variable_fields(dtype: DType, axes: usize) -> Fields {
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let axes = i32::try_from(axes).unwrap_or(i32::MAX);
    Fields::from(vec![
        Field::new("data", DataType::List(item(tensor::element_type(dtype))), false),
        Field::new(
            "shape",
            DataType::FixedSizeList(item(DataType::Int32), axes),
            false,
        ),
    ])
}

fn child(data_type: &DataType, length: usize, values: Buffer) -> Result<ArrayData> {
    let data = ArrayData::builder(data_type.clone())
        .len(length)
        .add_buffer(values)
        .align_buffers(true);
    data.build().map_err(ipc::internal)
}
