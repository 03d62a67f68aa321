//! Conversions of numbers.

/// The nearest float, for sizes and counts.
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts need no more than 53 bits"
)]
pub const fn float(number: u64) -> f64 {
    number as f64
}
