//! Output rows from rows of another length: the pass that changes the number of columns.

use std::array;

use super::{
    axis::{Axis, HALF},
    by_taps, to_byte,
};

/// Rows that are resized at once: a weight is looked up for all of them.
pub(super) const ABREAST: usize = 2;
/// What a row has beyond its pixels, for the last one's fourth lane.
pub(super) const SPARE: usize = LANES - CHANNELS;
const CHANNELS: usize = 3;
/// A pixel's lanes in a register. The fourth is the next pixel's first channel: summed with the others, and left out.
const LANES: usize = 4;

/// The weights, and what rows take on their way.
pub(super) struct Along<'a> {
    axis: &'a Axis,
    sums: [Vec<[i32; LANES]>; ABREAST],
    bytes: Vec<[u8; LANES]>,
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
impl<'a> Along<'a> {
    #[inline(always)]
    pub(super) fn new(axis: &'a Axis) -> Self {
        Self {
            axis,
            sums: array::from_fn(|_| vec![[0; LANES]; axis.len()]),
            bytes: vec![[0; LANES]; axis.len()],
        }
    }

    /// Resizes rows of levels, which start at the first column that is seen. All have `SPARE` at their end.
    #[inline(always)]
    pub(super) fn run(&mut self, sources: &[Vec<i32>; ABREAST], targets: &mut [Vec<u8>; ABREAST]) {
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
            few(self.axis, sources, &mut self.sums),
            many(self.axis, sources, &mut self.sums)
        );
        for (sums, target) in self.sums.iter().zip(targets) {
            let bytes = self.bytes.as_flattened_mut().iter_mut();
            for (byte, sum) in bytes.zip(sums.as_flattened()) {
                *byte = to_byte(*sum);
            }
            // Four bytes are one move; the fourth is overwritten by the pixel after it.
            for (column, bytes) in self.bytes.iter().enumerate() {
                target[column * CHANNELS..column * CHANNELS + LANES].copy_from_slice(bytes);
            }
        }
    }
}

/// The sums of all outputs, of a number of taps that the compiler knows.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn few<const TAPS: usize>(
    axis: &Axis,
    rows: &[Vec<i32>; ABREAST],
    [sums, beside]: &mut [Vec<[i32; LANES]>; ABREAST],
) {
    let first = axis.seen().start;
    let weigh = |row: &[i32], start: usize, weights: &[i32; TAPS]| {
        let length = TAPS * CHANNELS + SPARE;
        let pixels = &row[(start - first) * CHANNELS..][..length];
        let mut sum = [HALF; LANES];
        for (tap, weight) in weights.iter().enumerate() {
            sum = array::from_fn(|lane| sum[lane] + pixels[tap * CHANNELS + lane] * weight);
        }
        sum
    };
    for (((start, weights), sum), beside) in axis.outputs().zip(sums).zip(beside) {
        if let Some(weights) = weights.first_chunk() {
            *sum = weigh(&rows[0], start, weights);
            *beside = weigh(&rows[1], start, weights);
        }
    }
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn many(axis: &Axis, rows: &[Vec<i32>; ABREAST], sums: &mut [Vec<[i32; LANES]>; ABREAST]) {
    let first = axis.seen().start;
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
