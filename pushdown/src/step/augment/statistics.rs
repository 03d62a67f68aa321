//! For tests: our draws against torchvision's, as samples of one distribution.

use std::{fs, path::Path};

use safetensors::SafeTensors;

/// The rows of one of torchvision's samples, 10,000 of them (`scripts/golden.py`).
pub(super) fn torchvision<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/draws.safetensors");
    let bytes = fs::read(path).expect("the file is in the repository");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let tensor = tensors.tensor(name).expect("a sample of that name");
    assert_eq!(tensor.shape()[1..], [N]);
    let (words, _) = tensor.data().as_chunks::<4>();
    let numbers: Vec<f64> = words
        .iter()
        .map(|word| f64::from(f32::from_le_bytes(*word)))
        .collect();
    numbers.as_chunks::<N>().0.to_vec()
}

/// The p-value of the two-sample Kolmogorov-Smirnov test, asymptotic (Numerical Recipes, 14.3).
pub(super) fn kolmogorov_smirnov(one: &[f64], other: &[f64]) -> f64 {
    let sorted = |sample: &[f64]| {
        let mut sample = sample.to_vec();
        sample.sort_by(f64::total_cmp);
        sample
    };
    let (one, other) = (sorted(one), sorted(other));
    let share = |sample: &[f64], value: f64| {
        count(sample.partition_point(|drawn| *drawn <= value)) / count(sample.len())
    };
    let distance = one
        .iter()
        .chain(&other)
        .map(|value| (share(&one, *value) - share(&other, *value)).abs())
        .fold(0.0, f64::max);
    let effective = (count(one.len()) * count(other.len()) / count(one.len() + other.len())).sqrt();
    let lambda = (effective + 0.12 + 0.11 / effective) * distance;
    if lambda < 0.3 {
        // The series has not converged there, and its sum is 1.
        return 1.0;
    }
    let term = |j: i32| (-2.0 * f64::from(j * j) * lambda * lambda).exp();
    2.0 * (1..100)
        .map(|j| if j % 2 == 1 { term(j) } else { -term(j) })
        .sum::<f64>()
}

/// The statistic of Pearson's chi-square test that two histograms are samples of one distribution.
pub(super) fn chi_square(one: &[usize], other: &[usize]) -> f64 {
    let totals = [count(one.iter().sum()), count(other.iter().sum())];
    let cells = one.iter().zip(other).filter(|(one, other)| *one + *other > 0);
    cells
        .map(|(one, other)| {
            let pooled = count(one + other) / (totals[0] + totals[1]);
            let off = |found: usize, total: f64| (count(found) - pooled * total).powi(2) / (pooled * total);
            off(*one, totals[0]) + off(*other, totals[1])
        })
        .sum()
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a sample's size"))
}

#[test]
fn the_tests_tell_distributions_apart() {
    let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
    let shifted: Vec<f64> = ramp.iter().map(|value| value + 100.0).collect();
    let shuffled: Vec<f64> = (0..1000).map(|index| f64::from(index * 7 % 1000)).collect();
    assert!(kolmogorov_smirnov(&ramp, &shuffled) > 0.999);
    assert!(kolmogorov_smirnov(&ramp, &shifted) < 0.001);
    assert!(
        chi_square(&[100, 100, 100], &[90, 110, 100]) < 13.8,
        "the critical value for two degrees of freedom"
    );
    assert!(chi_square(&[100, 100, 100], &[150, 50, 100]) > 13.8);
}
