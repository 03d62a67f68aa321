//! A logistic head with an L2 penalty, by Newton's method with conjugate gradients.
//!
//! It minimises `l2 / 2 * |w|^2 + sum(log(1 + exp(-y * (w x + b))))` over standardised features; the bias is not
//! penalised. The same rows result in the same head on every host, for any number of threads.

mod chunks;

use std::{num::NonZeroUsize, thread};

use self::chunks::map_chunks;
use crate::features::Features;

/// Rows of a chunk. A thread works on one chunk at a time.
const ROWS: usize = 256;
/// The gradient counts as zero once it has shrunk by this factor.
const TOLERANCE: f64 = 1e-8;
const MAX_STEPS: usize = 100;

/// A trained head.
#[derive(Debug)]
pub(crate) struct Head {
    means: Vec<f64>,
    scales: Vec<f64>,
    /// One weight per feature, then the bias.
    weights: Vec<f64>,
}

/// Standardised rows with their labels.
#[derive(Debug)]
struct Problem<'a> {
    rows: Vec<f32>,
    width: usize,
    labels: &'a [bool],
    l2: f64,
    threads: NonZeroUsize,
}

/// The objective function at some weights.
#[derive(Debug)]
struct Evaluation {
    value: f64,
    gradient: Vec<f64>,
    /// Second derivative of each row's loss.
    curvature: Vec<f64>,
}

impl Head {
    /// Trains on rows with one label each, on all CPUs that this process may use.
    pub(crate) fn train(features: &Features, labels: &[bool], l2: f64) -> Self {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self::train_on(threads, features, labels, l2)
    }

    fn train_on(threads: NonZeroUsize, features: &Features, labels: &[bool], l2: f64) -> Self {
        let (means, scales) = moments(features);
        let rows = features.rows().flat_map(|row| {
            let standardised = row.iter().zip(&means).zip(&scales);
            standardised.map(|((value, mean), scale)| narrow((f64::from(*value) - mean) / scale))
        });
        let problem = Problem {
            rows: rows.collect(),
            width: features.width(),
            labels,
            l2,
            threads,
        };
        Self {
            weights: problem.solve(),
            means,
            scales,
        }
    }

    /// The log-odds that a row is positive.
    pub(crate) fn score(&self, row: &[f32]) -> f64 {
        let standardised = row.iter().zip(&self.means).zip(&self.scales);
        let terms = standardised
            .zip(&self.weights)
            .map(|(((value, mean), scale), weight)| (f64::from(*value) - mean) / scale * weight);
        terms.sum::<f64>() + self.weights.last().copied().unwrap_or_default()
    }
}

