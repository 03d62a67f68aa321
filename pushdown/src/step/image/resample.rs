//! Resampling, whole or only the part that a following crop keeps.
//!
//! Our own: the promise is Pillow's pixels and the same ones on every host, and that a part of a result is computed
//! as the whole would be. A library's order of passes, precision and SIMD keep none of these.

mod convolution;
mod interpolation;
mod nearest;

use crate::{Image, pipeline::choice};

choice! {
    /// Interpolation.
    pub enum Filter {
        /// Triangle.
        Bilinear = "bilinear",
        /// Cubic convolution, a = -1/2 (Pillow); a = -3/4 without antialiasing (PyTorch).
        Bicubic = "bicubic",
        /// Lanczos with three lobes.
        Lanczos = "lanczos",
        /// The nearest pixel centre.
        Nearest = "nearest",
    }
}

/// A part of an image, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Region {
    /// All of an image of `width` x `height`.
    const fn all(width: u32, height: u32) -> Self {
        Self {
            x: 0,
            y: 0,
            width,
            height,
        }
    }
}

/// Resizes `image` to `width` x `height`, both at least 1. Only bilinear and bicubic go without antialiasing.
pub(crate) fn resample(image: &Image, width: u32, height: u32, filter: Filter, antialias: bool) -> Image {
    if antialias {
        let whole = Region::all(image.width(), image.height());
        resample_part(image, whole, width, height, filter)
    } else {
        interpolation::interpolate(image, width, height, filter)
    }
}

/// Resizes the part of `image` at `part`, and only looks at that; with antialiasing.
pub(crate) fn resample_part(image: &Image, part: Region, width: u32, height: u32, filter: Filter) -> Image {
    if (width, height) == (part.width, part.height) {
        return super::crop(image, part.x.into(), part.y.into(), width, height);
    }
    let all = Region::all(width, height);
    match filter {
        Filter::Nearest => nearest::resize(image, part, (width, height), all),
        filter => convolution::resize(image, part, (width, height), filter, all),
    }
}

/// Resizes `image` to `width` x `height` with antialiasing and computes only `region` of the result: the same as
/// resizing and then cropping, bit for bit, since each output is computed by itself.
pub(crate) fn resample_region(
    image: &Image,
    width: u32,
    height: u32,
    filter: Filter,
    region: Region,
) -> Image {
    let whole = Region::all(image.width(), image.height());
    match filter {
        Filter::Nearest => nearest::resize(image, whole, (width, height), region),
        filter => convolution::resize(image, whole, (width, height), filter, region),
    }
}

/// Bytes that resizing takes between the passes, whatever the filter: the resized rows that one output row looks at,
/// and a few rows and the weights beside them.
pub(crate) fn resample_scratch(from: (u32, u32), to: (u32, u32)) -> u64 {
    /// Widest reach of a kernel to both sides, in pixels of the larger scale.
    const REACH: u64 = 6;
    let (from, to) = (
        (u64::from(from.0), u64::from(from.1)),
        (u64::from(to.0), u64::from(to.1)),
    );
    let window = (REACH * from.1.div_ceil(to.1.max(1)) + REACH).min(from.1);
    let rows = window.saturating_mul(to.0).saturating_mul(3);
    rows.saturating_add(64 * (from.0 + from.1 + to.0 + to.1))
}

#[cfg(test)]
mod tests;
