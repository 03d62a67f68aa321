//! The description of an image or a tensor that all forms share, and the conversion from and to values.
//!
//! A file without HTTP headers, such as npy from disk, may lack some of it; then the value is a tensor with layout `flat`.

use arrow_buffer::Buffer;

use super::header;
use pushdown_core::{DType, Error, Image, Layout, Limits, Result, Sample, Tensor};

/// Maximum number of axes of a tensor on the wire, that of NumPy 1.
pub(super) const MAX_AXES: usize = 32;

/// An image or a tensor without its elements.
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
    /// Splits an array into its shape and its elements. Returns any other value as error.
    pub(super) fn split(sample: Sample) -> Result<(Self, Buffer), Sample> {
        match sample {
            other @ (Sample::Bytes(_) | Sample::CroppedJpeg(_) | Sample::Table(_)) => Err(other),
            Sample::Image(image) => {
                let extents = vec![image.height() as usize, image.width() as usize, 3];
                let shape = Self {
                    dtype: DType::U8,
                    layout: Layout::Hwc,
                    extents,
                    scale: None,
                    image: true,
                };
                Ok((shape, image.data().clone()))
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

    /// Number of elements; `None` if it overflows.
    pub(super) fn elements(&self) -> Option<usize> {
        self.extents
            .iter()
            .try_fold(1_usize, |elements, extent| elements.checked_mul(*extent))
    }

    /// Bytes of the elements, after a check of the limits.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for more than [`MAX_AXES`] axes or a size that
    /// overflows; [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past a limit.
    pub(super) fn bytes(&self, limits: &Limits) -> Result<usize> {
        self.check_axes()?;
        let bytes = self
            .elements()
            .and_then(|elements| elements.checked_mul(self.dtype.size()));
        let bytes =
            bytes.ok_or_else(|| Error::wire(format!("the size of shape {:?} overflows", self.extents)))?;
        if bytes as u64 > limits.max_value_bytes {
            return Err(Error::too_large(format!(
                "the value is too large: expected at most {} bytes, found {bytes}",
                limits.max_value_bytes
            )));
        }
        if self.image && bytes as u64 / 3 > limits.max_pixels {
            return Err(Error::too_large(format!(
                "the image is too large: expected at most {} pixels, found {}",
                limits.max_pixels,
                bytes / 3
            )));
        }
        Ok(bytes)
    }

    /// The value with the elements `data`, which it shares.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if `data` has another length, or
    /// if the shape is not that of an image.
    pub(super) fn into_sample(self, data: Buffer, limits: &Limits) -> Result<Sample> {
        let bytes = self.bytes(limits)?;
        if data.len() != bytes {
            return Err(Error::wire(format!(
                "invalid {} value of shape {:?}: expected {bytes} bytes, found {}",
                self.dtype,
                self.extents,
                data.len()
            )));
        }
        if self.image {
            let (width, height) = self.sides().ok_or_else(|| self.not_an_image())?;
            return Image::from_data(width, height, data).map(Sample::Image);
        }
        let tensor = Tensor::new(self.dtype, self.layout, self.extents, data)?;
        Ok(Sample::Tensor(tensor.with_scale(self.scale)))
    }

    /// The entries for HTTP headers, and for the metadata of a form.
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

    /// The shape from [`metadata`](Self::metadata), with dtype and extents from the form.
    pub(super) fn from_metadata<'a>(
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
                    "invalid kind: expected an image or a tensor, found {other:?}"
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
            return Err(shape.not_an_image());
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

    fn not_an_image(&self) -> Error {
        let Self {
            dtype,
            layout,
            extents,
            ..
        } = self;
        Error::wire(format!(
            "invalid image: expected u8, hwc, [height, width, 3], found {dtype}, {layout}, {extents:?}"
        ))
    }

    /// Checks that there are at most [`MAX_AXES`] axes.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for more axes.
    pub(super) fn check_axes(&self) -> Result<()> {
        match self.extents.len() {
            0..=MAX_AXES => Ok(()),
            axes => Err(Error::wire(format!(
                "too many axes: expected at most {MAX_AXES}, found {axes}"
            ))),
        }
    }
}

/// Parses a metadata value.
pub(super) fn parse<T: std::str::FromStr>(name: &str, text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::wire(format!("invalid {name} {text:?}")))
}