impl Problem<'_> {
    fn solve(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.width + 1];
        let mut current = self.evaluate(&weights);
        let first = norm(&current.gradient);
        for _ in 0..MAX_STEPS {
            let size = norm(&current.gradient);
            if size <= TOLERANCE * first {
                break;
            }
            let direction = self.direction(&current, size * (size / first).sqrt().min(0.5));
            let slope = dot(&current.gradient, &direction);
            let mut length = 1.0;
            let next = loop {
                let moved: Vec<f64> = weights
                    .iter()
                    .zip(&direction)
                    .map(|(weight, step)| weight + length * step)
                    .collect();
                let moved_to = self.evaluate(&moved);
                // Near the optimum, rounding hides the gain of a step.
                if moved_to.value <= current.value + 1e-4 * length * slope || length < 1e-6 {
                    break (moved, moved_to);
                }
                length /= 2.0;
            };
            (weights, current) = next;
        }
        weights
    }

    fn evaluate(&self, weights: &[f64]) -> Evaluation {
        let margins = self.margins(weights);
        let (penalised, bias) = (&weights[..self.width], weights[self.width]);
        let mut value = 0.5 * self.l2 * dot(penalised, penalised);
        let (mut residuals, mut curvature) = (Vec::new(), Vec::new());
        for (margin, label) in margins.iter().zip(self.labels) {
            let margin = margin + bias;
            let wrong = if *label { -margin } else { margin };
            value += wrong.max(0.0) + (-wrong.abs()).exp().ln_1p();
            let probability = 1.0 / (1.0 + (-margin).exp());
            residuals.push(probability - f64::from(u8::from(*label)));
            curvature.push(probability * (1.0 - probability));
        }
        Evaluation {
            value,
            gradient: self.gather(&residuals, weights),
            curvature,
        }
    }

    /// Newton's direction: the Hessian's inverse times the negative gradient, to within `tolerance`.
    fn direction(&self, at: &Evaluation, tolerance: f64) -> Vec<f64> {
        let mut direction = vec![0.0; self.width + 1];
        let mut residual: Vec<f64> = at.gradient.iter().map(|slope| -slope).collect();
        let mut search = residual.clone();
        let mut size = dot(&residual, &residual);
        for _ in 0..=self.width {
            if size.sqrt() <= tolerance {
                break;
            }
            let product = self.hessian_product(&search, &at.curvature);
            let step = size / dot(&search, &product).max(f64::MIN_POSITIVE);
            add(&mut direction, step, &search);
            add(&mut residual, -step, &product);
            let next = dot(&residual, &residual);
            for (search, residual) in search.iter_mut().zip(&residual) {
                *search = residual + next / size * *search;
            }
            size = next;
        }
        direction
    }

    fn hessian_product(&self, vector: &[f64], curvature: &[f64]) -> Vec<f64> {
        let margins = self.margins(vector);
        let bias = vector[self.width];
        let factors: Vec<f64> = margins
            .iter()
            .zip(curvature)
            .map(|(margin, curvature)| (margin + bias) * curvature)
            .collect();
        self.gather(&factors, vector)
    }

    /// Each row times the weights, without the bias.
    fn margins(&self, weights: &[f64]) -> Vec<f64> {
        let width = self.width.max(1);
        let margin = |row: &[f32]| -> f64 {
            row.iter()
                .zip(weights)
                .map(|(x, weight)| f64::from(*x) * weight)
                .sum()
        };
        let chunks = map_chunks(self.threads, &self.rows, ROWS * width, |_, rows| -> Vec<f64> {
            rows.chunks_exact(width).map(margin).collect()
        });
        chunks.concat()
    }

    /// The sum of all rows, each times its factor, and of the penalty. The rows of each partial sum do not depend on the
    /// number of threads.
    fn gather(&self, factors: &[f64], weights: &[f64]) -> Vec<f64> {
        let width = self.width.max(1);
        let parts = map_chunks(self.threads, &self.rows, ROWS * width, |index, rows| {
            let mut sum = vec![0.0; self.width];
            for (row, factor) in rows.chunks_exact(width).zip(&factors[index * ROWS..]) {
                for (sum, x) in sum.iter_mut().zip(row) {
                    *sum += f64::from(*x) * factor;
                }
            }
            sum
        });
        let mut sum: Vec<f64> = weights[..self.width]
            .iter()
            .map(|weight| self.l2 * weight)
            .collect();
        for part in &parts {
            add(&mut sum, 1.0, part);
        }
        sum.push(factors.iter().sum());
        sum
    }
}

/// Mean and standard deviation of each feature; the deviation of a constant feature is 1.
fn moments(features: &Features) -> (Vec<f64>, Vec<f64>) {
    let count = float(features.len());
    let mut means = vec![0.0; features.width()];
    for row in features.rows() {
        for (mean, value) in means.iter_mut().zip(row) {
            *mean += f64::from(*value) / count;
        }
    }
    let mut variances = vec![0.0; features.width()];
    for row in features.rows() {
        for ((variance, value), mean) in variances.iter_mut().zip(row).zip(&means) {
            *variance += (f64::from(*value) - mean).powi(2) / count;
        }
    }
    let deviation = |variance: f64| if variance > 1e-12 { variance.sqrt() } else { 1.0 };
    (means, variances.into_iter().map(deviation).collect())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn add(sum: &mut [f64], factor: f64, terms: &[f64]) {
    for (sum, term) in sum.iter_mut().zip(terms) {
        *sum += factor * term;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "standardised features, of which a few digits matter"
)]
const fn narrow(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows")]
const fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
