//! Resampling of whole images, or of the part that a following crop keeps.
//!
//! No library does this. The results have to equal Pillow's, be the same on every host, and not depend on the part that is
//! computed. A library's order of passes, precision and SIMD would break these properties.

mod convolution;
mod interpolation;
mod nearest;

use super::{Region, Window};
use pushdown_core::{Image, choice};

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

/// Resizes a part of an image with antialiasing and keeps a region of the result. Each output pixel is computed independently,
/// so the result equals resizing and then cropping bit for bit.
#[derive(Debug)]
pub(crate) enum Resampling {
    Nearest(nearest::NearestResampling),
    Convolution(convolution::Convolution),
}

impl Resampling {
    /// Resizes `part` to `to`, whose sides are at least 1, and crops the result to `keep`.
    pub(crate) fn new(part: Region, to: (u32, u32), filter: Filter, keep: Region) -> Self {
        match filter {
            Filter::Nearest => Self::Nearest(nearest::NearestResampling::new(part, to, keep)),
            filter => Self::Convolution(convolution::Convolution::new(part, to, filter, keep)),
        }
    }

    /// The region of the image that is read.
    pub(crate) fn input_region(&self) -> Region {
        match self {
            Self::Nearest(resampling) => resampling.input_region(),
            Self::Convolution(resampling) => resampling.input_region(),
        }
    }

    /// The result. `window` has to contain the input region.
    pub(crate) fn apply(&self, window: &Window) -> Image {
        match self {
            Self::Nearest(resampling) => resampling.run(window),
            Self::Convolution(resampling) => resampling.run(window),
        }
    }
}

/// Resizes `image` to `width` x `height` without antialiasing, as PyTorch; bilinear and bicubic only.
pub(crate) use interpolation::interpolate;

/// Upper bound of the memory between the passes for any filter: the resized rows that one output row reads, a few more rows,
/// and the weights.
pub(crate) fn resample_scratch_bytes(from: (u32, u32), to: (u32, u32)) -> u64 {
    /// Maximum width of a kernel, in pixels of the larger scale.
    const MAX_KERNEL_WIDTH: u64 = 6;
    let (from, to) = (
        (u64::from(from.0), u64::from(from.1)),
        (u64::from(to.0), u64::from(to.1)),
    );
    let window = (MAX_KERNEL_WIDTH * from.1.div_ceil(to.1.max(1)) + MAX_KERNEL_WIDTH).min(from.1);
    let rows = window.saturating_mul(to.0).saturating_mul(3);
    rows.saturating_add(64 * (from.0 + from.1 + to.0 + to.1))
}

#[cfg(test)]
mod tests;
