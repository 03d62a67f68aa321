//! What all rows of a part have in common.

use std::collections::HashSet;

use pushdown_core::{DType, Error, Kind, Result, Sample};
use pushdown_wire::check_columns;

use crate::{
    PartFormat,
    base::MAX_EXTENSION_BYTES,
    extension,
    label::LabelType,
    parquet::{self, ValueColumn},
    tar,
};

/// Most axes of an array: that of NumPy 1 and of the wire.
const MAX_AXES: usize = 32;

/// What all rows of a part have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSpec {
    /// The file format.
    pub format: PartFormat,
    /// The kind of all values: that at the end of the pipeline.
    pub kind: Kind,
    /// The type of the labels, if samples have any.
    pub label: Option<LabelType>,
    /// The names of further columns, such as `json`, whose contents are bytes.
    pub columns: Vec<String>,
}

impl PartSpec {
    /// Checks that the format can hold such values and columns, before any is computed.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for tables, for arrays that the format cannot hold (in Parquet: of
    /// shapes that depend on the sample), for a wrong type of labels, and for columns with invalid names or that of another one.
    pub fn check(&self) -> Result<()> {
        if let Some(label) = &self.label {
            label.check()?;
        }
        check_columns(&self.columns)?;
        self.check_axes()?;
        let own: Vec<&str> = match self.format {
            PartFormat::Wds => {
                self.check_extensions()?;
                let label = self.label.as_ref().map(tar::label_extension);
                [self.value_extension()?].into_iter().chain(label).collect()
            }
            PartFormat::Parquet => {
                let value = ValueColumn::for_kind(&self.kind)?;
                parquet::own_columns(&value, self.label.is_some()).collect()
            }
        };
        let mut known: HashSet<String> = HashSet::new();
        let columns = self.columns.iter().map(String::as_str);
        // SQL and WebDataset do not distinguish upper from lower case.
        match own
            .into_iter()
            .chain(columns)
            .find(|name| !known.insert(name.to_lowercase()))
        {
            Some(name) => Err(Error::wire(format!(
                "invalid columns: expected names that differ from each other and from those of values and labels, found {name:?} twice; leave \
                 out that column"
            ))),
            None => Ok(()),
        }
    }

    /// The most bytes of memory that a writer needs beside its part and the value that it is given: those of arrays that Parquet encodes.
    pub fn encoding_bytes(&self) -> u64 {
        let (row_elements, dtype) = match &self.kind {
            Kind::Image(image) => match (image.width, image.height) {
                (Some(width), Some(height)) => (3 * u64::from(width) * u64::from(height), DType::U8),
                _ => return 0,
            },
            Kind::Tensor(tensor) => {
                let extents = tensor.shape.iter();
                let elements = extents.map(|extent| extent.unwrap_or_default() as u64).product();
                (elements, tensor.dtype)
            }
            Kind::Bytes(_) | Kind::Table(_) => return 0,
        };
        if self.format == PartFormat::Wds {
            return 0;
        }
        let batch_elements = (parquet::BATCH_BYTES / dtype.size()) as u64;
        parquet::encoding_bytes(dtype) * (batch_elements + row_elements)
    }

    /// Checks that a value is of the kind of the part.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for another kind. The message names the sample.
    pub(crate) fn check_value(&self, sample: &str, value: &Sample) -> Result<()> {
        let is_same = match (&self.kind, value) {
            (Kind::Bytes(_), Sample::Bytes(_)) => true,
            (Kind::Image(expected), Sample::Image(found)) => {
                expected.width.is_none_or(|width| width == found.width())
                    && expected.height.is_none_or(|height| height == found.height())
            }
            (Kind::Tensor(expected), Sample::Tensor(found)) => {
                let mut extents = expected.shape.iter().zip(found.shape());
                expected.dtype == found.dtype()
                    && expected.quantized == found.scale().is_some()
                    && expected.shape.len() == found.shape().len()
                    && extents.all(|(expected, found)| expected.is_none_or(|expected| expected == *found))
            }
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let found = match value {
            Sample::CroppedJpeg(_) => "a cropped JPEG".to_owned(),
            other => Kind::from(other).to_string(),
        };
        Err(Error::wire(format!(
            "invalid value of sample {sample:?}: expected {}, found {found}",
            self.kind
        )))
    }

    /// The extension of the values in a tar. Of bytes of any content, the one that always may occur.
    fn value_extension(&self) -> Result<&'static str> {
        match &self.kind {
            Kind::Bytes(bytes) => Ok(bytes.media.map_or(extension::BINARY, extension::of_media)),
            Kind::Image(_) | Kind::Tensor(_) => Ok(extension::of_array(&self.kind).1),
            Kind::Table(_) => Err(no_tables(self.format)),
        }
    }

    fn check_axes(&self) -> Result<()> {
        match &self.kind {
            Kind::Tensor(tensor) if tensor.shape.len() > MAX_AXES => Err(Error::wire(format!(
                "cannot write {} to {}: expected at most {MAX_AXES} axes, found {}",
                self.kind,
                self.format,
                tensor.shape.len()
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that the names of columns can be extensions of members.
    fn check_extensions(&self) -> Result<()> {
        let is_extension = |name: &String| {
            name.len() <= MAX_EXTENSION_BYTES && !name.contains('/') && !name.starts_with("__")
        };
        match self.columns.iter().find(|name| !is_extension(name)) {
            Some(name) => Err(Error::wire(format!(
                "invalid columns: expected extensions of at most {MAX_EXTENSION_BYTES} bytes without `/` and without `__` at the \
                 start, found {name:?}"
            ))),
            None => Ok(()),
        }
    }
}

/// The error for tables, which have rows of their own.
pub(crate) fn no_tables(format: PartFormat) -> Error {
    Error::wire(format!(
        "cannot write tables to {format}: expected a pipeline that ends with bytes, images or tensors, found Table"
    ))
}
