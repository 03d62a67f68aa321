//! The columns of a part in Parquet.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use pushdown_core::{DType, Error, Kind, MediaType, Result, TensorKind};
use pushdown_wire::TensorColumn;

use super::features;
use crate::{PartFormat, PartSpec, label::LabelType, spec::no_tables};

/// The sample's name.
pub(super) const KEY: &str = "key";
/// An encoded image.
pub(super) const IMAGE: &str = "image";
/// Any other value.
pub(super) const VALUE: &str = "value";
/// The quantisation scale.
pub(super) const SCALE: &str = "scale";
/// The label.
pub(super) const LABEL: &str = "label";
/// Metadata of the field of an array whose type Arrow lacks, as in batches on the wire.
const DTYPE: &str = "pushdown.dtype";
/// Most elements of an array: the encoder takes up to 52 bytes of memory for each, which is 832 MiB then.
const MAX_ELEMENTS: usize = 1 << 24;

/// The column of values.
#[derive(Debug)]
pub(crate) enum ValueColumn {
    /// Images that a step encoded in this format.
    Image(MediaType),
    /// Other bytes.
    Bytes,
    /// Images and tensors of one shape.
    Array(ArrayColumn),
}

/// A column of nested lists.
#[derive(Debug)]
pub(crate) struct ArrayColumn {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) is_quantized: bool,
    /// The same arrays as lists without nesting.
    pub(super) flat: TensorColumn,
}

impl ValueColumn {
    /// The column of values of a kind.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for tables, and for arrays whose shape depends on the sample, that have
    /// no elements or too many.
    pub(crate) fn for_kind(kind: &Kind) -> Result<Self> {
        let (flat_kind, is_quantized) = match kind {
            Kind::Table(_) => return Err(no_tables(PartFormat::Parquet)),
            Kind::Bytes(bytes) => return Ok(bytes.media.map_or(Self::Bytes, Self::Image)),
            Kind::Image(image) => (Kind::Image(*image), false),
            // The scale has a column of its own.
            Kind::Tensor(tensor) => {
                let unscaled = TensorKind {
                    quantized: false,
                    ..tensor.clone()
                };
                (Kind::Tensor(unscaled), tensor.quantized)
            }
        };
        let cannot =
            |expected: &str| Error::wire(format!("cannot write {kind} to parquet: expected {expected}"));
        let (dtype, shape) = kind.fixed_shape().ok_or_else(|| {
            cannot("arrays of one shape; add encode(..) to the pipeline, or steps that fix the size")
        })?;
        let elements = shape
            .iter()
            .try_fold(1_usize, |elements, extent| elements.checked_mul(*extent));
        if !elements.is_some_and(|elements| (1..=MAX_ELEMENTS).contains(&elements)) {
            return Err(cannot(
                "1 to 16,777,216 elements; add encode(..) to the pipeline, or steps that make them smaller",
            ));
        }
        let flat = TensorColumn::for_kind(&flat_kind)
            .ok_or_else(|| Error::internal("arrays without a scale have a column"))?;
        Ok(Self::Array(ArrayColumn {
            dtype,
            shape,
            is_quantized,
            flat,
        }))
    }
}

impl ArrayColumn {
    /// Bytes of the elements of a row.
    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }

    fn field(&self) -> Result<Field> {
        let flat = self.flat.field(VALUE)?;
        let DataType::FixedSizeList(item, _) = flat.data_type() else {
            return Err(Error::internal("arrays of one shape are lists"));
        };
        let mut nested = item.data_type().clone();
        for extent in self.shape.iter().rev() {
            let length = i32::try_from(*extent).map_err(|_| Error::internal("the extent was checked"))?;
            nested = DataType::FixedSizeList(Arc::new(Field::new_list_field(nested, true)), length);
        }
        let field = Field::new(VALUE, nested, true);
        Ok(match self.dtype {
            DType::Bf16 => field.with_metadata([(DTYPE.to_owned(), self.dtype.to_string())].into()),
            _ => field,
        })
    }
}

/// The names of the columns of a part except its further ones, in their order.
pub(crate) fn own_columns(value: &ValueColumn, has_label: bool) -> impl Iterator<Item = &'static str> {
    let (value, scale) = match value {
        ValueColumn::Image(_) => (IMAGE, None),
        ValueColumn::Bytes => (VALUE, None),
        ValueColumn::Array(array) => (VALUE, array.is_quantized.then_some(SCALE)),
    };
    let label = has_label.then_some(LABEL);
    [Some(KEY), Some(value), scale, label].into_iter().flatten()
}

/// The schema. `datasets` takes the features of a column from the metadata only if its type is that of the features, so all fields are
/// nullable as its own are.
pub(super) fn schema(spec: &PartSpec, value: &ValueColumn, features: &str) -> Result<SchemaRef> {
    let mut fields = vec![Field::new(KEY, DataType::Utf8, true)];
    match value {
        ValueColumn::Image(_) => fields.push(Field::new(IMAGE, DataType::Struct(image_fields()), true)),
        ValueColumn::Bytes => fields.push(Field::new(VALUE, DataType::Binary, true)),
        ValueColumn::Array(array) => {
            fields.push(array.field()?);
            if array.is_quantized {
                fields.push(Field::new(SCALE, DataType::Float32, true));
            }
        }
    }
    fields.extend(spec.label.as_ref().map(|label| {
        let data_type = match label {
            LabelType::Class { .. } | LabelType::Int => DataType::Int64,
            LabelType::Float => DataType::Float64,
            LabelType::Text => DataType::Utf8,
        };
        Field::new(LABEL, data_type, true)
    }));
    let columns = spec.columns.iter();
    fields.extend(columns.map(|name| Field::new(name, DataType::Binary, true)));
    let metadata = [(features::METADATA_KEY.to_owned(), features.to_owned())];
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata.into())))
}

/// The fields of an encoded image.
pub(super) fn image_fields() -> Fields {
    Fields::from(vec![
        Field::new("bytes", DataType::Binary, true),
        Field::new("path", DataType::Utf8, true),
    ])
}
