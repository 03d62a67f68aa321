//! Bilinear, bicubic and lanczos with antialiasing, in Pillow's own fixed-point arithmetic (`libImaging/Resample.c`).
//!
//! What is rounded between the two passes, and cut off where a kernel overshoots, shows in the result, up to several
//! levels: hence Pillow's precision. All integers once the weights are made, so that every host computes the same;
//! and each output by itself, so that a part of the result costs no more than the part. A few output rows after the
//! others: what lies between the passes stays in the cache.

mod across;
mod along;
mod axis;

use std::{array, mem};

use across::across;
use along::{ABREAST, Along, SPARE};
use axis::{Axis, PRECISION};

use super::{Filter, Region, Window};
use crate::Image;

/// Calls a function with the number of taps as its first constant where that is small, so that the compiler
/// keeps sums in registers; else another one.
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
        let seen = self.rows.seen();
        let mut along = Along::new(&self.columns);
        // The resized rows that an output row looks at, and those resized beside the last of them, in a ring by
        // source row.
        let depth = self.rows.taps() + ABREAST - 1;
        let mut ring = vec![vec![0; width + SPARE]; depth];
        let mut resized: [_; ABREAST] = array::from_fn(|_| vec![0; width + SPARE]);
        let mut sources: [_; ABREAST] = array::from_fn(|_| vec![0; bytes + SPARE]);
        let mut next = seen.start;
        for ((start, weights), target) in self.rows.outputs().zip(target.chunks_exact_mut(width)) {
            // Rows that no output looks at are left out.
            next = next.max(start);
            while next < start + weights.len() {
                for (row, levels) in (next..).zip(&mut sources) {
                    let row = row.min(seen.end - 1) - seen.start;
                    let source = &source[row * stride..][..bytes];
                    for (level, byte) in levels.iter_mut().zip(source) {
                        *level = i32::from(*byte);
                    }
                }
                along.run(&sources, &mut resized);
                for (row, resized) in (next..).zip(&mut resized) {
                    mem::swap(&mut ring[row % depth], resized);
                }
                next += ABREAST;
            }
            let rows = (start..).map(|row| &ring[row % depth][..width]);
            across(rows, weights, target, to_byte);
        }
    }

    #[inline(always)]
    fn rows_then_columns(&self, source: &[u8], stride: usize, target: &mut [u8]) {
        let width = self.columns.len() * 3;
        let bytes = self.columns.seen().len() * 3;
        let first = self.rows.seen().start;
        let mut along = Along::new(&self.columns);
        let mut between: [_; ABREAST] = array::from_fn(|_| vec![0; bytes + SPARE]);
        let mut resized: [_; ABREAST] = array::from_fn(|_| vec![0; width + SPARE]);
        let mut outputs = self.rows.outputs();
        for target in target.chunks_mut(width * ABREAST) {
            for (between, (start, weights)) in between.iter_mut().zip(outputs.by_ref()) {
                let rows = (start - first..).map(|row| &source[row * stride..][..bytes]);
                across(rows, weights, &mut between[..bytes], to_level);
            }
            along.run(&between, &mut resized);
            for (target, resized) in target.chunks_exact_mut(width).zip(&resized) {
                target.copy_from_slice(&resized[..width]);
            }
        }
    }
}

/// A sum as a level from 0 to 255.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn to_level(sum: i32) -> i32 {
    (sum >> PRECISION).clamp(0, 255)
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
#[inline(always)]
fn to_byte(sum: i32) -> u8 {
    to_level(sum) as u8
}
