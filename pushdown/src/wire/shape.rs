//! What every form says of an image or a tensor, and how a value is made of it again.
//!
//! A form that stands alone (npy from disk, say) may lack some of it; then the value is a tensor without layout.

use arrow_buffer::Buffer;

use super::header;
use crate::{DType, Error, Image, Layout, Limits, Result, Sample, Tensor};

/// The most axes of a tensor on the wire: as many as numpy 1 knows.
pub(super) const MAX_AXES: usize = 32;

/// Everything about an image or a tensor but its elements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) extents: Vec<usize>,
    pub(super) scale: Option<f32>,
    /// Pixels: dtype u8, layout HWC, three channels.
    pub(super) image: bool,
}

impl Shape {
    /// Splits an array into what is said of it and its elements; any other value is given back as it is.
    pub(super) fn take(sample: Sample) -> Result<(Self, Buffer), Sample> {
        match sample {
            other @ (Sample::Bytes(_) | Sample::Table(_)) => Err(other),
            Sample::Image(image) => {
                let extents = vec![image.height() as usize, image.width() as usize, 3];
                let shape = Self {
                    dtype: DType::U8,
                    layout: Layout::Hwc,
                    extents,
                    scale: None,
                    image: true,
                };
                Ok((shape, Buffer::from_vec(image.into_pixels())))
            }
            Sample::Tensor(tensor) => {
                let shape = Self {
                    dtype: tensor.dtype(),
                    layout: tensor.layout(),
                    extents: tensor.shape().to_vec(),
                    scale: tensor.scale(),
                    image: false,
                };
                Ok((shape, tensor.data().clone()))
            }
        }
    }

    /// Number of elements, unless it is beyond the address space.
    pub(super) fn elements(&self) -> Option<usize> {
        self.extents
            .iter()
            .try_fold(1_usize, |elements, extent| elements.checked_mul(*extent))
    }

    /// Bytes of the elements, held against the limits.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for more axes than [`MAX_AXES`] or a product beyond
    /// the address space; [`TooLarge`](crate::ErrorKind::TooLarge) past a limit.
    pub(super) fn bytes(&self, limits: &Limits) -> Result<usize> {
        self.check_axes()?;
        let bytes = self
            .elements()
            .and_then(|elements| elements.checked_mul(self.dtype.size()));
        let bytes = bytes.ok_or_else(|| Error::wire(format!("the shape {:?} overflows", self.extents)))?;
        if bytes as u64 > limits.max_value_bytes {
            return Err(Error::too_large(format!(
                "a value of {bytes} bytes is more than the limit of {}",
                limits.max_value_bytes
            )));
        }
        if self.image && bytes as u64 / 3 > limits.max_pixels {
            return Err(Error::too_large(format!(
                "an image of {} pixels is more than the limit of {}",
                bytes / 3,
                limits.max_pixels
            )));
        }
        Ok(bytes)
    }

    /// Makes the value; `data` holds exactly its elements. Tensors share them, pixels are copied where they are
    /// shared already.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); [`InvalidWire`](crate::ErrorKind::InvalidWire) where `data` is shorter or
    /// longer, or where an image is none.
    pub(super) fn give(self, data: Buffer, limits: &Limits) -> Result<Sample> {
        let bytes = self.bytes(limits)?;
        if data.len() != bytes {
            return Err(Error::wire(format!(
                "a {} value of shape {:?} has {bytes} bytes, found {}",
                self.dtype,
                self.extents,
                data.len()
            )));
        }
        if self.image {
            let (width, height) = self.sides().ok_or_else(|| self.no_image())?;
            let pixels = data.into_vec().unwrap_or_else(|shared| shared.to_vec());
            return Image::new(width, height, pixels).map(Sample::Image);
        }
        let tensor = Tensor::new(self.dtype, self.layout, self.extents, data)?;
        Ok(Sample::Tensor(tensor.with_scale(self.scale)))
    }

    /// What goes into HTTP headers, and into the metadata of the forms that have any.
    pub(super) fn metadata(&self) -> Vec<(&'static str, String)> {
        let mut metadata = vec![
            (
                header::KIND,
                if self.image { "image" } else { "tensor" }.to_owned(),
            ),
            (header::DTYPE, self.dtype.to_string()),
            (
                header::SHAPE,
                self.extents
                    .iter()
                    .map(usize::to_string)
                    .collect::<Vec<_>>()
                    .join(","),
            ),
            (header::LAYOUT, self.layout.to_string()),
        ];
        metadata.extend(self.scale.map(|scale| (header::SCALE, scale.to_string())));
        metadata
    }

    /// Reads what [`metadata`](Self::metadata) wrote beside dtype and shape, which the form itself has.
    pub(super) fn described<'a>(
        dtype: DType,
        extents: Vec<usize>,
        get: impl Fn(&'static str) -> Option<&'a str>,
    ) -> Result<Self> {
        let layout = get(header::LAYOUT)
            .map(|name| parse(header::LAYOUT, name))
            .transpose()?;
        let scale = get(header::SCALE)
            .map(|scale| parse(header::SCALE, scale))
            .transpose()?;
        let image = match get(header::KIND) {
            None | Some("tensor") => false,
            Some("image") => true,
            Some(other) => {
                return Err(Error::wire(format!(
                    "found a value of kind {other:?}, expected an array"
                )));
            }
        };
        let shape = Self {
            dtype,
            layout: layout.unwrap_or(Layout::Flat),
            extents,
            scale,
            image,
        };
        if image && shape.sides().is_none() {
            return Err(shape.no_image());
        }
        Ok(shape)
    }

    /// Width and height of an image.
    fn sides(&self) -> Option<(u32, u32)> {
        match (self.dtype, self.layout, self.extents.as_slice()) {
            (DType::U8, Layout::Hwc, [height, width, 3]) => {
                Some((u32::try_from(*width).ok()?, u32::try_from(*height).ok()?))
            }
            _ => None,
        }
    }

    fn no_image(&self) -> Error {
        let Self {
            dtype,
            layout,
            extents,
            ..
        } = self;
        Error::wire(format!(
            "found an image of {dtype}, {layout}, {extents:?}; expected u8, hwc, [height, width, 3]"
        ))
    }

    /// Checks that there are at most [`MAX_AXES`].
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for more.
    pub(super) fn check_axes(&self) -> Result<()> {
        match self.extents.len() {
            0..=MAX_AXES => Ok(()),
            axes => Err(Error::wire(format!(
                "found {axes} axes, expected at most {MAX_AXES}"
            ))),
        }
    }
}

/// Reads a word of metadata.
pub(super) fn parse<T: std::str::FromStr>(name: &str, text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::wire(format!("found {name} {text:?}, which cannot be read")))
}
