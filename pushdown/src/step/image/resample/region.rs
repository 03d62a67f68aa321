//! The part of a resized image that a following crop keeps.

use std::ops::Range;

use fast_image_resize::{
    ResizeAlg, ResizeOptions, Resizer,
    images::{TypedCroppedImage as Part, TypedCroppedImageMut as PartMut, TypedImage as Canvas, TypedImageRef as View},
    pixels::U8x3,
};

use super::{Filter, KEPT_BUFFER, Region, SCRATCH, Scratch, columns_first, failed, fine::{Rows, resize_finely}, options};
use crate::{Image, Result, step::image::crop::cut};

/// Resizes `image` to `width` x `height` with antialiasing and keeps only `region` of the result.
///
/// The same as resizing and then cropping, bit for bit: both passes use the coefficients of the whole image, the
/// first on what the second looks at for the part that is kept.
pub(crate) fn resample_region(image: &Image, width: u32, height: u32, filter: Filter, region: Region) -> Result<Image> {
    let options = options(ResizeAlg::Convolution(filter.kernel()?));
    SCRATCH.with_borrow_mut(|scratch| {
        let columns_first = columns_first((image.width(), image.height()), (width, height));
        let pixels = if filter.overshoots() && columns_first {
            columns_then_rows(scratch, image, (width, height), filter, region, &options)
        } else {
            rows_then_columns(scratch, image, (width, height), filter, region, &options)
        };
        for buffer in [&mut scratch.first, &mut scratch.second] {
            if buffer.len() > KEPT_BUFFER {
                *buffer = Vec::new();
            }
        }
        Ok(Image::from_parts(region.width, region.height, pixels?))
    })
}

/// Reduces the number of rows, then of columns.
fn rows_then_columns(
    Scratch { resizer, first, second }: &mut Scratch,
    image: &Image,
    (width, height): (u32, u32),
    filter: Filter,
    region: Region,
    options: &ResizeOptions,
) -> Result<Vec<u8>> {
    let wide = image.width();
    let rows = if height == image.height() {
        image.pixels()
    } else {
        // The columns beside the window keep what they held: those that are kept never look at them.
        let columns = filter.window(wide, width, region.x, region.width);
        let window = Region { x: columns.start, y: 0, width: columns.end - columns.start, height: image.height() };
        if filter.overshoots() {
            let source = Rows { pixels: image.pixels(), stride: image.stride() };
            let buffer = sized(first, wide, height);
            let mut target = Rows { pixels: &mut buffer[bytes(columns.start, 1)..], stride: bytes(wide, 1) };
            resize_finely(resizer, &source, window, (window.width, height), options, &mut target)?;
            buffer
        } else {
            let source = Part::new(image.view()?, window.x, 0, window.width, window.height).map_err(failed)?;
            into_part(resizer, &source, first, (wide, height), Region { height, ..window }, options)?
        }
    };
    let rows = &rows[bytes(wide, region.y)..][..bytes(wide, region.height)];
    let rows = if width == wide {
        rows
    } else if filter.overshoots() {
        let source = Rows { pixels: rows, stride: bytes(wide, 1) };
        let kept = Region { x: 0, y: 0, width: wide, height: region.height };
        let buffer = sized(second, width, region.height);
        let mut target = Rows { pixels: &mut *buffer, stride: bytes(width, 1) };
        resize_finely(resizer, &source, kept, (width, region.height), options, &mut target)?;
        buffer
    } else {
        let kept = View::<U8x3>::from_buffer(wide, region.height, rows).map_err(failed)?;
        let all = Region { x: 0, y: 0, width, height: region.height };
        into_part(resizer, &kept, second, (width, region.height), all, options)?
    };
    Ok(cut(rows, bytes(width, 1), region.x as usize, 0, region.width, region.height))
}

/// Reduces the number of columns, then of rows.
fn columns_then_rows(
    Scratch { resizer, first, second }: &mut Scratch,
    image: &Image,
    (width, height): (u32, u32),
    filter: Filter,
    region: Region,
    options: &ResizeOptions,
) -> Result<Vec<u8>> {
    let high = image.height();
    let columns = if width == image.width() {
        image.pixels()
    } else {
        // The rows beside the window keep what they held: those that are kept never look at them.
        let rows = filter.window(high, height, region.y, region.height);
        let window = Region { x: 0, y: rows.start, width: image.width(), height: rows.end - rows.start };
        let source = Rows { pixels: image.pixels(), stride: image.stride() };
        let buffer = sized(first, width, high);
        let mut target = Rows { pixels: &mut buffer[bytes(width, rows.start)..], stride: bytes(width, 1) };
        resize_finely(resizer, &source, window, (width, window.height), options, &mut target)?;
        buffer
    };
    if height == high {
        return Ok(cut(columns, bytes(width, 1), region.x as usize, region.y as usize, region.width, region.height));
    }
    let kept = Region { x: region.x, y: 0, width: region.width, height: high };
    let columns = Rows { pixels: columns, stride: bytes(width, 1) };
    let rows = sized(second, region.width, height);
    let mut target = Rows { pixels: &mut *rows, stride: bytes(region.width, 1) };
    resize_finely(resizer, &columns, kept, (region.width, height), options, &mut target)?;
    Ok(rows[bytes(region.width, region.y)..][..bytes(region.width, region.height)].to_vec())
}

/// Resizes `source` into `part` of an image of `width` x `height` that `buffer` holds, and gives all of that.
fn into_part<'b>(
    resizer: &mut Resizer,
    source: &impl fast_image_resize::ImageView<Pixel = U8x3>,
    buffer: &'b mut Vec<u8>,
    (width, height): (u32, u32),
    part: Region,
    options: &ResizeOptions,
) -> Result<&'b [u8]> {
    let buffer = sized(buffer, width, height);
    let mut canvas = Canvas::<U8x3>::from_buffer(width, height, buffer).map_err(failed)?;
    let mut target = PartMut::from_ref(&mut canvas, part.x, part.y, part.width, part.height).map_err(failed)?;
    resizer.resize_typed(source, &mut target, options).map_err(failed)?;
    Ok(buffer)
}

/// Room for `width` x `height` pixels in `buffer`, which grows for it and holds anything.
fn sized(buffer: &mut Vec<u8>, width: u32, height: u32) -> &mut [u8] {
    let length = bytes(width, height);
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}

const fn bytes(width: u32, height: u32) -> usize {
    width as usize * height as usize * 3
}

impl Filter {
    /// Where, along an axis of `source` pixels resized to `target`, the `length` results from `start` look; one to
    /// spare on each side.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the source's extent")]
    fn window(self, source: u32, target: u32, start: u32, length: u32) -> Range<u32> {
        let scale = f64::from(source) / f64::from(target);
        let reach = self.support() * scale.max(1.0) + 2.0;
        let first = (f64::from(start) + 0.5) * scale - reach;
        let last = (f64::from(start + length) - 0.5) * scale + reach;
        first.max(0.0) as u32..(last.ceil() as u32).min(source)
    }
}
