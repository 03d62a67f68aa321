//! Statistics for comparisons with bounds.

/// Fairness index of Jain (1984): 1 for equal amounts, `1 / n` if one of `n` has everything.
#[expect(
    clippy::cast_precision_loss,
    reason = "an approximate index, compared with a bound"
)]
pub fn jain(amounts: &[u64]) -> f64 {
    let sum: u64 = amounts.iter().sum();
    let squares: f64 = amounts.iter().map(|amount| (*amount as f64).powi(2)).sum();
    (sum as f64).powi(2) / (amounts.len() as f64 * squares)
}

/// `max |a - b| / max |b|`. NaN, which is not within any bound, if an element is NaN or the lengths differ.
pub fn distance(found: &[f32], expected: &[f32]) -> f32 {
    if found.len() != expected.len() {
        return f32::NAN;
    }
    if found == expected {
        return 0.0;
    }
    // In the total order a positive NaN is the largest value; `f32::max` would drop it.
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let farthest = differences.max_by(f32::total_cmp).unwrap_or_default();
    let largest = expected.iter().map(|element| element.abs());
    farthest / largest.max_by(f32::total_cmp).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_not_close_to_anything() {
        let close = |found: &[f32], expected: &[f32]| distance(found, expected) <= 1e-5;
        assert!(close(&[1.0, -2.0], &[1.0, -2.000_001]));
        assert!(!close(&[1.0, -2.0], &[1.0, -2.1]));
        for nan in [f32::NAN, -f32::NAN] {
            assert!(!close(&[nan, -2.0], &[1.0, -2.0]));
            assert!(!close(&[1.0, -2.0], &[nan, -2.0]));
        }
        assert!(!close(&[1.0, f32::INFINITY], &[1.0, -2.0]));
        assert!(!close(&[1.0], &[1.0, -2.0]));
    }
}
