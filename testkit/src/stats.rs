//! What measurements are held against.

/// Jain's index of fairness (1984): 1 where all have the same, `1 / n` where one has everything.
#[expect(clippy::cast_precision_loss, reason = "an index, to be held against a bound")]
pub fn jain(shares: &[u64]) -> f64 {
    let sum: u64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    (sum as f64).powi(2) / (shares.len() as f64 * squares)
}
