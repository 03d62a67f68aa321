//! Resampling, whole or only the part that a following crop keeps.
//!
//! Our own: the promise is Pillow's pixels and the same ones on every host, and that a part of a result is computed
//! as the whole would be. A library's order of passes, precision and SIMD keep none of these.

mod convolution;
mod interpolation;
mod nearest;

use super::{Region, Window};
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

/// Resizing a part of an image with antialiasing and keeping a region of the result: the same as resizing all and
/// then cropping, bit for bit, since each output is computed by itself.
pub(crate) enum Resampling {
    Nearest(nearest::Plan),
    Convolution(convolution::Plan),
}

impl Resampling {
    /// Resizes `part` to `to`, both sides at least 1, and keeps `keep` of that.
    pub(crate) fn new(part: Region, to: (u32, u32), filter: Filter, keep: Region) -> Self {
        match filter {
            Filter::Nearest => Self::Nearest(nearest::Plan::new(part, to, keep)),
            filter => Self::Convolution(convolution::Plan::new(part, to, filter, keep)),
        }
    }

    /// The part of the image that is looked at.
    pub(crate) fn seen(&self) -> Region {
        match self {
            Self::Nearest(plan) => plan.seen(),
            Self::Convolution(plan) => plan.seen(),
        }
    }

    /// The result for the image of which `window` has all that is seen.
    pub(crate) fn apply(&self, window: &Window) -> Image {
        match self {
            Self::Nearest(plan) => plan.run(window),
            Self::Convolution(plan) => plan.run(window),
        }
    }
}

/// Resizes `image` to `width` x `height` without antialiasing, as PyTorch; bilinear and bicubic only.
pub(crate) use interpolation::interpolate;

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
