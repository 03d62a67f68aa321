//! Medians, their spread, and confidence intervals of ratios.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 4000;

/// A median with a lower and an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The median of `values` with the quartiles as bounds.
pub fn median_and_quartiles(values: &[f64]) -> MedianInterval {
    let sorted = sorted(values);
    MedianInterval {
        median: quantile(&sorted, 2, 4),
        low: quantile(&sorted, 1, 4),
        high: quantile(&sorted, 3, 4),
    }
}

/// The median of `numerators[i] / denominators[i]` with its 95 % bootstrap interval.
pub fn median_ratio(numerators: &[f64], denominators: &[f64]) -> MedianInterval {
    let ratios: Vec<f64> = numerators
        .iter()
        .zip(denominators)
        .map(|(numerator, denominator)| numerator / denominator)
        .collect();
    let mut random = StdRng::seed_from_u64(0);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<f64> = ratios
                .iter()
                .map(|_| ratios[random.random_range(0..ratios.len())])
                .collect();
            quantile(&sorted(&drawn), 2, 4)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    MedianInterval {
        median: quantile(&sorted(&ratios), 2, 4),
        low: quantile(&medians, 1, 40),
        high: quantile(&medians, 39, 40),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile `part / whole` of sorted values, interpolated linearly; 0 if there are none.
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
    fn quartiles_are_interpolated() {
        let expected = MedianInterval {
            median: 3.0,
            low: 2.0,
            high: 4.0,
        };
        assert_eq!(median_and_quartiles(&[5.0, 1.0, 2.0, 4.0, 3.0]), expected);
        assert!((median_and_quartiles(&[1.0, 2.0]).median - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_is_computed_per_round() {
        // The machine is half as fast in every other round, which must not change the ratio.
        let ours = [2.0, 4.0, 2.0, 4.0, 2.0];
        let theirs = [1.0, 2.0, 1.0, 2.0, 1.0];
        assert_eq!(
            median_ratio(&ours, &theirs),
            MedianInterval {
                median: 2.0,
                low: 2.0,
                high: 2.0
            }
        );
    }
}
