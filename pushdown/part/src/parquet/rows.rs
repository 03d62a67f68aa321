//! Rows that are not encoded yet.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, RecordBatch, StructArray,
    builder::{BinaryBuilder, Float32Builder, Float64Builder, Int64Builder, StringBuilder},
    cast::AsArray as _,
};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, Field, SchemaRef};
use pushdown_core::{Error, MediaType, Result, Sample};

use super::schema::{ArrayColumn, ValueColumn, image_fields};
use crate::{
    PartRow, PartSpec, extension,
    label::{Label, LabelType},
};

/// Rows of a part, column by column.
#[derive(Debug)]
pub(super) struct Rows {
    schema: SchemaRef,
    length: usize,
    /// Bytes of keys, values, labels and further columns.
    bytes: usize,
    keys: StringBuilder,
    values: Values,
    labels: Option<Labels>,
    columns: Vec<BinaryBuilder>,
}

#[derive(Debug)]
enum Values {
    Image {
        media: MediaType,
        files: BinaryBuilder,
        paths: StringBuilder,
    },
    Bytes(BinaryBuilder),
    Array {
        column: ArrayColumn,
        /// Shape and elements of each, shared with the sample.
        arrays: Vec<Option<(Vec<usize>, Buffer)>>,
        scales: Float32Builder,
    },
}

#[derive(Debug)]
enum Labels {
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

impl Rows {
    pub(super) fn new(spec: &PartSpec, value: ValueColumn, schema: SchemaRef) -> Self {
        Self {
            schema,
            length: 0,
            bytes: 0,
            keys: StringBuilder::new(),
            values: match value {
                ValueColumn::Image(media) => Values::Image {
                    media,
                    files: BinaryBuilder::new(),
                    paths: StringBuilder::new(),
                },
                ValueColumn::Bytes => Values::Bytes(BinaryBuilder::new()),
                ValueColumn::Array(column) => Values::Array {
                    column,
                    arrays: Vec::new(),
                    scales: Float32Builder::new(),
                },
            },
            labels: spec.label.as_ref().map(|label| match label {
                LabelType::Class { .. } | LabelType::Int => Labels::Int(Int64Builder::new()),
                LabelType::Float => Labels::Float(Float64Builder::new()),
                LabelType::Text => Labels::Text(StringBuilder::new()),
            }),
            columns: spec.columns.iter().map(|_| BinaryBuilder::new()).collect(),
        }
    }

    /// Number of rows.
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Bytes of keys, values, labels and further columns.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row, whose value and label are of the part's kind and type.
    pub(super) fn push(&mut self, name: &str, label: Option<&Label>, row: &PartRow<'_>) -> Result<()> {
        self.bytes += self.values.push(name, row.value)? + name.len();
        self.keys.append_value(name);
        if let Some(labels) = &mut self.labels {
            self.bytes += labels.push(label);
        }
        for (column, content) in self.columns.iter_mut().zip(&row.columns) {
            self.bytes += content.as_ref().map_or(0, bytes::Bytes::len);
            column.append_option(content.as_ref());
        }
        self.length += 1;
        Ok(())
    }

    /// Takes all rows.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(self.keys.finish())];
        arrays.extend(self.values.take()?);
        arrays.extend(self.labels.as_mut().map(Labels::take));
        let columns = self.columns.iter_mut();
        arrays.extend(columns.map(|column| Arc::new(column.finish()) as ArrayRef));
        (self.length, self.bytes) = (0, 0);
        RecordBatch::try_new(SchemaRef::clone(&self.schema), arrays).map_err(inconsistent)
    }
}

impl Values {
    /// Adds a value, and returns the number of its bytes.
    fn push(&mut self, name: &str, value: &Sample) -> Result<usize> {
        match (self, value) {
            (Self::Image { media, files, paths }, Sample::Bytes(bytes)) => {
                files.append_value(bytes);
                let (stem, _) = extension::split(name);
                let file = stem.rsplit('/').next().unwrap_or(stem);
                paths.append_value(format!("{file}.{}", extension::of_media(*media)));
                Ok(bytes.len() + file.len())
            }
            (Self::Bytes(column), Sample::Bytes(bytes)) => {
                column.append_value(bytes);
                Ok(bytes.len())
            }
            (
                Self::Array {
                    column,
                    arrays,
                    scales,
                },
                Sample::Image(_) | Sample::Tensor(_),
            ) => {
                arrays.push(Some(column.flat.elements(value.clone())?));
                if let Sample::Tensor(tensor) = value {
                    scales.append_option(tensor.scale());
                }
                Ok(column.bytes())
            }
            _ => Err(Error::internal("the kind of the value was checked")),
        }
    }

    /// Takes the columns of the values.
    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(match self {
            Self::Image { files, paths, .. } => {
                let columns: Vec<ArrayRef> = vec![Arc::new(files.finish()), Arc::new(paths.finish())];
                let images = StructArray::try_new(image_fields(), columns, None).map_err(inconsistent)?;
                vec![Arc::new(images)]
            }
            Self::Bytes(column) => vec![Arc::new(column.finish())],
            Self::Array {
                column,
                arrays,
                scales,
            } => {
                let flat = column.flat.array(arrays)?;
                arrays.clear();
                let nested = nest(&flat, &column.shape)?;
                let scales = scales.finish();
                if column.is_quantized {
                    vec![nested, Arc::new(scales)]
                } else {
                    vec![nested]
                }
            }
        })
    }
}

impl Labels {
    /// Adds a label, and returns the number of its bytes. One of another type becomes null: types were checked.
    fn push(&mut self, label: Option<&Label>) -> usize {
        match (self, label) {
            (Self::Int(column), Some(Label::Int(number))) => column.append_value(*number),
            (Self::Float(column), Some(Label::Float(number))) => column.append_value(*number),
            (Self::Text(column), Some(Label::Text(text))) => {
                column.append_value(text);
                return text.len();
            }
            (Self::Int(column), _) => column.append_null(),
            (Self::Float(column), _) => column.append_null(),
            (Self::Text(column), _) => column.append_null(),
        }
        size_of::<i64>()
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Int(column) => Arc::new(column.finish()),
            Self::Float(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
        }
    }
}

/// Lists of all elements of an array, as nested lists of this shape.
fn nest(flat: &ArrayRef, shape: &[usize]) -> Result<ArrayRef> {
    let lists = flat.as_fixed_size_list_opt();
    let lists = lists.ok_or_else(|| Error::internal("arrays of one shape are lists"))?;
    let mut nested = ArrayRef::clone(lists.values());
    for extent in shape.iter().rev() {
        let item = Arc::new(Field::new_list_field(nested.data_type().clone(), true));
        let length = i32::try_from(*extent).map_err(|_| Error::internal("the extent was checked"))?;
        nested = Arc::new(FixedSizeListArray::try_new(item, length, nested, None).map_err(inconsistent)?);
    }
    Ok(nested)
}

#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
fn inconsistent(error: ArrowError) -> Error {
    Error::internal(format!("the columns of a part do not fit together: {error}"))
}
