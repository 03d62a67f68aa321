//! Resampling through `fast_image_resize`, whole or only the part that a following crop keeps.
//!
//! Its passes over u8 are integer arithmetic: the same on every host, whatever SIMD that has.

mod bicubic;
mod fine;
mod region;

use std::cell::RefCell;

use fast_image_resize::{
    FilterType, ImageView, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedCroppedImage as Part, TypedImage as Canvas, TypedImageRef as View},
    pixels::U8x3,
};

use fine::{Rows, resize_finely};
pub(crate) use region::resample_region;

use crate::{Error, Image, Result, pipeline::choice};

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

/// Buffers larger than this are given back after use: a thread lives long, large images are rare.
const KEPT_BUFFER: usize = 8 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// What a thread keeps from one image to the next.
#[derive(Default)]
struct Scratch {
    resizer: Resizer,
    /// After the first pass.
    first: Vec<u8>,
    /// After the second pass, where it computes more than is kept.
    second: Vec<u8>,
}

/// Resizes `image` to `width` x `height`, both at least 1.
pub(crate) fn resample(image: &Image, width: u32, height: u32, filter: Filter, antialias: bool) -> Result<Image> {
    let whole = Region { x: 0, y: 0, width: image.width(), height: image.height() };
    match filter {
        Filter::Bicubic if !antialias => Ok(bicubic::interpolate(image, width, height)),
        Filter::Nearest | Filter::Bilinear | Filter::Bicubic | Filter::Lanczos if antialias => {
            resample_part(image, whole, width, height, filter)
        }
        filter => pass(&image.view()?, width, height, &options(ResizeAlg::Interpolation(filter.kernel()?))),
    }
}

/// Resizes the part of `image` at `part`, and only looks at that; with antialiasing.
pub(crate) fn resample_part(image: &Image, part: Region, width: u32, height: u32, filter: Filter) -> Result<Image> {
    if (width, height) == (part.width, part.height) {
        return Ok(super::crop(image, part.x.into(), part.y.into(), width, height));
    }
    let source = Part::new(image.view()?, part.x, part.y, part.width, part.height).map_err(failed)?;
    if filter == Filter::Nearest {
        return pass(&source, width, height, &options(ResizeAlg::Nearest));
    }
    let options = options(ResizeAlg::Convolution(filter.kernel()?));
    if filter.overshoots() {
        return overshooting(image, part, (width, height), &options);
    }
    pass(&source, width, height, &options)
}

/// Both passes, or the one that is needed, in Pillow's order and precision.
fn overshooting(image: &Image, part: Region, size: (u32, u32), options: &ResizeOptions) -> Result<Image> {
    let had = (part.width, part.height);
    let between = if columns_first(had, size) { (size.0, had.1) } else { (had.0, size.1) };
    let step = |image: &Image, part: Region, (width, height): (u32, u32)| {
        let mut pixels = vec![0; width as usize * height as usize * 3];
        let source = Rows { pixels: image.pixels(), stride: image.stride() };
        let mut target = Rows { pixels: pixels.as_mut_slice(), stride: width as usize * 3 };
        SCRATCH.with_borrow_mut(|Scratch { resizer, .. }| {
            resize_finely(resizer, &source, part, (width, height), options, &mut target)
        })?;
        Ok(Image::from_parts(width, height, pixels))
    };
    if between == had || between == size {
        return step(image, part, size);
    }
    let between = step(image, part, between)?;
    step(&between, Region { x: 0, y: 0, width: between.width(), height: between.height() }, size)
}

/// One call of the library.
fn pass(source: &impl ImageView<Pixel = U8x3>, width: u32, height: u32, options: &ResizeOptions) -> Result<Image> {
    let mut pixels = vec![0; width as usize * height as usize * 3];
    let mut canvas = Canvas::<U8x3>::from_buffer(width, height, &mut pixels).map_err(failed)?;
    SCRATCH.with_borrow_mut(|Scratch { resizer, .. }| {
        let done = resizer.resize_typed(source, &mut canvas, options).map_err(failed);
        if resizer.size_of_internal_buffers() > KEPT_BUFFER {
            resizer.reset_internal_buffers();
        }
        done
    })?;
    Ok(Image::from_parts(width, height, pixels))
}

fn options(algorithm: ResizeAlg) -> ResizeOptions {
    ResizeOptions::new().resize_alg(algorithm).use_alpha(false)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("resizing failed: {error}"))
}

impl Image {
    fn view(&self) -> Result<View<'_, U8x3>> {
        View::from_buffer(self.width(), self.height(), self.pixels()).map_err(failed)
    }
}

impl Filter {
    fn kernel(self) -> Result<FilterType> {
        match self {
            Self::Bilinear => Ok(FilterType::Bilinear),
            Self::Bicubic => Ok(FilterType::CatmullRom),
            Self::Lanczos => Ok(FilterType::Lanczos3),
            Self::Nearest => Err(Error::internal("nearest has no kernel")),
        }
    }

    /// Reach of the kernel to either side, in pixels of the larger scale.
    const fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.0,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// Whether the kernel has negative parts, so that it may leave the range of the values it weighs.
    const fn overshoots(self) -> bool {
        matches!(self, Self::Bicubic | Self::Lanczos)
    }
}

/// Whether Pillow changes the number of columns before that of rows, from 13.0 on: unless the image loses more than
/// twice as many rows as columns.
///
/// The library starts with the rows, which is faster. For kernels that stay within the values they weigh the order
/// shows by a level at most; where others overshoot, what is cut off between the passes shows.
fn columns_first((from_width, from_height): (u32, u32), (width, height): (u32, u32)) -> bool {
    let rows_lost = i64::from(from_height) - i64::from(height);
    let columns_lost = i64::from(from_width) - i64::from(width);
    rows_lost <= 0 || rows_lost <= 2 * columns_lost
}

#[cfg(test)]
mod tests;
