//! Medians, their spread, and how sure a ratio of two of them is.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Resamplings of a bootstrap.
const RESAMPLES: usize = 4000;

/// A middle value and the two that bound it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The median of `values` with its quartiles: half of the rounds lie between them.
pub fn spread(values: &[f64]) -> Estimate {
    let sorted = sorted(values);
    Estimate {
        median: quantile(&sorted, 2, 4),
        low: quantile(&sorted, 1, 4),
        high: quantile(&sorted, 3, 4),
    }
}

/// The median of `above[i] / below[i]`, round by round, with its 95 % bootstrap interval.
pub fn ratio(above: &[f64], below: &[f64]) -> Estimate {
    let pairs: Vec<f64> = above
        .iter()
        .zip(below)
        .map(|(above, below)| above / below)
        .collect();
    let mut random = StdRng::seed_from_u64(0);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<f64> = pairs
                .iter()
                .map(|_| pairs[random.random_range(0..pairs.len())])
                .collect();
            quantile(&sorted(&drawn), 2, 4)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Estimate {
        median: quantile(&sorted(&pairs), 2, 4),
        low: quantile(&medians, 1, 40),
        high: quantile(&medians, 39, 40),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value at `part / whole` of the way through `sorted`, between neighbours where need be; 0 of nothing.
fn quantile(sorted: &[f64], part: u32, whole: u32) -> f64 {
    let last = u32::try_from(sorted.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let (index, rest) = (last * part / whole, last * part % whole);
    let value = |index: u32| sorted.get(index as usize).copied();
    let low = value(index).unwrap_or_default();
    let high = value(index + 1).unwrap_or(low);
    low + (high - low) * f64::from(rest) / f64::from(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let expected = Estimate {
            median: 3.0,
            low: 2.0,
            high: 4.0,
        };
        assert_eq!(spread(&[5.0, 1.0, 2.0, 4.0, 3.0]), expected);
        assert!((spread(&[1.0, 2.0]).median - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // The machine is twice as slow in every other round; the ratio does not see it.
        let ours = [2.0, 4.0, 2.0, 4.0, 2.0];
        let theirs = [1.0, 2.0, 1.0, 2.0, 1.0];
        assert_eq!(
            ratio(&ours, &theirs),
            Estimate {
                median: 2.0,
                low: 2.0,
                high: 2.0
            }
        );
    }
}
