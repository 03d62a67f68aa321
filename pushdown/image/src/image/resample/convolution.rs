//! Bilinear, bicubic and lanczos with antialiasing, in the fixed-point arithmetic of Pillow (`libImaging/Resample.c`).
//!
//! Rounding and clamping between the two passes change the result by up to several levels, hence Pillow's precision. After the
//! weights are computed, all arithmetic is in integers and the same on every host. Each output pixel is computed independently,
//! so that the cost is proportional to the part that is kept. The passes process a few rows at a time, so that intermediate
//! rows stay in the CPU cache.

mod axis;
mod horizontal;
mod vertical;

use std::{array, mem};

use axis::{Axis, PRECISION};
use horizontal::{HorizontalPass, PADDING, ROWS_AT_ONCE};
use vertical::convolve_rows;

use super::{Filter, Region, Window};
use pushdown_core::Image;

/// Calls a function with the number of taps as its first constant if that number is small, so that the compiler keeps sums in
/// registers. Otherwise calls the second function.
macro_rules! by_taps {
    ($taps:expr, $few:ident $(<$type:ident>)? ($($argument:expr),*), $many:expr) => {
        match $taps {
            1 => $few::<1 $(, $type)?>($($argument),*),
            2 => $few::<2 $(, $type)?>($($argument),*),
            3 => $few::<3 $(, $type)?>($($argument),*),
            4 => $few::<4 $(, $type)?>($($argument),*),
            5 => $few::<5 $(, $type)?>($($argument),*),
            6 => $few::<6 $(, $type)?>($($argument),*),
            7 => $few::<7 $(, $type)?>($($argument),*),
            8 => $few::<8 $(, $type)?>($($argument),*),
            _ => $many,
        }
    };
}
use by_taps;

/// Whether the horizontal pass runs first. Does not depend on the part that is kept.
///
/// Bilinear never overshoots: the order changes results by at most one level, so the cheaper one is used. Other kernels use
/// Pillow's order. Before version 13.0 the horizontal pass always came first. Since then it comes first unless the image loses
/// more than twice as many rows as columns.
fn horizontal_first(
    filter: Filter,
    (from_width, from_height): (u32, u32),
    (width, height): (u32, u32),
) -> bool {
    let rows_lost = i64::from(from_height) - i64::from(height);
    let columns_lost = i64::from(from_width) - i64::from(width);
    rows_lost <= 0 || filter != Filter::Bilinear && rows_lost <= 2 * columns_lost
}

/// The weights of both axes, and the order of the passes.
#[derive(Debug)]
pub(crate) struct Convolution {
    columns: Axis,
    rows: Axis,
    horizontal_first: bool,
    /// Start of the resized part in the image.
    origin: (u32, u32),
    /// Width and height of the result.
    output_size: (u32, u32),
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
impl Convolution {
    /// Resizes `part` to `width` x `height` and crops the result to `keep`.
    pub(super) fn new(part: Region, (width, height): (u32, u32), filter: Filter, keep: Region) -> Self {
        Self {
            columns: Axis::new(part.width, width, keep.x..keep.x + keep.width, filter),
            rows: Axis::new(part.height, height, keep.y..keep.y + keep.height, filter),
            horizontal_first: horizontal_first(filter, (part.width, part.height), (width, height)),
            origin: (part.x, part.y),
            output_size: (keep.width, keep.height),
        }
    }

    pub(super) fn input_region(&self) -> Region {
        let pixels = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
        let (columns, rows) = (self.columns.input_range(), self.rows.input_range());
        Region {
            x: self.origin.0 + pixels(columns.start),
            y: self.origin.1 + pixels(rows.start),
            width: pixels(columns.len()),
            height: pixels(rows.len()),
        }
    }

    pub(super) fn run(&self, window: &Window) -> Image {
        let (width, height) = self.output_size;
        let mut pixels = vec![0; width as usize * height as usize * 3];
        let region = self.input_region();
        let (source, stride) = window.rows(region.x, region.y);
        self.dispatch(source, stride, &mut pixels);
        Image::from_parts(width, height, pixels)
    }

    /// `source` starts at the first pixel of the input region.
    fn dispatch(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the same Rust code, compiled for wider registers")]
            // SAFETY: the processor has AVX2.
            return unsafe { self.run_avx2(source, stride, target) };
        }
        self.run_passes(source, stride, target);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_avx2(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        self.run_passes(source, stride, target);
    }

    #[inline(always)]
    fn run_passes(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        if self.horizontal_first {
            self.horizontal_then_vertical(source, stride, target);
        } else {
            self.vertical_then_horizontal(source, stride, target);
        }
    }

    #[inline(always)]
    fn horizontal_then_vertical(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        let width = self.columns.len() * 3;
        let bytes = self.columns.input_range().len() * 3;
        let input = self.rows.input_range();
        let mut horizontal = HorizontalPass::new(&self.columns);
        // A ring by source row. It holds the resized rows that an output row reads, and those resized together with the last
        // of them.
        let depth = self.rows.taps() + ROWS_AT_ONCE - 1;
        let mut ring = vec![vec![0; width + PADDING]; depth];
        let mut resized: [_; ROWS_AT_ONCE] = array::from_fn(|_| vec![0; width + PADDING]);
        let mut sources: [_; ROWS_AT_ONCE] = array::from_fn(|_| vec![0; bytes + PADDING]);
        let mut next = input.start;
        for ((start, weights), target) in self.rows.outputs().zip(target.chunks_exact_mut(width)) {
            // Skips rows that no output reads.
            next = next.max(start);
            while next < start + weights.len() {
                for (row, levels) in (next..).zip(&mut sources) {
                    let row = row.min(input.end - 1) - input.start;
                    let source = &source[row * stride..][..bytes];
                    for (level, byte) in levels.iter_mut().zip(source) {
                        *level = i32::from(*byte);
                    }
                }
                horizontal.run(&sources, &mut resized);
                for (row, resized) in (next..).zip(&mut resized) {
                    mem::swap(&mut ring[row % depth], resized);
                }
                next += ROWS_AT_ONCE;
            }
            let rows = (start..).map(|row| &ring[row % depth][..width]);
            convolve_rows(rows, weights, target, to_byte);
        }
    }

    #[inline(always)]
    fn vertical_then_horizontal(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        let width = self.columns.len() * 3;
        let bytes = self.columns.input_range().len() * 3;
        let first = self.rows.input_range().start;
        let mut horizontal = HorizontalPass::new(&self.columns);
        let mut intermediate: [_; ROWS_AT_ONCE] = array::from_fn(|_| vec![0; bytes + PADDING]);
        let mut resized: [_; ROWS_AT_ONCE] = array::from_fn(|_| vec![0; width + PADDING]);
        let mut outputs = self.rows.outputs();
        for target in target.chunks_mut(width * ROWS_AT_ONCE) {
            for (intermediate, (start, weights)) in intermediate.iter_mut().zip(outputs.by_ref()) {
                let rows = (start - first..).map(|row| &source[row * stride..][..bytes]);
                convolve_rows(rows, weights, &mut intermediate[..bytes], to_level);
            }
            horizontal.run(&intermediate, &mut resized);
            for (target, resized) in target.chunks_exact_mut(width).zip(&resized) {
                target.copy_from_slice(&resized[..width]);
            }
        }
    }
}

/// Converts a fixed-point sum to a level from 0 to 255.
#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
fn to_level(sum: i32) -> i32 {
    (sum >> PRECISION).clamp(0, 255)
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
#[inline(always)]
fn to_byte(sum: i32) -> u8 {
    to_level(sum) as u8
}
