//! What is known of a value before it exists: its type, and as much of its shape as the steps fix.

use std::fmt;

use arrow_schema::SchemaRef;

use crate::{DType, ImageHeader, Layout, MediaType, Sample};

/// The type of the value at a stage. Dimensions that depend on the sample are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An object's bytes, or an encoded image.
    Bytes(BytesKind),
    /// Height x width x 3, u8, RGB.
    Image(ImageKind),
    /// An array without batch axis.
    Tensor(TensorKind),
    /// Rows of typed columns.
    Table(TableKind),
}

/// What is known of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BytesKind {
    /// Length in bytes.
    pub length: Option<u64>,
    /// The image format, where a step made these bytes or their header was seen.
    pub media: Option<MediaType>,
    /// What the image's header says.
    pub header: Option<ImageHeader>,
}

/// What is known of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageKind {
    /// Width in pixels.
    pub width: Option<u32>,
    /// Height in pixels.
    pub height: Option<u32>,
}

/// What is known of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorKind {
    /// Element type.
    pub dtype: DType,
    /// Order of the axes where the tensor came from an image.
    pub layout: Layout,
    /// Extent of each axis.
    pub shape: Vec<Option<usize>>,
    /// Whether a quantisation scale travels with each value.
    pub quantized: bool,
}

/// What is known of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableKind {
    /// Its columns; of a table that is not there yet they depend on the object.
    pub schema: Option<SchemaRef>,
    /// Size of the columns in bytes.
    pub bytes: Option<u64>,
}

// === impl Kind ===

impl Kind {
    /// The kind of a stored object of which nothing is known.
    pub const fn object() -> Self {
        Self::Bytes(BytesKind {
            length: None,
            media: None,
            header: None,
        })
    }

    /// The kind of a stored object of `length` bytes that starts with `head`.
    ///
    /// `head` may be any part of the start of the object; what it does not show stays unknown.
    pub fn of_object(length: Option<u64>, head: &[u8]) -> Self {
        let header = ImageHeader::read(head);
        Self::Bytes(BytesKind {
            length,
            media: header.map(|header| header.media),
            header,
        })
    }

    /// Size of a value of this kind in bytes, where all of its dimensions are known.
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

    /// The dtype and shape that every sample's value has, where they do not depend on the sample.
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

    /// One word for error texts.
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
