//! Statistical tests that compare this crate's draws with torchvision's.

use std::{fs, path::Path};

use safetensors::SafeTensors;

/// The 10,000 rows of a sample of torchvision (`scripts/golden.py`).
pub(super) fn torchvision<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/draws.safetensors");
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

/// The asymptotic p-value of the two-sample Kolmogorov-Smirnov test (Numerical Recipes, 14.3).
pub(super) fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |sample: &[f64]| {
        let mut sample = sample.to_vec();
        sample.sort_by(f64::total_cmp);
        sample
    };
    let (a, b) = (sorted(a), sorted(b));
    let cumulative_ratio = |sample: &[f64], value: f64| {
        to_f64(sample.partition_point(|drawn| *drawn <= value)) / to_f64(sample.len())
    };
    let distance = a
        .iter()
        .chain(&b)
        .map(|value| (cumulative_ratio(&a, *value) - cumulative_ratio(&b, *value)).abs())
        .fold(0.0, f64::max);
    let effective = (to_f64(a.len()) * to_f64(b.len()) / to_f64(a.len() + b.len())).sqrt();
    let lambda = (effective + 0.12 + 0.11 / effective) * distance;
    if lambda < 0.3 {
        // The series does not converge for small values; its limit is 1.
        return 1.0;
    }
    let term = |j: i32| (-2.0 * f64::from(j * j) * lambda * lambda).exp();
    2.0 * (1..100)
        .map(|j| if j % 2 == 1 { term(j) } else { -term(j) })
        .sum::<f64>()
}

/// The statistic of Pearson's chi-square test for the hypothesis that two histograms have the same distribution.
pub(super) fn chi_square(a: &[usize], b: &[usize]) -> f64 {
    let totals = [to_f64(a.iter().sum()), to_f64(b.iter().sum())];
    let cells = a.iter().zip(b).filter(|(a, b)| *a + *b > 0);
    cells
        .map(|(a, b)| {
            let pooled = to_f64(a + b) / (totals[0] + totals[1]);
            let term =
                |observed: usize, total: f64| (to_f64(observed) - pooled * total).powi(2) / (pooled * total);
            term(*a, totals[0]) + term(*b, totals[1])
        })
        .sum()
}

fn to_f64(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a sample's size"))
}

#[test]
fn the_tests_distinguish_distributions() {
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
