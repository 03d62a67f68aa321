//! Nearest-neighbour resampling: the pixel that contains the centre of an output, as in Pillow.

use std::ops::Range;

use super::{Region, Window};
use pushdown_core::Image;

/// The source column of each output column, and the source row of each output row.
#[derive(Debug)]
pub(crate) struct NearestResampling {
    columns: Vec<u32>,
    rows: Vec<u32>,
}

impl NearestResampling {
    /// Resizes `part` to `width` x `height` and crops the result to `keep`.
    pub(super) fn new(part: Region, (width, height): (u32, u32), keep: Region) -> Self {
        let columns = sources(part.width, width, keep.x..keep.x + keep.width);
        let rows = sources(part.height, height, keep.y..keep.y + keep.height);
        Self {
            columns: columns.map(|column| part.x + column).collect(),
            rows: rows.map(|row| part.y + row).collect(),
        }
    }

    pub(super) fn input_region(&self) -> Region {
        let ((x, width), (y, height)) = (extent(&self.columns), extent(&self.rows));
        Region { x, y, width, height }
    }

    pub(super) fn run(&self, window: &Window) -> Image {
        let region = self.input_region();
        let (source, stride) = window.rows(region.x, region.y);
        let mut pixels = Vec::with_capacity(self.columns.len() * self.rows.len() * 3);
        for row in &self.rows {
            let row = &source[(row - region.y) as usize * stride..];
            for column in &self.columns {
                let column = (column - region.x) as usize * 3;
                pixels.extend_from_slice(&row[column..column + 3]);
            }
        }
        let side = |sources: &[u32]| u32::try_from(sources.len()).unwrap_or(u32::MAX);
        Image::from_parts(side(&self.columns), side(&self.rows), pixels)
    }
}

/// The first of the ascending `sources`, and the number of pixels from it to the last.
fn extent(sources: &[u32]) -> (u32, u32) {
    let first = sources.first().copied().unwrap_or_default();
    (first, sources.last().map_or(0, |last| last - first + 1))
}

/// The source pixel of each of `outputs`, for an axis of `source` pixels that is resized to `target` pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the source's extent"
)]
fn sources(source: u32, target: u32, outputs: Range<u32>) -> impl Iterator<Item = u32> {
    let scale = f64::from(source) / f64::from(target);
    outputs.map(move |output| (((f64::from(output) + 0.5) * scale) as u32).min(source - 1))
}
