//! Geometric steps: the region of the input that they read, and their result.
//!
//! A step that knows the region in advance can skip the rest: decoding produces only what the next step reads.

use super::{
    crop::crop,
    resample::{Filter, Resampling},
};
use pushdown_core::Image;

/// A rectangle within an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The first column.
    pub x: u32,
    /// The first row.
    pub y: u32,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

/// A rectangle in the plane of an image, in pixels. It may extend beyond any edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    /// The first column.
    pub x: i64,
    /// The first row.
    pub y: i64,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

/// A rectangular part of a larger image, with its position.
#[derive(Debug)]
pub struct Window {
    image: Image,
    x: u32,
    y: u32,
}

/// The effect of a step on images of one size.
#[derive(Debug)]
pub struct Geometry(Effect);

#[derive(Debug)]
enum Effect {
    /// A rectangle, padded with zeros outside the image.
    Crop(Rectangle),
    /// A resized region, or a part of one.
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

    /// The rectangle as a region; `None` if it is not within an image of `width` x `height`.
    pub fn within(rectangle: Rectangle, width: u32, height: u32) -> Option<Self> {
        let region = Self {
            x: u32::try_from(rectangle.x).ok()?,
            y: u32::try_from(rectangle.y).ok()?,
            width: rectangle.width,
            height: rectangle.height,
        };
        let fits =
            region.x.checked_add(region.width)? <= width && region.y.checked_add(region.height)? <= height;
        fits.then_some(region)
    }
}

impl Window {
    /// A part that starts at `x`, `y` of the larger image.
    pub(crate) const fn new(image: Image, x: u32, y: u32) -> Self {
        Self { image, x, y }
    }

    /// The same part of an image that has more columns to the left and more rows above.
    pub(crate) fn moved(self, columns: u32, rows: u32) -> Self {
        let (x, y) = (self.x + columns, self.y + rows);
        Self { x, y, ..self }
    }

    /// All of an image.
    pub const fn whole(image: Image) -> Self {
        Self::new(image, 0, 0)
    }

    /// The part, without its position.
    pub(crate) fn into_image(self) -> Image {
        self.image
    }

    /// The pixels from `x`, `y` of the larger image on, and the bytes of a row. The position has to be in the part.
    pub(crate) fn rows(&self, x: u32, y: u32) -> (&[u8], usize) {
        let start = (y - self.y) as usize * self.image.stride() + (x - self.x) as usize * 3;
        (&self.image.pixels()[start..], self.image.stride())
    }
}

impl Geometry {
    /// A rectangle of the image.
    pub const fn crop(rectangle: Rectangle) -> Self {
        Self(Effect::Crop(rectangle))
    }

    /// Resizes `part` of an image to the size `to`, with antialiasing, and crops the result to `keep`.
    pub(crate) fn resample(part: Region, to: (u32, u32), filter: Filter, keep: Region) -> Self {
        if to == (part.width, part.height) {
            return Self::crop(Rectangle {
                x: i64::from(part.x) + i64::from(keep.x),
                y: i64::from(part.y) + i64::from(keep.y),
                width: keep.width,
                height: keep.height,
            });
        }
        Self(Effect::Resample(Resampling::new(part, to, filter, keep)))
    }

    /// The region that is read of an image of `width` x `height`. Never empty.
    pub fn input_region(&self, width: u32, height: u32) -> Region {
        match &self.0 {
            Effect::Crop(rectangle) => {
                let (x, columns) = overlap(rectangle.x, rectangle.width, width);
                let (y, rows) = overlap(rectangle.y, rectangle.height, height);
                Region {
                    x,
                    y,
                    width: columns,
                    height: rows,
                }
            }
            Effect::Resample(resampling) => resampling.input_region(),
        }
    }

    /// The result. `window` has to contain the [`input_region`](Self::input_region) of the image.
    pub fn apply(&self, window: &Window) -> Image {
        match &self.0 {
            Effect::Crop(rectangle) => {
                let in_window = Rectangle {
                    x: rectangle.x - i64::from(window.x),
                    y: rectangle.y - i64::from(window.y),
                    ..*rectangle
                };
                crop(&window.image, in_window)
            }
            Effect::Resample(resampling) => resampling.apply(window),
        }
    }
}

/// Start and length of the intersection of `[start, start + length)` and `[0, limit)`; one pixel if it is empty.
fn overlap(start: i64, length: u32, limit: u32) -> (u32, u32) {
    let pixel = |position: i64| u32::try_from(position.clamp(0, limit.into())).unwrap_or(limit);
    let first = pixel(start).min(limit.saturating_sub(1));
    let last = pixel(start.saturating_add(length.into()));
    (first, last.saturating_sub(first).max(1))
}
