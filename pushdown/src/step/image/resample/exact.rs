//! Bicubic and lanczos in Pillow's own fixed-point arithmetic, bit for bit.
//!
//! Both kernels overshoot: what is rounded and cut off between the two passes shows in the result, up to several
//! levels, so that order and precision have to be Pillow's (22 bits, `libImaging/Resample.c`). Integers from there
//! on: the same on every host.

use std::ops::Range;

use super::{Filter, Region};
use crate::Image;

/// Bits of a weight's fraction.
const PRECISION: u32 = 22;
/// Rounds to nearest.
const HALF: i32 = 1 << (PRECISION - 1);

/// What one output looks at along an axis, and how much of it.
struct Taps {
    start: usize,
    weights: Vec<i32>,
}

/// Resizes `part` of `image` to `width` x `height` and keeps `region` of the result; computes nothing else.
pub(super) fn resize(
    image: &Image,
    part: Region,
    (width, height): (u32, u32),
    filter: Filter,
    region: Region,
) -> Image {
    let columns = taps(part.width, width, region.x..region.x + region.width, filter);
    let rows = taps(part.height, height, region.y..region.y + region.height, filter);
    let (seen_columns, seen_rows) = (extent(&columns), extent(&rows));
    let origin = part.y as usize * image.stride() + part.x as usize * 3;
    let source = Plane {
        pixels: &image.pixels()[origin..],
        stride: image.stride(),
        row: 0,
        column: 0,
    };
    let pixels = if columns_first((part.width, part.height), (width, height)) {
        let between = along_rows(&source, seen_rows.clone(), &columns);
        let stride = columns.len() * 3;
        let between = Plane {
            pixels: &between,
            stride,
            row: seen_rows.start,
            column: 0,
        };
        along_columns(&between, 0..columns.len(), &rows)
    } else {
        let between = along_columns(&source, seen_columns.clone(), &rows);
        let stride = seen_columns.len() * 3;
        let between = Plane {
            pixels: &between,
            stride,
            row: 0,
            column: seen_columns.start,
        };
        along_rows(&between, 0..rows.len(), &columns)
    };
    Image::from_parts(region.width, region.height, pixels)
}

/// Whether Pillow changes the number of columns before that of rows, from 13.0 on: unless the image loses more than
/// twice as many rows as columns. Before, it always did.
fn columns_first((from_width, from_height): (u32, u32), (width, height): (u32, u32)) -> bool {
    let rows_lost = i64::from(from_height) - i64::from(height);
    let columns_lost = i64::from(from_width) - i64::from(width);
    rows_lost <= 0 || rows_lost <= 2 * columns_lost
}

/// Pixels from the given row and column on.
struct Plane<'a> {
    pixels: &'a [u8],
    stride: usize,
    row: usize,
    column: usize,
}

impl Plane<'_> {
    fn row(&self, row: usize) -> &[u8] {
        &self.pixels[(row - self.row) * self.stride..]
    }
}

/// The pass that changes the number of columns, on `rows`.
fn along_rows(source: &Plane<'_>, rows: Range<usize>, columns: &[Taps]) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(rows.len() * columns.len() * 3);
    for row in rows {
        let row = source.row(row);
        for taps in columns {
            let (seen, _) = row[(taps.start - source.column) * 3..].as_chunks::<3>();
            let sums =
                seen.iter()
                    .zip(&taps.weights)
                    .fold([HALF; 3], |[red, green, blue], (pixel, weight)| {
                        let [r, g, b] = pixel.map(|level| i32::from(level) * weight);
                        [red + r, green + g, blue + b]
                    });
            pixels.extend(sums.map(level));
        }
    }
    pixels
}

/// The pass that changes the number of rows, on `columns`.
fn along_columns(source: &Plane<'_>, columns: Range<usize>, rows: &[Taps]) -> Vec<u8> {
    let columns = (columns.start - source.column) * 3..(columns.end - source.column) * 3;
    let mut pixels = Vec::with_capacity(rows.len() * columns.len());
    let mut sums = vec![HALF; columns.len()];
    for taps in rows {
        sums.fill(HALF);
        for (row, weight) in (taps.start..).zip(&taps.weights) {
            let row = &source.row(row)[columns.clone()];
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, level)| *sum += i32::from(*level) * weight);
        }
        pixels.extend(sums.iter().copied().map(level));
    }
    pixels
}

#[expect(clippy::cast_sign_loss, reason = "clamped to 0 to 255")]
fn level(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// What all of `taps` look at: their windows rise.
fn extent(taps: &[Taps]) -> Range<usize> {
    let first = taps.first().map_or(0, |taps| taps.start);
    first..taps.last().map_or(first, |taps| taps.start + taps.weights.len())
}

/// The taps of the `outputs` of an axis of `source` pixels that becomes `target` pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as C's casts, held to the source's extent"
)]
fn taps(source: u32, target: u32, outputs: Range<u32>, filter: Filter) -> Vec<Taps> {
    if source == target {
        return outputs
            .map(|output| Taps {
                start: output as usize,
                weights: vec![1 << PRECISION],
            })
            .collect();
    }
    let scale = f64::from(source) / f64::from(target);
    let widened = scale.max(1.0);
    let support = filter.support() * widened;
    let narrowed = 1.0 / widened;
    outputs
        .map(|output| {
            let center = (f64::from(output) + 0.5) * scale;
            let start = (center - support + 0.5).max(0.0) as u32;
            let end = ((center + support + 0.5) as u32).min(source);
            let weights: Vec<f64> = (start..end)
                .map(|place| kernel(filter, (f64::from(place) - center + 0.5) * narrowed))
                .collect();
            let sum: f64 = weights.iter().sum();
            let fixed = |weight: &f64| (weight / sum * f64::from(1 << PRECISION)).round() as i32;
            Taps {
                start: start as usize,
                weights: weights.iter().map(fixed).collect(),
            }
        })
        .collect()
}

/// The kernel at `x`.
fn kernel(filter: Filter, x: f64) -> f64 {
    let sinc = |x: f64| {
        let x = x * std::f64::consts::PI;
        if x == 0.0 { 1.0 } else { libm::sin(x) / x }
    };
    let distance = x.abs();
    match filter {
        Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
        Filter::Bicubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
        Filter::Bicubic if distance < 2.0 => (((distance - 5.0) * distance + 8.0) * distance - 4.0) * -0.5,
        _ => 0.0,
    }
}
