//! Bilinear, bicubic and lanczos with antialiasing, in Pillow's own fixed-point arithmetic (`libImaging/Resample.c`).
//!
//! What is rounded between the two passes, and cut off where a kernel overshoots, shows in the result, up to several
//! levels: hence Pillow's precision. All integers once the weights are made, so that every host computes the same;
//! and each output by itself, so that a part of the result costs no more than the part. One output row after the
//! other: what lies between the passes stays in the cache.

mod axis;

use std::array;

use axis::{Axis, HALF, PRECISION};

use super::{Filter, Region, Window};
use crate::Image;

/// Whether the number of columns is changed before that of rows. Not a matter of the part that is kept.
///
/// Bilinear stays within the values it weighs: the order shows by one level at most, and the cheaper one is taken.
/// Where a kernel overshoots it is Pillow's: from 13.0 on columns first, unless the image loses more than twice as
/// many rows as columns, and always before.
fn columns_first(filter: Filter, (from_width, from_height): (u32, u32), (width, height): (u32, u32)) -> bool {
    let rows_lost = i64::from(from_height) - i64::from(height);
    let columns_lost = i64::from(from_width) - i64::from(width);
    rows_lost <= 0 || filter != Filter::Bilinear && rows_lost <= 2 * columns_lost
}

/// The weights of both axes and the order of the passes.
pub(crate) struct Plan {
    columns: Axis,
    rows: Axis,
    columns_first: bool,
    /// Where the part that is resized starts in the image.
    origin: (u32, u32),
    /// Width and height of what is kept.
    kept: (u32, u32),
}

/// What one row takes on its way: pixels in lanes of four, which fill a register and of which the fourth is idle.
struct Scratch {
    lanes: Vec<[i32; 4]>,
    sums: Vec<[i32; 4]>,
    levels: Vec<u8>,
}

/// Bytes that a resized row has beyond its pixels.
const SPARE: usize = 1;

impl Scratch {
    fn new(columns: &Axis) -> Self {
        Self {
            lanes: vec![[0; 4]; columns.seen().len()],
            sums: vec![[0; 4]; columns.len()],
            levels: vec![0; columns.len() * 4],
        }
    }
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
impl Plan {
    /// Resizes `part` to `width` x `height` and keeps `keep` of the result.
    pub(super) fn new(part: Region, (width, height): (u32, u32), filter: Filter, keep: Region) -> Self {
        Self {
            columns: Axis::new(part.width, width, keep.x..keep.x + keep.width, filter),
            rows: Axis::new(part.height, height, keep.y..keep.y + keep.height, filter),
            columns_first: columns_first(filter, (part.width, part.height), (width, height)),
            origin: (part.x, part.y),
            kept: (keep.width, keep.height),
        }
    }

    pub(super) fn seen(&self) -> Region {
        let pixels = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
        let (columns, rows) = (self.columns.seen(), self.rows.seen());
        Region {
            x: self.origin.0 + pixels(columns.start),
            y: self.origin.1 + pixels(rows.start),
            width: pixels(columns.len()),
            height: pixels(rows.len()),
        }
    }

    pub(super) fn run(&self, window: &Window) -> Image {
        let (width, height) = self.kept;
        let mut pixels = vec![0; width as usize * height as usize * 3];
        let seen = self.seen();
        let (source, stride) = window.rows(seen.x, seen.y);
        self.dispatch(source, stride, &mut pixels);
        Image::from_parts(width, height, pixels)
    }

    /// `source` starts at the first row and column that are seen.
    fn dispatch(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the same Rust, compiled for wider registers")]
            // SAFETY: the processor has AVX2.
            return unsafe { self.run_avx2(source, stride, target) };
        }
        self.run_here(source, stride, target);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_avx2(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        self.run_here(source, stride, target);
    }

    #[inline(always)]
    fn run_here(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        if self.columns_first {
            self.columns_then_rows(source, stride, target);
        } else {
            self.rows_then_columns(source, stride, target);
        }
    }

    #[inline(always)]
    fn columns_then_rows(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        let width = self.columns.len() * 3;
        let bytes = self.columns.seen().len() * 3;
        let first = self.rows.seen().start;
        let mut scratch = Scratch::new(&self.columns);
        // The resized rows that an output row looks at, in a ring by source row.
        let depth = self.rows.taps();
        let mut ring = vec![vec![0; width + SPARE]; depth];
        let mut sums = vec![0; width];
        let mut next = 0;
        for ((start, weights), target) in self.rows.outputs().zip(target.chunks_exact_mut(width)) {
            for row in next.max(start)..start + depth {
                let source = &source[(row - first) * stride..][..bytes];
                self.along_row(source, &mut scratch, &mut ring[row % depth]);
            }
            next = start + depth;
            let rows = (start..next).map(|row| &ring[row % depth][..width]);
            across_rows(rows, weights, &mut sums, target);
        }
    }

