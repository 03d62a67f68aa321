//! The pass along the rows, which changes the number of columns, for kernels that overshoot.
//!
//! Such kernels weigh up to half as much again as they give, so that an error of one level between the passes may
//! end as two. The library's coefficients for u8 have 14 bits, Pillow's 22: this pass is made in 16 bits.

use fast_image_resize::{
    ResizeOptions, Resizer,
    images::{TypedImage as Canvas, TypedImageRef as View},
    pixels::U16x3,
};

use super::{Region, failed};
use crate::{Image, Result};

/// So many rows at a time bound the wider copies; each row is computed by itself.
const STRIP: usize = 16;
/// What 255 becomes 65,535 by.
const STEP: u16 = 257;

/// Resizes the rows of `part` to `width` pixels each, into the rows of `target`.
pub(super) fn resize_columns(
    resizer: &mut Resizer,
    image: &Image,
    part: Region,
    width: u32,
    options: &ResizeOptions,
    target: &mut [u8],
) -> Result<()> {
    let mut source = Vec::with_capacity(STRIP * part.width as usize * 3);
    let mut result = vec![0_u16; STRIP * width as usize * 3];
    let rows = image.pixels().chunks_exact(image.stride()).skip(part.y as usize).take(part.height as usize);
    let mut rows = rows.map(|row| &row[part.x as usize * 3..][..part.width as usize * 3]);
    for strip in target.chunks_mut(STRIP * width as usize * 3) {
        let result = &mut result[..strip.len()];
        let height = strip.len() / (width as usize * 3);
        source.clear();
        for row in rows.by_ref().take(height) {
            source.extend(row.iter().map(|level| u16::from(*level) * STEP));
        }
        let height = u32::try_from(height).unwrap_or_default();
        let view = View::<U16x3>::from_buffer(part.width, height, bytemuck::cast_slice(&source)).map_err(failed)?;
        let buffer = bytemuck::cast_slice_mut(result);
        let mut canvas = Canvas::<U16x3>::from_buffer(width, height, buffer).map_err(failed)?;
        resizer.resize_typed(&view, &mut canvas, options).map_err(failed)?;
        for (level, fine) in strip.iter_mut().zip(&*result) {
            *level = u8::try_from((u32::from(*fine) + u32::from(STEP) / 2) / u32::from(STEP)).unwrap_or(u8::MAX);
        }
    }
    Ok(())
}
