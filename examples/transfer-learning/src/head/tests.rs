//! Properties of a trained head, without a reference implementation.

use super::*;

/// Deterministic noise in [-1, 1).
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(state >> 48).unwrap()) / 32_768.0 - 1.0
    };
    (0..count).map(next).collect()
}

/// Rows of `width` features of very different sizes, and labels that follow from the first two and some noise.
fn rows(count: usize, width: usize) -> (Features, Vec<bool>) {
    let mut values = noise(count * width, 3);
    let labels = values
        .chunks_exact(width)
        .zip(noise(count, 4))
        .map(|(row, noise)| row[0] - row[1] + 0.5 * noise > 0.3)
        .collect();
    for row in values.chunks_exact_mut(width) {
        row[0] = 1_000.0 * row[0] + 5.0;
        row[width - 1] = 7.0;
    }
    (Features::new(values, width), labels)
}

fn problem<'a>(features: &Features, labels: &'a [bool], l2: f64) -> Problem<'a> {
    let (means, scales) = moments(features);
    let standardise = |row: &[f32]| -> Vec<f32> {
        let standardised = row.iter().zip(&means).zip(&scales);
        standardised
            .map(|((value, mean), scale)| narrow((f64::from(*value) - mean) / scale))
            .collect()
    };
    Problem {
        rows: features.rows().flat_map(standardise).collect(),
        width: features.width(),
        labels,
        l2,
        threads: NonZeroUsize::MIN,
    }
}

#[test]
fn the_gradient_vanishes_at_the_optimum() {
    for (count, width, l2) in [(600, 5, 1.0), (40, 100, 0.01), (1_000, 3, 1e-6), (300, 20, 1e4)] {
        let (features, labels) = rows(count, width);
        let problem = problem(&features, &labels, l2);
        let weights = problem.solve();
        let optimum = problem.evaluate(&weights);
        let first = norm(&problem.evaluate(&vec![0.0; width + 1]).gradient);
        assert!(norm(&optimum.gradient) <= 1e-7 * first, "{count} x {width}, {l2}");
        // It is a minimum: all other points are worse.
        for index in 0..=width {
            for step in [-0.1, 0.1] {
                let mut moved = weights.clone();
                moved[index] += step;
                assert!(problem.evaluate(&moved).value > optimum.value);
            }
        }
    }
}

#[test]
fn the_derivatives_match_finite_differences() {
    let (features, labels) = rows(300, 4);
    let problem = problem(&features, &labels, 2.0);
    let weights = [0.3, -0.2, 0.5, 0.1, -0.4];
    let at_weights = problem.evaluate(&weights);
    let mut differences = Vec::new();
    for index in 0..weights.len() {
        let at = |step: f64| {
            let mut moved = weights;
            moved[index] += step;
            problem.evaluate(&moved)
        };
        let (after, before) = (at(1e-5), at(-1e-5));
        let slope = (after.value - before.value) / 2e-5;
        assert!(
            (slope - at_weights.gradient[index]).abs() < 1e-4,
            "{slope} {:?}",
            at_weights.gradient
        );
        differences.push((after.gradient[0] - before.gradient[0]) / 2e-5);
    }
    let product = problem.hessian_product(&[1.0, 0.0, 0.0, 0.0, 0.0], &at_weights.curvature);
    for (found, expected) in product.iter().zip(&differences) {
        assert!((found - expected).abs() < 1e-4, "{product:?} {differences:?}");
    }
}

/// With constant features only the bias is used, and equals the log-odds.
#[test]
fn constant_features_leave_the_log_odds_as_the_bias() {
    let labels: Vec<bool> = (0..40).map(|index| index % 4 == 0).collect();
    let head = Head::train(&Features::new(vec![2.5; 40], 1), &labels, 1.0);
    assert!(
        (head.score(&[2.5]) - (1.0_f64 / 3.0).ln()).abs() < 1e-6,
        "{head:?}"
    );
}

/// One feature that is 1 for positives and -1 for negatives: the weight `w` solves `l2 * w = n / (1 + exp(w))`.
#[test]
fn one_feature_has_a_closed_form() {
    let labels: Vec<bool> = (0..20).map(|index| index % 2 == 0).collect();
    let values = labels
        .iter()
        .map(|label| if *label { 1.0 } else { -1.0 })
        .collect();
    let head = Head::train(&Features::new(values, 1), &labels, 5.0);
    let weight = head.score(&[1.0]);
    assert!(
        (5.0 * weight - 20.0 / (1.0 + weight.exp())).abs() < 1e-6,
        "{weight}"
    );
    assert!((head.score(&[-1.0]) + weight).abs() < 1e-9);
}

#[test]
fn separable_classes_are_separated_for_any_number_of_threads() {
    let (features, labels) = rows(2_000, 6);
    let train = |threads: usize| {
        let threads = NonZeroUsize::new(threads).unwrap();
        Head::train_on(threads, &features, &labels, 1.0).weights
    };
    let weights = train(1);
    assert_eq!(weights, train(3), "bit for bit");
    let head = Head::train(&features, &labels, 1.0);
    let right = features
        .rows()
        .zip(&labels)
        .filter(|(row, label)| (head.score(row) > 0.0) == **label)
        .count();
    assert!(right > 1_700, "{right} of 2000");
}