    #[inline(always)]
    fn rows_then_columns(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        let width = self.columns.len() * 3;
        let bytes = self.columns.seen().len() * 3;
        let first = self.rows.seen().start;
        let mut scratch = Scratch::new(&self.columns);
        let mut between = vec![0; bytes];
        let mut sums = vec![0; bytes];
        let mut resized = vec![0; width + SPARE];
        for ((start, weights), target) in self.rows.outputs().zip(target.chunks_exact_mut(width)) {
            let rows = start - first..start - first + weights.len();
            let rows = rows.map(|row| &source[row * stride..][..bytes]);
            across_rows(rows, weights, &mut sums, &mut between);
            self.along_row(&between, &mut scratch, &mut resized);
            target.copy_from_slice(&resized[..width]);
        }
    }

    /// Resizes one row; `source` starts at the first column that is seen, `target` has `SPARE` at its end.
    #[inline(always)]
    fn along_row(&self, source: &[u8], scratch: &mut Scratch, target: &mut [u8]) {
        if self.columns.is_identity() {
            return target[..source.len()].copy_from_slice(source);
        }
        let Scratch { lanes, sums, levels } = scratch;
        let (source, _) = source.as_chunks::<3>();
        for (lanes, [red, green, blue]) in lanes.iter_mut().zip(source) {
            *lanes = [i32::from(*red), i32::from(*green), i32::from(*blue), 0];
        }
        match self.columns.taps() {
            1 => self.weigh::<1>(lanes, sums),
            2 => self.weigh::<2>(lanes, sums),
            3 => self.weigh::<3>(lanes, sums),
            4 => self.weigh::<4>(lanes, sums),
            5 => self.weigh::<5>(lanes, sums),
            6 => self.weigh::<6>(lanes, sums),
            7 => self.weigh::<7>(lanes, sums),
            8 => self.weigh::<8>(lanes, sums),
            _ => self.weigh_any(lanes, sums),
        }
        for (level, sum) in levels.iter_mut().zip(sums.as_flattened()) {
            *level = to_level(*sum);
        }
        // Four bytes are one move; the fourth is overwritten by the pixel after it.
        let (levels, _) = levels.as_chunks::<4>();
        for (column, levels) in levels.iter().enumerate() {
            target[column * 3..column * 3 + 4].copy_from_slice(levels);
        }
    }

    /// The sums of all outputs of a row, of a number of taps that the compiler knows.
    #[inline(always)]
    fn weigh<const TAPS: usize>(&self, lanes: &[[i32; 4]], sums: &mut [[i32; 4]]) {
        let first = self.columns.seen().start;
        for ((start, weights), sum) in self.columns.outputs().zip(sums) {
            let (pixels, weights) = (lanes[start - first..].first_chunk(), weights.first_chunk());
            if let (Some(pixels), Some(weights)) = (pixels, weights) {
                *sum = weighted::<TAPS>([HALF; 4], pixels, weights);
            }
        }
    }

    #[inline(always)]
    fn weigh_any(&self, lanes: &[[i32; 4]], sums: &mut [[i32; 4]]) {
        let first = self.columns.seen().start;
        for ((start, weights), sum) in self.columns.outputs().zip(sums) {
            let (weights, last_weights) = weights.as_chunks::<4>();
            let (pixels, last_pixels) = lanes[start - first..].as_chunks::<4>();
            let blocks = pixels.iter().zip(weights);
            *sum = blocks.fold([HALF; 4], |sum, (pixels, weights)| weighted(sum, pixels, weights));
            let last_pixels = pixels
                .get(weights.len())
                .map_or(last_pixels, |pixels| pixels.as_slice());
            let rest = last_pixels.iter().zip(last_weights);
            *sum = rest.fold(*sum, |sum, (pixel, weight)| weighted(sum, &[*pixel], &[*weight]));
        }
    }
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn weighted<const TAPS: usize>(sums: [i32; 4], pixels: &[[i32; 4]; TAPS], weights: &[i32; TAPS]) -> [i32; 4] {
    let mut sums = sums;
    for (pixel, weight) in pixels.iter().zip(weights) {
        sums = array::from_fn(|lane| sums[lane] + pixel[lane] * weight);
    }
    sums
}

/// One output row from those it looks at.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn across_rows<'a>(
    rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    sums: &mut [i32],
    target: &mut [u8],
) {
    sums.fill(HALF);
    for (row, weight) in rows.zip(weights) {
        for (sum, level) in sums.iter_mut().zip(row) {
            *sum += i32::from(*level) * weight;
        }
    }
    for (target, sum) in target.iter_mut().zip(sums) {
        *target = to_level(*sum);
    }
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[expect(clippy::cast_sign_loss, reason = "clamped to 0 to 255")]
#[inline(always)]
fn to_level(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}
