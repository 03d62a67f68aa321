//! The value of a sample at a stage.

use std::borrow::Cow;

use arrow_buffer::{ArrowNativeType, Buffer};
use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};

use crate::{CroppedJpeg, DType, Error, Layout, Result, Table};

/// The value of one sample, at any stage of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// A stored object, or an encoded image.
    Bytes(Bytes),
    /// A part of a stored JPEG, in place of the object: only what decodes no more than that part accepts it.
    CroppedJpeg(CroppedJpeg),
    /// Pixels.
    Image(Image),
    /// An array without batch axis.
    Tensor(Tensor),
    /// Rows of typed columns.
    Table(Table),
}

/// Pixels: height x width x 3, u8, RGB, rows without padding. Clones share the pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Buffer,
}

/// An array: dtype, shape and little-endian elements in row-major order. Clones share the elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    layout: Layout,
    shape: Vec<usize>,
    data: Buffer,
    scale: Option<f32>,
}

impl Sample {
    /// Size of the value on the wire in bytes, without framing.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::CroppedJpeg(crop) => crop.bytes().len() as u64,
            Self::Image(image) => image.pixels.len() as u64,
            Self::Tensor(tensor) => tensor.data.len() as u64,
            Self::Table(table) => table.bytes(),
        }
    }
}

impl Image {
    /// An image of `width` x `height` from `width * height * 3` bytes of RGB.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidWire`](crate::ErrorKind) if the lengths do not match, or the width or height is 0.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Result<Self> {
        Self::from_data(width, height, Buffer::from_vec(pixels))
    }

    /// The same over a buffer that others may share.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_data(width: u32, height: u32, pixels: Buffer) -> Result<Self> {
        let expected = u128::from(width) * u128::from(height) * 3;
        if expected == 0 || pixels.len() as u128 != expected {
            return Err(Error::wire(format!(
                "invalid image of {width}x{height}: expected {expected} bytes, found {}",
                pixels.len()
            )));
        }
        Ok(Self {
            width,
            height,
            pixels,
        })
    }

    /// An image whose `pixels` the caller has sized for `width` and `height`.
    pub fn from_parts(width: u32, height: u32, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len(), width as usize * height as usize * 3);
        Self {
            width,
            height,
            pixels: Buffer::from_vec(pixels),
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

    /// The pixels, which other values may share.
    pub const fn data(&self) -> &Buffer {
        &self.pixels
    }

    /// The pixels, to change in place; copied only if they are shared.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
            .into_vec()
            .unwrap_or_else(|shared| shared.as_slice().to_vec())
    }

    /// The same image after `change` of its pixels, in place unless they are shared.
    #[must_use]
    pub fn map_pixels(self, change: impl FnOnce(&mut [u8])) -> Self {
        let (width, height) = (self.width, self.height);
        let mut pixels = self.into_pixels();
        change(&mut pixels);
        Self::from_parts(width, height, pixels)
    }

    /// Bytes in a row.
    pub const fn stride(&self) -> usize {
        self.width as usize * 3
    }
}

impl Tensor {
    /// A tensor over bytes received on the wire.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidWire`](crate::ErrorKind) if `data` does not have `product(shape) * dtype.size()` bytes.
    pub fn new(dtype: DType, layout: Layout, shape: Vec<usize>, data: Buffer) -> Result<Self> {
        let bytes = shape
            .iter()
            .try_fold(dtype.size(), |bytes, extent| bytes.checked_mul(*extent));
        if bytes != Some(data.len()) {
            return Err(Error::wire(format!(
                "invalid {dtype} tensor: {} bytes do not match shape {shape:?}",
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

    /// A tensor over computed elements. `values` has `product(shape)` elements.
    pub fn from_values<T: Element>(layout: Layout, shape: Vec<usize>, values: Vec<T>) -> Self {
        debug_assert_eq!(values.len(), shape.iter().product::<usize>());
        Self {
            dtype: T::DTYPE,
            layout,
            shape,
            data: Buffer::from_vec(bytemuck::cast_vec::<T, T::Stored>(values)),
            scale: None,
        }
    }

    /// Sets the quantisation scale of int8 codes.
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

    /// Size of each axis.
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

    /// The elements; copied only if their bytes are not aligned. `T` has to match the dtype.
    pub fn values<T: Element>(&self) -> Cow<'_, [T]> {
        debug_assert_eq!(self.dtype, T::DTYPE);
        match bytemuck::try_cast_slice(self.data.as_slice()) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(self.data.as_slice())),
        }
    }

    /// The elements, to change in place; copied only if the buffer is shared or not aligned.
    pub fn into_values<T: Element>(self) -> Vec<T> {
        match self.data.into_vec::<T::Stored>() {
            Ok(values) => bytemuck::cast_vec(values),
            Err(data) => bytemuck::pod_collect_to_vec(data.as_slice()),
        }
    }
}

/// The Rust type of the elements of a [`DType`].
pub trait Element: Pod {
    /// The dtype.
    const DTYPE: DType;
    /// The type in the buffer: the type itself, or an integer of its bits if Arrow lacks the type.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_an_image_share_its_pixels_until_one_changes_them() {
        let image = Image::from_parts(2, 1, vec![1, 2, 3, 4, 5, 6]);
        let clone = image.clone();
        assert_eq!(clone.pixels().as_ptr(), image.pixels().as_ptr());
        let changed = clone.map_pixels(|pixels| pixels[0] = 9);
        assert_eq!(changed.pixels(), [9, 2, 3, 4, 5, 6]);
        assert_eq!(image.pixels(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_only_owner_changes_pixels_in_place() {
        let image = Image::from_parts(1, 1, vec![1, 2, 3]);
        let address = image.pixels().as_ptr();
        let changed = image.map_pixels(<[u8]>::reverse);
        assert_eq!(
            (changed.pixels(), changed.pixels().as_ptr()),
            (&[3, 2, 1][..], address)
        );
    }
}
