//! The part of a resized image that a following crop keeps, for kernels that do not overshoot.

use std::ops::Range;

use fast_image_resize::{
    ImageView, ResizeAlg, ResizeOptions, Resizer,
    images::{
        TypedCroppedImage as Part, TypedCroppedImageMut as PartMut, TypedImage as Canvas,
        TypedImageRef as View,
    },
    pixels::U8x3,
};

use super::{Filter, KEPT_BUFFER, Region, SCRATCH, Scratch, failed, options};
use crate::{Image, Result, step::image::crop::cut};

/// Resizes `image` to `width` x `height` with antialiasing and keeps only `region` of the result.
///
/// The same as resizing and then cropping, bit for bit: both passes use the coefficients of the whole image, the
/// first on the columns that the kept ones look at, the second on the rows that are kept.
pub(super) fn resize(
    image: &Image,
    width: u32,
    height: u32,
    filter: Filter,
    region: Region,
) -> Result<Image> {
    let options = options(ResizeAlg::Convolution(filter.kernel()?));
    SCRATCH.with_borrow_mut(|scratch| {
        let pixels = rows_then_columns(scratch, image, (width, height), filter, region, &options);
        for buffer in [&mut scratch.first, &mut scratch.second] {
            if buffer.len() > KEPT_BUFFER {
                *buffer = Vec::new();
            }
        }
        Ok(Image::from_parts(region.width, region.height, pixels?))
    })
}

fn rows_then_columns(
    Scratch {
        resizer,
        first,
        second,
    }: &mut Scratch,
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
        let window = Region {
            x: columns.start,
            y: 0,
            width: columns.end - columns.start,
            height,
        };
        let source = Part::new(image.view()?, window.x, 0, window.width, image.height()).map_err(failed)?;
        into_part(resizer, &source, first, (wide, height), window, options)?
    };
    let rows = &rows[bytes(wide, region.y)..][..bytes(wide, region.height)];
    let rows = if width == wide {
        rows
    } else {
        let kept = View::<U8x3>::from_buffer(wide, region.height, rows).map_err(failed)?;
        let all = Region {
            x: 0,
            y: 0,
            width,
            height: region.height,
        };
        into_part(resizer, &kept, second, (width, region.height), all, options)?
    };
    Ok(cut(
        rows,
        bytes(width, 1),
        region.x as usize,
        0,
        region.width,
        region.height,
    ))
}

/// Resizes `source` into `part` of an image of `width` x `height` that `buffer` holds, and gives all of that.
fn into_part<'b>(
    resizer: &mut Resizer,
    source: &impl ImageView<Pixel = U8x3>,
    buffer: &'b mut Vec<u8>,
    (width, height): (u32, u32),
    part: Region,
    options: &ResizeOptions,
) -> Result<&'b [u8]> {
    let length = bytes(width, height);
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let buffer = &mut buffer[..length];
    let mut canvas = Canvas::<U8x3>::from_buffer(width, height, buffer).map_err(failed)?;
    let mut target =
        PartMut::from_ref(&mut canvas, part.x, part.y, part.width, part.height).map_err(failed)?;
    resizer
        .resize_typed(source, &mut target, options)
        .map_err(failed)?;
    Ok(buffer)
}

const fn bytes(width: u32, height: u32) -> usize {
    width as usize * height as usize * 3
}

impl Filter {
    /// Where, along an axis of `source` pixels resized to `target`, the `length` results from `start` look; one to
    /// spare on each side.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the source's extent"
    )]
    fn window(self, source: u32, target: u32, start: u32, length: u32) -> Range<u32> {
        let scale = f64::from(source) / f64::from(target);
        let reach = self.support() * scale.max(1.0) + 2.0;
        let first = (f64::from(start) + 0.5) * scale - reach;
        let last = (f64::from(start + length) - 0.5) * scale + reach;
        first.max(0.0) as u32..(last.ceil() as u32).min(source)
    }
}
