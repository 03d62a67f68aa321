//! The kind of a value, known before the value is computed: its type, and the part of its shape that the steps determine.

use std::fmt;

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::{DType, ImageHeader, Layout, MediaType, Sample};

/// The kind of the value at a stage. Dimensions that depend on the sample are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The bytes of an object, or an encoded image.
    Bytes(BytesKind),
    /// Height x width x 3, u8, RGB.
    Image(ImageKind),
    /// An array without batch axis.
    Tensor(TensorKind),
    /// Rows of typed columns.
    Table(TableKind),
}

/// The known properties of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BytesKind {
    /// Length in bytes.
    pub length: Option<u64>,
    /// The image format, if a step encoded these bytes or their header was read.
    pub media: Option<MediaType>,
    /// The header of the image.
    pub header: Option<ImageHeader>,
}

/// The known properties of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageKind {
    /// Width in pixels.
    pub width: Option<u32>,
    /// Height in pixels.
    pub height: Option<u32>,
}

/// The known properties of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorKind {
    /// Element type.
    pub dtype: DType,
    /// Order of the axes, for a tensor computed from an image.
    pub layout: Layout,
    /// Size of each axis.
    pub shape: Vec<Option<usize>>,
    /// Whether each value has a quantisation scale.
    pub quantized: bool,
}

/// The known properties of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableKind {
    /// The columns; they depend on the object until the table is read.
    pub schema: Option<SchemaRef>,
    /// Size of the columns in bytes.
    pub bytes: Option<u64>,
}

impl Kind {
    /// The kind of an unknown object.
    pub const fn object() -> Self {
        Self::Bytes(BytesKind {
            length: None,
            media: None,
            header: None,
        })
    }

    /// The kind of an object of `length` bytes that starts with `head`.
    ///
    /// `head` may have any length. Properties that it does not show stay unknown.
    pub fn of_object(length: Option<u64>, head: &[u8]) -> Self {
        let header = ImageHeader::read(head);
        Self::Bytes(BytesKind {
            length,
            media: header.map(|header| header.media),
            header,
        })
    }

    /// Size of a value of this kind in bytes, if all dimensions are known.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => bytes.length,
            Self::Image(image) => image.pixels()?.checked_mul(3),
            Self::Tensor(tensor) => tensor
                .shape
                .iter()
                .try_fold(tensor.dtype.size() as u64, |bytes, extent| {
                    bytes.checked_mul((*extent)? as u64)
                }),
            Self::Table(table) => table.bytes,
        }
    }

    /// The dtype and shape, if they do not depend on the sample.
    pub fn fixed_shape(&self) -> Option<(DType, Vec<usize>)> {
        match self {
            Self::Bytes(_) | Self::Table(_) => None,
            Self::Image(image) => Some((DType::U8, vec![image.height? as usize, image.width? as usize, 3])),
            Self::Tensor(tensor) => {
                let shape = tensor.shape.iter().copied().collect::<Option<Vec<_>>>()?;
                Some((tensor.dtype, shape))
            }
        }
    }

    /// The name in error messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "Bytes",
            Self::Image(_) => "Image",
            Self::Tensor(_) => "Tensor",
            Self::Table(_) => "Table",
        }
    }
}

impl From<&Sample> for Kind {
    fn from(sample: &Sample) -> Self {
        match sample {
            Sample::Bytes(bytes) => Self::of_object(Some(bytes.len() as u64), bytes),
            // All that depends on the size of the image depends on that of the whole.
            Sample::CroppedJpeg(crop) => Self::Bytes(BytesKind {
                length: Some(crop.bytes().len() as u64),
                media: Some(MediaType::Jpeg),
                header: Some(crop.header()),
            }),
            Sample::Image(image) => Self::Image(ImageKind {
                width: Some(image.width()),
                height: Some(image.height()),
            }),
            Sample::Tensor(tensor) => Self::Tensor(TensorKind {
                dtype: tensor.dtype(),
                layout: tensor.layout(),
                shape: tensor.shape().iter().copied().map(Some).collect(),
                quantized: tensor.scale().is_some(),
            }),
            Sample::Table(table) => Self::Table(TableKind {
                schema: Some(SchemaRef::clone(table.schema())),
                bytes: Some(table.bytes()),
            }),
        }
    }
}

impl ImageKind {
    /// Width times height.
    pub fn pixels(&self) -> Option<u64> {
        Some(u64::from(self.width?) * u64::from(self.height?))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn extent<T: fmt::Display>(f: &mut fmt::Formatter<'_>, extent: Option<T>) -> fmt::Result {
            match extent {
                Some(extent) => write!(f, "{extent}"),
                None => f.write_str("?"),
            }
        }
        f.write_str(self.name())?;
        match self {
            Self::Bytes(bytes) => match bytes.media {
                Some(media) => write!(f, "({media})"),
                None => Ok(()),
            },
            Self::Image(image) => {
                f.write_str("(")?;
                extent(f, image.height)?;
                f.write_str("x")?;
                extent(f, image.width)?;
                f.write_str("x3 u8)")
            }
            Self::Tensor(tensor) => {
                f.write_str("(")?;
                for (axis, size) in tensor.shape.iter().enumerate() {
                    if axis > 0 {
                        f.write_str("x")?;
                    }
                    extent(f, *size)?;
                }
                write!(f, " {}, {})", tensor.dtype, tensor.layout)
            }
            Self::Table(table) => match &table.schema {
                Some(schema) => write!(f, "({} columns)", schema.fields().len()),
                None => Ok(()),
            },
        }
    }
}
