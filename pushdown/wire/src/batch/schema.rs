//! The columns of a batch answer.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields, Schema};

use super::{MAX_COLUMNS, crops};
use crate::{FixedShape, arrow::tensor, header};
use pushdown_core::{Engine, Error, Kind, Result, language::Digest};

/// Maximum number of rows of a record batch: about as many samples as fit into a request.
pub(super) const MAX_ROWS: usize = 1 << 16;

pub(super) const ROW: usize = 0;
pub(super) const STAGE: usize = 1;
pub(super) const ERROR: usize = 2;
pub(super) const SECONDS: usize = 3;
pub(super) const VALUE: usize = 4;
pub(super) const SCALE: usize = 5;

/// Beginning of the names of further columns.
const FURTHER: &str = "column:";

/// The columns of an answer beyond those that all answers have.
#[derive(Debug, Clone, Copy, Default)]
pub struct OptionalColumns<'a> {
    /// Whether rows state where their values come from (`cache`), which a request asks for by its [`CacheHints`](super::CacheHints).
    pub cache: bool,
    /// Whether rows state where a [cropped JPEG](crate::ObjectForm::CroppedJpeg) lies in the whole image (`crop_x`, `crop_y`,
    /// `image_width`, `image_height`), which a request asks for by the form of a sample.
    pub crops: bool,
    /// Whether the answer has no values: then rows state whether their values are in the result cache now (`stored`), which a request asks
    /// for by `deliver: false`.
    pub stored: bool,
    /// The names of the further columns.
    pub further: &'a [String],
}

/// The columns of an answer, as far as this version knows them. Indices are ascending.
#[derive(Debug)]
pub(super) struct AnswerColumns {
    pub(super) value_type: ValueType,
    /// What describes the rows: the first four columns, and the column `cache` if there is one.
    pub(super) head: Vec<usize>,
    /// The columns up to `value`, and the column `scale` if there is one.
    pub(super) values: Vec<usize>,
    /// The columns about cropped JPEGs, if they are there.
    pub(super) crops: Vec<usize>,
    /// The column `stored`, of an answer without values.
    pub(super) stored: Option<usize>,
    /// The further columns, `column:NAME`.
    pub(super) further: Vec<usize>,
    /// The names of the further columns.
    pub(super) further_names: Vec<String>,
}

/// The type of the column `value`, from the static types of the stages in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueType {
    /// Arrays of one shape: `arrow.fixed_shape_tensor`, with a column `scale` for quantised values.
    Fixed(FixedShape),
    /// Bytes: large binary.
    Bytes,
    /// Values of different kinds: a struct of kind, dtype, shape, layout, scale and data.
    Any,
}

impl ValueType {
    /// The type of values of these kinds, those of all possible stages of the rows of an answer.
    pub fn for_kinds<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        let mut kinds = kinds.into_iter().map(|kind| match kind {
            Kind::Bytes(_) => Self::Bytes,
            kind => FixedShape::for_kind(kind).map_or(Self::Any, Self::Fixed),
        });
        let first = kinds.next().unwrap_or(Self::Any);
        if kinds.all(|kind| kind == first) {
            first
        } else {
            Self::Any
        }
    }

    /// The schema of an answer with these `columns` after the common ones.
    pub(super) fn schema(
        &self,
        engine: &Engine,
        pipeline: &Digest,
        columns: OptionalColumns<'_>,
    ) -> Result<Schema> {
        let mut fields = vec![
            Field::new("row", DataType::UInt32, false),
            Field::new("stage", DataType::UInt8, false),
            Field::new("error", DataType::Utf8, true),
            Field::new("seconds", DataType::Float32, false),
            match self {
                Self::Fixed(fixed) => tensor::field(&fixed.unscaled())?,
                Self::Bytes => Field::new(tensor::VALUE, DataType::LargeBinary, true),
                Self::Any => Field::new(tensor::VALUE, DataType::Struct(any_fields()), true),
            },
        ];
        if self.is_quantized() {
            fields.push(Field::new("scale", DataType::Float32, true));
        }
        if columns.cache {
            fields.push(Field::new("cache", DataType::UInt8, false));
        }
        if columns.crops {
            let names = crops::NAMES.iter();
            fields.extend(names.map(|name| Field::new(*name, DataType::UInt32, true)));
        }
        if columns.stored {
            fields.push(Field::new("stored", DataType::UInt8, false));
        }
        let further = columns.further.iter().map(|name| format!("{FURTHER}{name}"));
        fields.extend(further.map(|name| Field::new(name, DataType::LargeBinary, true)));
        let metadata = HashMap::from([
            (tensor::key(header::ENGINE), engine.to_string()),
            (tensor::key(header::PIPELINE), pipeline.to_string()),
        ]);
        Ok(Schema::new_with_metadata(fields, metadata))
    }

    pub(super) const fn is_quantized(&self) -> bool {
        matches!(self, Self::Fixed(FixedShape { quantized: true, .. }))
    }
}

