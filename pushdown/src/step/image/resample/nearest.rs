//! The nearest pixel: the one that an output's centre falls into, as Pillow's.

use std::ops::Range;

use super::Region;
use crate::Image;

/// Resizes `part` of `image` to `width` x `height` and keeps `region` of the result.
pub(super) fn resize(image: &Image, part: Region, (width, height): (u32, u32), region: Region) -> Image {
    let columns: Vec<usize> = sources(part.width, width, region.x..region.x + region.width)
        .map(|column| (part.x as usize + column) * 3)
        .collect();
    let mut pixels = Vec::with_capacity(columns.len() * region.height as usize * 3);
    for row in sources(part.height, height, region.y..region.y + region.height) {
        let row = &image.pixels()[(part.y as usize + row) * image.stride()..];
        for column in &columns {
            pixels.extend_from_slice(&row[*column..column + 3]);
        }
    }
    Image::from_parts(region.width, region.height, pixels)
}

/// The pixels of an axis of `source` that the `outputs` of `target` take.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the source's extent"
)]
fn sources(source: u32, target: u32, outputs: Range<u32>) -> impl Iterator<Item = usize> {
    let scale = f64::from(source) / f64::from(target);
    outputs.map(move |output| (((f64::from(output) + 0.5) * scale) as u32).min(source - 1) as usize)
}
