//! The weights along one axis.

use std::ops::Range;

use super::Filter;

/// Fraction bits of a weight. 255 times the sum of the absolute weights of a kernel fits in 31 bits.
pub(super) const PRECISION: u32 = 22;
/// Added before the fraction is dropped, to round to nearest.
pub(super) const HALF: i32 = 1 << (PRECISION - 1);

/// The windows and weights of the outputs along an axis.
#[derive(Debug)]
pub(super) struct Axis {
    /// Start of each output's window, in ascending order.
    starts: Vec<usize>,
    /// The weights of each output, padded with zeros to the width of the widest window.
    weights: Vec<i32>,
    taps: usize,
    is_identity: bool,
}

impl Axis {
    /// The `outputs` of an axis of `source` pixels that becomes `target` pixels.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts as in C, limited to the source"
    )]
    pub(super) fn new(source: u32, target: u32, outputs: Range<u32>, filter: Filter) -> Self {
        if source == target {
            return Self {
                starts: outputs.clone().map(|output| output as usize).collect(),
                weights: vec![1 << PRECISION; outputs.len()],
                taps: 1,
                is_identity: true,
            };
        }
        let scale = f64::from(source) / f64::from(target);
        let widened = scale.max(1.0);
        let support = filter.support() * widened;
        let windows = outputs.map(|output| {
            let center = (f64::from(output) + 0.5) * scale;
            let start = (center - support + 0.5).max(0.0) as u32;
            (center, start, ((center + support + 0.5) as u32).min(source))
        });
        let taps = windows
            .clone()
            .map(|(_, start, end)| end - start)
            .max()
            .unwrap_or(1);
        let mut axis = Self {
            starts: Vec::with_capacity(windows.len()),
            weights: Vec::with_capacity(windows.len() * taps as usize),
            taps: taps as usize,
            is_identity: false,
        };
        let mut kernel = Vec::with_capacity(taps as usize);
        for (center, start, end) in windows {
            kernel.clear();
            // A multiplication, as in Pillow: a division would round differently.
            let distances = (start..end).map(|pixel| (f64::from(pixel) - center + 0.5) * (1.0 / widened));
            kernel.extend(distances.map(|distance| filter.kernel(distance)));
            let sum: f64 = kernel.iter().sum();
            // Moves the padded window to the left if it would extend beyond the source.
            let first = start.min(source - taps);
            let fixed = |weight: &f64| (weight / sum * f64::from(1 << PRECISION)).round() as i32;
            axis.weights.extend((first..start).map(|_| 0));
            axis.weights.extend(kernel.iter().map(fixed));
            axis.starts.push(first as usize);
            axis.weights.resize(axis.starts.len() * axis.taps, 0);
        }
        axis
    }

    /// Whether the outputs equal the inputs.
    pub(super) fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// Number of outputs.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Number of weights of each output.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// The inputs that the outputs read.
    pub(super) fn input_range(&self) -> Range<usize> {
        let first = self.starts.first().copied().unwrap_or_default();
        first..self.starts.last().map_or(first, |last| last + self.taps)
    }

    /// Start and weights of each output.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.starts
            .iter()
            .copied()
            .zip(self.weights.chunks_exact(self.taps))
    }
}

impl Filter {
    /// Half the width of the kernel, in pixels of the larger scale.
    const fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The kernel at `x`. Sines are from the `libm` crate, and so the same on every host.
    fn kernel(self, x: f64) -> f64 {
        let sinc = |x: f64| {
            let x = x * std::f64::consts::PI;
            if x == 0.0 { 1.0 } else { libm::sin(x) / x }
        };
        let distance = x.abs();
        match self {
            Self::Bilinear if distance < 1.0 => 1.0 - distance,
            Self::Bicubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Self::Bicubic if distance < 2.0 => (((distance - 5.0) * distance + 8.0) * distance - 4.0) * -0.5,
            Self::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            _ => 0.0,
        }
    }
}