impl AnswerColumns {
    /// The columns from the schema of an answer. Columns that this version does not know are not among them.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for another schema.
    pub(super) fn read(schema: &Schema) -> Result<Self> {
        let invalid = || Error::wire(format!("invalid batch answer: unexpected columns {schema}"));
        let expected = [
            ("row", DataType::UInt32),
            ("stage", DataType::UInt8),
            ("error", DataType::Utf8),
            ("seconds", DataType::Float32),
        ];
        let fields = schema.fields();
        let column = |(index, (name, data_type)): (usize, &(&str, DataType))| {
            fields
                .get(index)
                .is_some_and(|field| field.name() == name && field.data_type() == data_type)
        };
        let value = fields
            .get(VALUE)
            .filter(|value| value.name() == tensor::VALUE)
            .ok_or_else(invalid)?;
        if !expected.iter().enumerate().all(column) {
            return Err(invalid());
        }
        // Columns after `value` have any order.
        let optional = |name: &str, data_type: DataType| {
            let mut later = fields.iter().enumerate().skip(SCALE);
            match later.find(|(_, field)| field.name() == name) {
                Some((_, field)) if *field.data_type() != data_type => Err(invalid()),
                found => Ok(found.map(|(index, _)| index)),
            }
        };
        let scale = optional("scale", DataType::Float32)?;
        let cache = optional("cache", DataType::UInt8)?;
        let stored = optional("stored", DataType::UInt8)?;
        let value_type = match value.data_type() {
            DataType::LargeBinary => ValueType::Bytes,
            DataType::Struct(fields) if *fields == any_fields() => ValueType::Any,
            _ => {
                let shape = tensor::shape(value)?;
                ValueType::Fixed(FixedShape {
                    dtype: shape.dtype,
                    layout: shape.layout,
                    shape: shape.extents,
                    quantized: scale.is_some(),
                    image: shape.image,
                })
            }
        };
        let is_without_values = stored.is_some();
        if scale.is_some() != value_type.is_quantized() || is_without_values && value_type != ValueType::Bytes
        {
            return Err(invalid());
        }
        let positions = crops::NAMES.map(|name| optional(name, DataType::UInt32));
        let mut crops = Vec::new();
        for position in positions {
            crops.extend(position?);
        }
        if !crops.is_empty() && crops.len() < crops::NAMES.len() {
            return Err(invalid());
        }
        let (mut further, mut further_names) = (Vec::new(), Vec::new());
        for (index, field) in fields.iter().enumerate().skip(SCALE) {
            if let Some(name) = field.name().strip_prefix(FURTHER) {
                if *field.data_type() != DataType::LargeBinary || further.len() == MAX_COLUMNS {
                    return Err(invalid());
                }
                further.push(index);
                further_names.push(name.to_owned());
            }
        }
        Ok(Self {
            value_type,
            head: (ROW..=SECONDS).chain(cache).collect(),
            values: (ROW..=VALUE).chain(scale).collect(),
            crops,
            stored,
            further,
            further_names,
        })
    }
}

/// The fields of values of different kinds. For bytes and tables (Arrow IPC streams), only `kind` and `data` are not null.
pub(super) fn any_fields() -> Fields {
    Fields::from(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("dtype", DataType::Utf8, true),
        Field::new(
            "shape",
            DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
            true,
        ),
        Field::new("layout", DataType::Utf8, true),
        Field::new("scale", DataType::Float32, true),
        Field::new("data", DataType::LargeBinary, false),
    ])
}
