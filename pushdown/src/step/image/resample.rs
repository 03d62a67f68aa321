//! Resampling through `fast_image_resize`, whole or only the part that a following crop keeps.

use std::cell::RefCell;

use fast_image_resize::{
    FilterType, ImageView, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedCroppedImage as Part, TypedCroppedImageMut as PartMut, TypedImage as Canvas, TypedImageRef as View},
    pixels::U8x3,
};

use super::crop::cut;
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

/// A part of a resized image, in pixels of the result.
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
    /// After the first pass: the source's columns, the result's rows.
    squeezed: Vec<u8>,
    /// After the second pass: the result's columns, the kept rows.
    stretched: Vec<u8>,
}

/// Resizes `image` to `width` x `height`, both at least 1.
pub(crate) fn resample(image: &Image, width: u32, height: u32, filter: Filter, antialias: bool) -> Result<Image> {
    if (width, height) == (image.width(), image.height()) {
        return Ok(image.clone());
    }
    match (filter, antialias) {
        (Filter::Nearest, _) => pass(&image.view()?, width, height, &options(ResizeAlg::Nearest)),
        (filter, true) => pass(&image.view()?, width, height, &options(ResizeAlg::Convolution(filter.kernel()?))),
        (Filter::Bicubic, false) => replicated_bicubic(image, width, height),
        (filter, false) => pass(&image.view()?, width, height, &options(ResizeAlg::Interpolation(filter.kernel()?))),
    }
}

/// Resizes the part of `image` at `part`, and only looks at that.
pub(crate) fn resample_part(image: &Image, part: Region, width: u32, height: u32, filter: Filter) -> Result<Image> {
    if (width, height) == (part.width, part.height) {
        return Ok(super::crop(image, part.x.into(), part.y.into(), width, height));
    }
    let part = Part::new(image.view()?, part.x, part.y, part.width, part.height).map_err(failed)?;
    let algorithm = match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        filter => ResizeAlg::Convolution(filter.kernel()?),
    };
    pass(&part, width, height, &options(algorithm))
}

/// Resizes `image` to `width` x `height` with antialiasing and keeps only `region` of the result.
///
/// The same as resizing and then cropping, bit for bit: both passes use the coefficients of the whole image, the
/// first on the columns that the kept ones look at, the second on the rows that are kept.
pub(crate) fn resample_region(image: &Image, width: u32, height: u32, filter: Filter, region: Region) -> Result<Image> {
    let options = options(ResizeAlg::Convolution(filter.kernel()?));
    let wide = image.width();
    SCRATCH.with_borrow_mut(|Scratch { resizer, squeezed, stretched }| {
        let rows = if height == image.height() {
            image.pixels()
        } else {
            // The columns beside the window keep what they held: those that are kept never look at them.
            let columns = filter.source_columns(wide, width, region);
            let kept = columns.end - columns.start;
            let buffer = sized(squeezed, wide, height);
            let mut canvas = Canvas::<U8x3>::from_buffer(wide, height, buffer).map_err(failed)?;
            let source = Part::new(image.view()?, columns.start, 0, kept, image.height()).map_err(failed)?;
            let mut target = PartMut::from_ref(&mut canvas, columns.start, 0, kept, height).map_err(failed)?;
            resizer.resize_typed(&source, &mut target, &options).map_err(failed)?;
            sized(squeezed, wide, height)
        };
        let first_row = region.y as usize * wide as usize * 3;
        let rows = &rows[first_row..][..region.height as usize * wide as usize * 3];
        let rows = if width == wide {
            rows
        } else {
            let kept = View::<U8x3>::from_buffer(wide, region.height, rows).map_err(failed)?;
            let buffer = sized(stretched, width, region.height);
            let mut canvas = Canvas::<U8x3>::from_buffer(width, region.height, buffer).map_err(failed)?;
            resizer.resize_typed(&kept, &mut canvas, &options).map_err(failed)?;
            sized(stretched, width, region.height)
        };
        let pixels = cut(rows, width as usize * 3, region.x as usize, 0, region.width, region.height);
        for buffer in [squeezed, stretched] {
            if buffer.len() > KEPT_BUFFER {
                *buffer = Vec::new();
            }
        }
        Ok(Image::from_parts(region.width, region.height, pixels))
    })
}

/// Room for `width` x `height` pixels in `buffer`, which grows for it and holds anything.
fn sized(buffer: &mut Vec<u8>, width: u32, height: u32) -> &mut [u8] {
    let bytes = width as usize * height as usize * 3;
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
    &mut buffer[..bytes]
}

/// Cubic convolution with a = -3/4, the image continued by its border: `torch.nn.functional.interpolate(mode=
/// "bicubic", align_corners=False, antialias=False)`.
fn replicated_bicubic(image: &Image, width: u32, height: u32) -> Result<Image> {
    /// Reach of the kernel.
    const BORDER: u32 = 2;
    let (wide, high) = (image.width() + 2 * BORDER, image.height() + 2 * BORDER);
    let mut pixels = Vec::with_capacity(wide as usize * high as usize * 3);
    for y in 0..high {
        let y = y.saturating_sub(BORDER).min(image.height() - 1) as usize;
        let row = &image.pixels()[y * image.stride()..][..image.stride()];
        for _ in 0..BORDER {
            pixels.extend_from_slice(&row[..3]);
        }
        pixels.extend_from_slice(row);
        for _ in 0..BORDER {
            pixels.extend_from_slice(&row[row.len() - 3..]);
        }
    }
    let bordered = Image::from_parts(wide, high, pixels);
    let kernel = fast_image_resize::Filter::new("torch bicubic", torch_bicubic, 2.0).map_err(failed)?;
    let border = f64::from(BORDER);
    let options = options(ResizeAlg::Interpolation(FilterType::Custom(kernel))).crop(
        border,
        border,
        f64::from(image.width()),
        f64::from(image.height()),
    );
    pass(&bordered.view()?, width, height, &options)
}

/// Keys' cubic convolution kernel with a = -3/4 (IEEE Trans. ASSP 29(6), 1981).
fn torch_bicubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * x * A - 4.0 * A
    } else {
        0.0
    }
}

fn options(algorithm: ResizeAlg) -> ResizeOptions {
    ResizeOptions::new().resize_alg(algorithm).use_alpha(false)
}

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

    /// The columns of a source of width `source` that the columns of `region` look at; one to spare on each side.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the source's width")]
    fn source_columns(self, source: u32, width: u32, region: Region) -> std::ops::Range<u32> {
        let scale = f64::from(source) / f64::from(width);
        let reach = self.support() * scale.max(1.0) + 2.0;
        let first = (f64::from(region.x) + 0.5) * scale - reach;
        let last = (f64::from(region.x + region.width) - 0.5) * scale + reach;
        first.max(0.0) as u32..(last.ceil() as u32).min(source)
    }
}

#[cfg(test)]
mod tests;
