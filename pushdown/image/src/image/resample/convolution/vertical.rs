//! The vertical pass: computes an output row from several input rows.

use std::array;

use super::{axis::HALF, by_taps};

/// Computes one output row from the first `weights.len()` of `rows`, and converts its sums with `convert`. All rows are at least
/// as long as the target.
#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
pub(super) fn convolve_rows<'a, T>(
    rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    convert: impl Fn(i32) -> T,
) {
    by_taps!(
        weights.len(),
        fixed_taps<T>(rows, weights, target, convert),
        any_taps(rows, weights, target, convert)
    );
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
fn fixed_taps<'a, const TAPS: usize, T>(
    mut rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    convert: impl Fn(i32) -> T,
) {
    let rows: [_; TAPS] = array::from_fn(|_| &rows.next().unwrap_or_default()[..target.len()]);
    let weights: [_; TAPS] = array::from_fn(|tap| weights[tap]);
    for (column, target) in target.iter_mut().enumerate() {
        let products = (0..TAPS).map(|tap| i32::from(rows[tap][column]) * weights[tap]);
        *target = convert(products.fold(HALF, |sum, product| sum + product));
    }
}

#[expect(clippy::inline_always, reason = "compiled for the registers of its caller")]
#[inline(always)]
fn any_taps<'a, T>(
    rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    convert: impl Fn(i32) -> T,
) {
    let mut sums = vec![HALF; target.len()];
    for (weight, row) in weights.iter().zip(rows) {
        for (sum, level) in sums.iter_mut().zip(row) {
            *sum += i32::from(*level) * weight;
        }
    }
    for (target, sum) in target.iter_mut().zip(sums) {
        *target = convert(sum);
    }
}
