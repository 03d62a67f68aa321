//! Steps that move pixels about: which part of an image they look at, and what they make of it.
//!
//! Whoever knows the part beforehand need not have the rest: decoding makes only what the step behind it looks at.

use super::{
    crop::crop,
    resample::{Filter, Resampling},
};
use crate::Image;

/// A part of an image, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A rectangular piece of a larger image.
#[derive(Debug)]
pub(crate) struct Window {
    image: Image,
    x: u32,
    y: u32,
}

/// What a step does to an image of one size.
pub(crate) enum Geometry {
    /// A rectangle, zero where it reaches beyond the image.
    Cut { x: i64, y: i64, width: u32, height: u32 },
    /// A resized part, or a region of one.
    Resample(Resampling),
}

impl Region {
    /// All of an image of `width` x `height`.
    pub(crate) const fn all(width: u32, height: u32) -> Self {
        Self {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    /// The rectangle as a region, where it lies within an image of `width` x `height`.
    pub(crate) fn within((x, y, w, h): (i64, i64, u32, u32), width: u32, height: u32) -> Option<Self> {
        let (x, y) = (u32::try_from(x).ok()?, u32::try_from(y).ok()?);
        let fits = x.checked_add(w)? <= width && y.checked_add(h)? <= height;
        fits.then_some(Self {
            x,
            y,
            width: w,
            height: h,
        })
    }
}

impl Window {
    /// A piece that starts at `x`, `y` of the larger image.
    pub(crate) const fn new(image: Image, x: u32, y: u32) -> Self {
        Self { image, x, y }
    }

    /// All of an image.
    pub(crate) const fn whole(image: Image) -> Self {
        Self::new(image, 0, 0)
    }

    /// The piece itself.
    pub(crate) fn into_image(self) -> Image {
        self.image
    }

    /// The rows of the larger image from `x`, `y` on, which lie in the piece, and the bytes from one to the next.
    pub(crate) fn rows(&self, x: u32, y: u32) -> (&[u8], usize) {
        let start = (y - self.y) as usize * self.image.stride() + (x - self.x) as usize * 3;
        (&self.image.pixels()[start..], self.image.stride())
    }
}

impl Geometry {
    /// A rectangle: left, top, width, height.
    pub(crate) const fn cut((x, y, width, height): (i64, i64, u32, u32)) -> Self {
        Self::Cut { x, y, width, height }
    }

    /// Resizing `part` of an image to `to`, of which `keep` remains; with antialiasing.
    pub(crate) fn resample(part: Region, to: (u32, u32), filter: Filter, keep: Region) -> Self {
        if to == (part.width, part.height) {
            return Self::Cut {
                x: i64::from(part.x) + i64::from(keep.x),
                y: i64::from(part.y) + i64::from(keep.y),
                width: keep.width,
                height: keep.height,
            };
        }
        Self::Resample(Resampling::new(part, to, filter, keep))
    }

    /// The part that is looked at of an image of `width` x `height`; never empty.
    pub(crate) fn seen(&self, width: u32, height: u32) -> Region {
        match self {
            Self::Cut {
                x,
                y,
                width: w,
                height: h,
            } => {
                let (x, w) = overlap(*x, *w, width);
                let (y, h) = overlap(*y, *h, height);
                Region {
                    x,
                    y,
                    width: w,
                    height: h,
                }
            }
            Self::Resample(resampling) => resampling.seen(),
        }
    }

    /// The result for the image of which `window` has all that is [`seen`](Self::seen).
    pub(crate) fn apply(&self, window: &Window) -> Image {
        match self {
            Self::Cut { x, y, width, height } => {
                let (x, y) = (*x - i64::from(window.x), *y - i64::from(window.y));
                crop(&window.image, x, y, *width, *height)
            }
            Self::Resample(resampling) => resampling.apply(window),
        }
    }
}

/// Where `[start, start + length)` meets `[0, limit)`, and one pixel beside it where it does not.
fn overlap(start: i64, length: u32, limit: u32) -> (u32, u32) {
    let pixel = |at: i64| u32::try_from(at.clamp(0, limit.into())).unwrap_or(limit);
    let first = pixel(start).min(limit.saturating_sub(1));
    let last = pixel(start.saturating_add(length.into()));
    (first, last.saturating_sub(first).max(1))
}
