//! One output row from those that it looks at: the pass that changes the number of rows.

use std::array;

use super::{axis::HALF, by_taps};

/// One output row from the first of `rows`, as many as there are weights, its sums as `made` has them. All rows are as
/// long as the target.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
pub(super) fn across<'a, T>(
    rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    made: impl Fn(i32) -> T,
) {
    by_taps!(
        weights.len(),
        few<T>(rows, weights, target, made),
        many(rows, weights, target, made)
    );
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn few<'a, const TAPS: usize, T>(
    mut rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    made: impl Fn(i32) -> T,
) {
    let rows: [_; TAPS] = array::from_fn(|_| &rows.next().unwrap_or_default()[..target.len()]);
    let weights: [_; TAPS] = array::from_fn(|tap| weights[tap]);
    for (column, target) in target.iter_mut().enumerate() {
        let products = (0..TAPS).map(|tap| i32::from(rows[tap][column]) * weights[tap]);
        *target = made(products.fold(HALF, |sum, product| sum + product));
    }
}

#[expect(
    clippy::inline_always,
    reason = "compiled for the registers that its caller may use"
)]
#[inline(always)]
fn many<'a, T>(
    rows: impl Iterator<Item = &'a [u8]>,
    weights: &[i32],
    target: &mut [T],
    made: impl Fn(i32) -> T,
) {
    let mut sums = vec![HALF; target.len()];
    for (weight, row) in weights.iter().zip(rows) {
        for (sum, level) in sums.iter_mut().zip(row) {
            *sum += i32::from(*level) * weight;
        }
    }
    for (target, sum) in target.iter_mut().zip(sums) {
        *target = made(sum);
    }
}
