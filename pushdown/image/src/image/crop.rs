//! `crop`: a rectangle of an image, padded with zeros outside it.

use super::{Geometry, Rectangle, Window};
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, Param, Side, Value},
    step::{Operator, Scope},
};

/// `crop`, as torchvision's `functional.crop`.
#[derive(Debug, Clone, PartialEq)]
pub struct Crop {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

impl Operator for Crop {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "crop";
    const SUMMARY: &'static str = "a rectangle, padded with zeros outside the image";
    const FAMILIES: &'static [Family] = &[Family::Resample];
    const PARAMS: &'static [Param] = &[
        Param::positional("x", "pixels", "left edge"),
        Param::positional("y", "pixels", "top edge"),
        Param::positional("w", "pixels", "width"),
        Param::positional("h", "pixels", "height"),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let offset = |name: &str| {
            let offset: u64 = args.required(name)?;
            u32::try_from(offset)
                .map_err(|_| args.fault(format!("`{name}` is {offset}, expected at most {}", u32::MAX)))
        };
        let Side(width) = args.required("w")?;
        let Side(height) = args.required("h")?;
        Ok(Self {
            x: offset("x")?,
            y: offset("y")?,
            width,
            height,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        [
            ("x", self.x),
            ("y", self.y),
            ("w", self.width),
            ("h", self.height),
        ]
        .map(|(name, pixels)| (name, Value::Int(pixels.into())))
        .into()
    }

    fn output(&self, _: &ImageKind) -> Result<ImageKind, String> {
        Ok(ImageKind {
            width: Some(self.width),
            height: Some(self.height),
        })
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Image> {
        Ok(Geometry::crop(self.rectangle()).apply(&Window::whole(input)))
    }
}

impl Crop {
    /// The rectangle of any image.
    pub fn rectangle(&self) -> Rectangle {
        Rectangle {
            x: self.x.into(),
            y: self.y.into(),
            width: self.width,
            height: self.height,
        }
    }
}

/// The pixels of a rectangle; those outside the image are zero.
pub(super) fn crop(image: &Image, rectangle: Rectangle) -> Image {
    let Rectangle { x, y, width, height } = rectangle;
    let columns = overlap(x, width, image.width());
    let rows = overlap(y, height, image.height());
    if columns.length == width as usize && rows.length == height as usize {
        let pixels = copy_rectangle(
            image.pixels(),
            image.stride(),
            columns.source,
            rows.source,
            width,
            height,
        );
        return Image::from_parts(width, height, pixels);
    }
    let mut pixels = vec![0; width as usize * height as usize * 3];
    if columns.length == 0 {
        return Image::from_parts(width, height, pixels);
    }
    let bytes = columns.length * 3;
    for row in 0..rows.length {
        let from = (rows.source + row) * image.stride() + columns.source * 3;
        let to = (rows.target + row) * width as usize * 3 + columns.target * 3;
        pixels[to..to + bytes].copy_from_slice(&image.pixels()[from..from + bytes]);
    }
    Image::from_parts(width, height, pixels)
}

/// The rectangle at `x`, `y`. It has to lie within `pixels`, whose rows have `stride` bytes.
fn copy_rectangle(pixels: &[u8], stride: usize, x: usize, y: usize, width: u32, height: u32) -> Vec<u8> {
    let bytes = width as usize * 3;
    let mut rectangle = Vec::with_capacity(bytes * height as usize);
    for row in y..y + height as usize {
        rectangle.extend_from_slice(&pixels[row * stride + x * 3..][..bytes]);
    }
    rectangle
}

/// The intersection of a range and an image axis, in pixels.
struct Overlap {
    /// Its start in the image.
    source: usize,
    /// Its start in the range.
    target: usize,
    length: usize,
}

/// The intersection of `[start, start + length)` and `[0, limit)`.
fn overlap(start: i64, length: u32, limit: u32) -> Overlap {
    let first = start.clamp(0, limit.into());
    let last = (start + i64::from(length)).clamp(first, limit.into());
    let index = |value: i64| usize::try_from(value).unwrap_or_default();
    Overlap {
        source: index(first),
        target: index(first - start),
        length: index(last - first),
    }
}
