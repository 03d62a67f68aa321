//! Resampling, whole or only the part that a following crop keeps.
//!
//! Bilinear and nearest go through `fast_image_resize`, whose passes over u8 are integer arithmetic: the same on
//! every host, whatever SIMD that has. Kernels that overshoot have a file of their own.

mod bicubic;
mod exact;
mod region;

use std::cell::RefCell;

use fast_image_resize::{
    FilterType, ImageView, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedCroppedImage as Part, TypedImage as Canvas, TypedImageRef as View},
    pixels::U8x3,
};

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
pub(crate) fn resample(
    image: &Image,
    width: u32,
    height: u32,
    filter: Filter,
    antialias: bool,
) -> Result<Image> {
    match (filter, antialias) {
        (Filter::Bicubic, false) => Ok(bicubic::interpolate(image, width, height)),
        (Filter::Bilinear, false) => pass(
            &image.view()?,
            width,
            height,
            &options(ResizeAlg::Interpolation(filter.kernel()?)),
        ),
        _ => {
            let whole = Region {
                x: 0,
                y: 0,
                width: image.width(),
                height: image.height(),
            };
            resample_part(image, whole, width, height, filter)
        }
    }
}

/// Resizes the part of `image` at `part`, and only looks at that; with antialiasing.
pub(crate) fn resample_part(
    image: &Image,
    part: Region,
    width: u32,
    height: u32,
    filter: Filter,
) -> Result<Image> {
    if (width, height) == (part.width, part.height) {
        return Ok(super::crop(image, part.x.into(), part.y.into(), width, height));
    }
    if filter.overshoots() {
        return Ok(exact::resize(
            image,
            part,
            (width, height),
            filter,
            Region {
                x: 0,
                y: 0,
                width,
                height,
            },
        ));
    }
    let source = Part::new(image.view()?, part.x, part.y, part.width, part.height).map_err(failed)?;
    let algorithm = match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        filter => ResizeAlg::Convolution(filter.kernel()?),
    };
    pass(&source, width, height, &options(algorithm))
}

/// Resizes `image` to `width` x `height` with antialiasing and keeps only `region` of the result: the same as
/// resizing and then cropping, bit for bit.
pub(crate) fn resample_region(
    image: &Image,
    width: u32,
    height: u32,
    filter: Filter,
    region: Region,
) -> Result<Image> {
    if filter.overshoots() {
        let whole = Region {
            x: 0,
            y: 0,
            width: image.width(),
            height: image.height(),
        };
        return Ok(exact::resize(image, whole, (width, height), filter, region));
    }
    region::resize(image, width, height, filter, region)
}

/// One call of the library.
fn pass(
    source: &impl ImageView<Pixel = U8x3>,
    width: u32,
    height: u32,
    options: &ResizeOptions,
) -> Result<Image> {
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
            other => Err(Error::internal(format!(
                "{} is no kernel of the library",
                other.name()
            ))),
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

#[cfg(test)]
mod tests;
