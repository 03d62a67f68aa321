//! A pass along one axis in 16 bits, for kernels that overshoot.
//!
//! Such kernels weigh up to half as much again as they give, so that an error of one level between the passes may
//! end as two. The library's coefficients for u8 have 14 bits, Pillow's 22; those for u16 have no fewer.

use fast_image_resize::{
    ResizeOptions, Resizer,
    images::{TypedImage as Canvas, TypedImageRef as View},
    pixels::U16x3,
};

use super::{Region, failed};
use crate::Result;

/// So many rows or columns at a time bound the wider copies; the axis that a pass leaves alone may be cut anywhere.
const STRIP: usize = 16;
/// 65,535 by 255.
const STEP: u16 = 257;

/// Rows of `stride` bytes.
pub(super) struct Rows<P> {
    pub(super) pixels: P,
    pub(super) stride: usize,
}

/// Resizes `part` of `image` to `width` x `height`, one of which it has already, into the start of `target`.
pub(super) fn resize_finely(
    resizer: &mut Resizer,
    image: &Rows<&[u8]>,
    part: Region,
    (width, height): (u32, u32),
    options: &ResizeOptions,
    target: &mut Rows<&mut [u8]>,
) -> Result<()> {
    let by_rows = height == part.height;
    let (mut source, mut result) = (Vec::new(), Vec::new());
    for start in (0..if by_rows { height } else { width }).step_by(STRIP) {
        let cut = |extent: u32| (extent - start).min(STRIP as u32);
        let (piece, size, origin) = if by_rows {
            let rows = cut(height);
            (Region { y: part.y + start, height: rows, ..part }, (width, rows), start as usize * target.stride)
        } else {
            let columns = cut(width);
            (Region { x: part.x + start, width: columns, ..part }, (columns, height), start as usize * 3)
        };
        widen(image, piece, &mut source);
        result.resize(size.0 as usize * size.1 as usize * 3, 0_u16);
        let view = bytemuck::cast_slice(&source);
        let view = View::<U16x3>::from_buffer(piece.width, piece.height, view).map_err(failed)?;
        let canvas = bytemuck::cast_slice_mut(&mut result);
        let mut canvas = Canvas::<U16x3>::from_buffer(size.0, size.1, canvas).map_err(failed)?;
        resizer.resize_typed(&view, &mut canvas, options).map_err(failed)?;
        let rows = result.chunks_exact(size.0 as usize * 3);
        for (row, target) in rows.zip(target.pixels[origin..].chunks_mut(target.stride)) {
            target.iter_mut().zip(row).for_each(|(level, fine)| *level = narrow(*fine));
        }
    }
    Ok(())
}

/// The pixels of `part` in 16 bits.
fn widen(image: &Rows<&[u8]>, part: Region, wide: &mut Vec<u16>) {
    wide.clear();
    let rows = image.pixels.chunks_exact(image.stride).skip(part.y as usize).take(part.height as usize);
    for row in rows {
        let row = &row[part.x as usize * 3..][..part.width as usize * 3];
        wide.extend(row.iter().map(|level| u16::from(*level) * STEP));
    }
}

/// To the nearest of 8 bits.
fn narrow(fine: u16) -> u8 {
    u8::try_from((u32::from(fine) + u32::from(STEP) / 2) / u32::from(STEP)).unwrap_or(u8::MAX)
}
