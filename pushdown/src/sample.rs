//! A sample's value at a stage.

use std::borrow::Cow;

use arrow_buffer::{ArrowNativeType, Buffer};
use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};

use crate::{DType, Error, Layout, Result, Table};

/// The value of one sample, at any stage of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// An object as it is stored, or an encoded image.
    Bytes(Bytes),
    /// Pixels.
    Image(Image),
    /// An array without batch axis.
    Tensor(Tensor),
    /// Rows of typed columns.
    Table(Table),
}

/// Pixels: height x width x 3, u8, RGB, rows without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

/// An array: dtype, shape and little-endian elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    layout: Layout,
    shape: Vec<usize>,
    data: Buffer,
    scale: Option<f32>,
}

// === impl Sample ===

impl Sample {
    /// Size of the value in bytes, as it travels (framing apart).
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Image(image) => image.pixels.len() as u64,
            Self::Tensor(tensor) => tensor.data.len() as u64,
            Self::Table(table) => table.bytes(),
        }
    }
}

// === impl Image ===

impl Image {
    /// An image of `width` x `height` from `width * height * 3` bytes of RGB.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidWire`](crate::ErrorKind) when the lengths do not agree, or a side is 0.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Result<Self> {
        let expected = u128::from(width) * u128::from(height) * 3;
        if expected == 0 || pixels.len() as u128 != expected {
            return Err(Error::wire(format!(
                "an image of {width}x{height} has {expected} bytes, found {}",
                pixels.len()
            )));
        }
        Ok(Self {
            width,
            height,
            pixels,
        })
    }

    /// An image made row by row. `width` and `height` are those of `pixels`, which the caller just sized.
    pub(crate) fn from_parts(width: u32, height: u32, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len(), width as usize * height as usize * 3);
        Self {
            width,
            height,
            pixels,
        }
    }

    /// Width in pixels.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// The pixels, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// Gives the pixels up.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// Bytes in a row.
    pub const fn stride(&self) -> usize {
        self.width as usize * 3
    }
}

// === impl Tensor ===

impl Tensor {
    /// A tensor over bytes that came from a wire.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidWire`](crate::ErrorKind) when `data` has not `product(shape) * dtype.size()` bytes.
    pub fn new(dtype: DType, layout: Layout, shape: Vec<usize>, data: Buffer) -> Result<Self> {
        let bytes = shape
            .iter()
            .try_fold(dtype.size(), |bytes, extent| bytes.checked_mul(*extent));
        if bytes != Some(data.len()) {
            return Err(Error::wire(format!(
                "a {dtype} tensor of shape {shape:?} does not have {} bytes",
                data.len()
            )));
        }
        Ok(Self {
            dtype,
            layout,
            shape,
            data,
            scale: None,
        })
    }

    /// A tensor over elements that a step computed; `values` has as many as `shape` says.
    pub(crate) fn from_values<T: Element>(layout: Layout, shape: Vec<usize>, values: Vec<T>) -> Self {
        debug_assert_eq!(values.len(), shape.iter().product::<usize>());
        Self {
            dtype: T::DTYPE,
            layout,
            shape,
            data: Buffer::from_vec(bytemuck::cast_vec::<T, T::Stored>(values)),
            scale: None,
        }
    }

    /// The same tensor with the scale that its int8 codes are multiples of.
    #[must_use]
    pub fn with_scale(mut self, scale: Option<f32>) -> Self {
        self.scale = scale;
        self
    }

    /// Element type.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Axis order.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements as little-endian bytes.
    pub const fn data(&self) -> &Buffer {
        &self.data
    }

    /// The quantisation scale: the value of code 1.
    pub const fn scale(&self) -> Option<f32> {
        self.scale
    }

    /// The elements; copied only where their bytes are not aligned. `T` is of this tensor's dtype.
    pub(crate) fn values<T: Element>(&self) -> Cow<'_, [T]> {
        debug_assert_eq!(self.dtype, T::DTYPE);
        match bytemuck::try_cast_slice(self.data.as_slice()) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(self.data.as_slice())),
        }
    }

    /// The elements to change in place; copied only where the buffer is shared or not aligned.
    pub(crate) fn into_values<T: Element>(self) -> Vec<T> {
        match self.data.into_vec::<T::Stored>() {
            Ok(values) => bytemuck::cast_vec(values),
            Err(data) => bytemuck::pod_collect_to_vec(data.as_slice()),
        }
    }
}

/// A Rust type that is the element type of a [`DType`].
pub(crate) trait Element: Pod {
    const DTYPE: DType;
    /// What the buffer holds: the type itself, or its bits where Arrow does not know it.
    type Stored: ArrowNativeType + Pod;
}

macro_rules! elements {
    ($($element:ty: $dtype:ident as $stored:ty),+ $(,)?) => {$(
        impl Element for $element {
            const DTYPE: DType = DType::$dtype;
            type Stored = $stored;
        }
    )+};
}

elements! {
    u8: U8 as u8,
    i8: I8 as i8,
    i32: I32 as i32,
    i64: I64 as i64,
    f16: F16 as f16,
    bf16: Bf16 as u16,
    f32: F32 as f32,
}
