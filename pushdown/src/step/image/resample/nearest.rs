//! The nearest pixel: the one that an output's centre falls into, as Pillow's.

use std::ops::Range;

use super::{Region, Window};
use crate::Image;

/// The columns and rows of the image that the outputs take.
pub(crate) struct Plan {
    columns: Vec<u32>,
    rows: Vec<u32>,
}

impl Plan {
    /// Resizes `part` to `width` x `height` and keeps `keep` of the result.
    pub(super) fn new(part: Region, (width, height): (u32, u32), keep: Region) -> Self {
        let columns = sources(part.width, width, keep.x..keep.x + keep.width);
        let rows = sources(part.height, height, keep.y..keep.y + keep.height);
        Self {
            columns: columns.map(|column| part.x + column).collect(),
            rows: rows.map(|row| part.y + row).collect(),
        }
    }

    pub(super) fn seen(&self) -> Region {
        let ((x, width), (y, height)) = (extent(&self.columns), extent(&self.rows));
        Region { x, y, width, height }
    }

    pub(super) fn run(&self, window: &Window) -> Image {
        let seen = self.seen();
        let (source, stride) = window.rows(seen.x, seen.y);
        let mut pixels = Vec::with_capacity(self.columns.len() * self.rows.len() * 3);
        for row in &self.rows {
            let row = &source[(row - seen.y) as usize * stride..];
            for column in &self.columns {
                let column = (column - seen.x) as usize * 3;
                pixels.extend_from_slice(&row[column..column + 3]);
            }
        }
        let side = |places: &[u32]| u32::try_from(places.len()).unwrap_or(u32::MAX);
        Image::from_parts(side(&self.columns), side(&self.rows), pixels)
    }
}

/// First of the rising `places`, and the pixels from it to the last.
fn extent(places: &[u32]) -> (u32, u32) {
    let first = places.first().copied().unwrap_or_default();
    (first, places.last().map_or(0, |last| last - first + 1))
}

/// The pixels of an axis of `source` that the `outputs` of `target` take.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the source's extent"
)]
fn sources(source: u32, target: u32, outputs: Range<u32>) -> impl Iterator<Item = u32> {
    let scale = f64::from(source) / f64::from(target);
    outputs.map(move |output| (((f64::from(output) + 0.5) * scale) as u32).min(source - 1))
}
