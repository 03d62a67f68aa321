//! The horizontal pass: computes rows of another length.

use std::array;

use super::{
    axis::{Axis, HALF},
    by_taps, to_byte,
};

/// Rows that are resized at once, so that each weight is loaded once for all of them.
pub(super) const ROWS_AT_ONCE: usize = 2;
/// Elements of a row after its pixels, for the fourth lane of the last pixel.
pub(super) const PADDING: usize = LANES - CHANNELS;
const CHANNELS: usize = 3;
/// Lanes of a pixel in a register. The fourth lane has the first channel of the next pixel. Its sum is computed and discarded.
const LANES: usize = 4;

/// The weights, and buffers for sums.
pub(super) struct HorizontalPass<'a> {
    axis: &'a Axis,
    sums: [Vec<[i32; LANES]>; ROWS_AT_ONCE],
    bytes: Vec<[u8; LANES]>,
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
impl<'a> HorizontalPass<'a> {
    #[inline(always)]
    pub(super) fn new(axis: &'a Axis) -> Self {
        Self {
            axis,
            sums: array::from_fn(|_| vec![[0; LANES]; axis.len()]),
            bytes: vec![[0; LANES]; axis.len()],
        }
    }

    /// Resizes rows of levels, which start at the first column of the input region and end with `PADDING`.
    #[inline(always)]
    pub(super) fn run(&mut self, sources: &[Vec<i32>; ROWS_AT_ONCE], targets: &mut [Vec<u8>; ROWS_AT_ONCE]) {
        if self.axis.is_identity() {
            for (source, target) in sources.iter().zip(targets) {
                for (byte, level) in target.iter_mut().zip(source) {
                    *byte = level.to_le_bytes()[0];
                }
            }
            return;
        }
        by_taps!(
            self.axis.taps(),
            fixed_taps(self.axis, sources, &mut self.sums),
            any_taps(self.axis, sources, &mut self.sums)
        );
        for (sums, target) in self.sums.iter().zip(targets) {
            let bytes = self.bytes.as_flattened_mut().iter_mut();
            for (byte, sum) in bytes.zip(sums.as_flattened()) {
                *byte = to_byte(*sum);
            }
            // Copies four bytes, which is one move. The next pixel overwrites the fourth.
            for (column, bytes) in self.bytes.iter().enumerate() {
                target[column * CHANNELS..column * CHANNELS + LANES].copy_from_slice(bytes);
            }
        }
    }
}

/// The sums of all outputs, for a number of taps that the compiler knows.
#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
fn fixed_taps<const TAPS: usize>(
    axis: &Axis,
    rows: &[Vec<i32>; ROWS_AT_ONCE],
    [first_sums, second_sums]: &mut [Vec<[i32; LANES]>; ROWS_AT_ONCE],
) {
    let first = axis.input_range().start;
    let weighted_sum = |row: &[i32], start: usize, weights: &[i32; TAPS]| {
        let length = TAPS * CHANNELS + PADDING;
        let pixels = &row[(start - first) * CHANNELS..][..length];
        let mut sum = [HALF; LANES];
        for (tap, weight) in weights.iter().enumerate() {
            sum = array::from_fn(|lane| sum[lane] + pixels[tap * CHANNELS + lane] * weight);
        }
        sum
    };
    for (((start, weights), first_sum), second_sum) in axis.outputs().zip(first_sums).zip(second_sums) {
        if let Some(weights) = weights.first_chunk() {
            *first_sum = weighted_sum(&rows[0], start, weights);
            *second_sum = weighted_sum(&rows[1], start, weights);
        }
    }
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
fn any_taps(axis: &Axis, rows: &[Vec<i32>; ROWS_AT_ONCE], sums: &mut [Vec<[i32; LANES]>; ROWS_AT_ONCE]) {
    let first = axis.input_range().start;
    for (row, sums) in rows.iter().zip(sums) {
        for ((start, weights), sum) in axis.outputs().zip(sums) {
            *sum = [HALF; LANES];
            let pixels = row[(start - first) * CHANNELS..].windows(LANES).step_by(CHANNELS);
            for (weight, pixel) in weights.iter().zip(pixels) {
                *sum = array::from_fn(|lane| sum[lane] + pixel[lane] * weight);
            }
        }
    }
}
