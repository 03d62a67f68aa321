//! The weights along one axis.

use std::ops::Range;

use super::Filter;

/// Bits of a weight's fraction. 255 times the sum of a kernel's weights, taken positive, has 31.
pub(super) const PRECISION: u32 = 22;
/// Rounds to nearest.
pub(super) const HALF: i32 = 1 << (PRECISION - 1);

/// What the outputs along an axis look at, and how much of it.
pub(super) struct Axis {
    /// Where each output's window starts. They rise.
    starts: Vec<usize>,
    /// As many weights for each output as the widest window has; those that it lacks are 0.
    weights: Vec<i32>,
    taps: usize,
    identity: bool,
}

impl Axis {
    /// The `outputs` of an axis of `source` pixels that becomes `target` pixels.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as C's casts, held to the source"
    )]
    pub(super) fn new(source: u32, target: u32, outputs: Range<u32>, filter: Filter) -> Self {
        if source == target {
            return Self {
                starts: outputs.clone().map(|output| output as usize).collect(),
                weights: vec![1 << PRECISION; outputs.len()],
                taps: 1,
                identity: true,
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
            identity: false,
        };
        let mut kernel = Vec::with_capacity(taps as usize);
        for (center, start, end) in windows {
            kernel.clear();
            // A multiplication, as Pillow has it: dividing rounds otherwise.
            let places = (start..end).map(|pixel| (f64::from(pixel) - center + 0.5) * (1.0 / widened));
            kernel.extend(places.map(|place| filter.kernel(place)));
            let sum: f64 = kernel.iter().sum();
            // The window must not reach beyond the source: what it has too many comes before.
            let first = start.min(source - taps);
            let fixed = |weight: &f64| (weight / sum * f64::from(1 << PRECISION)).round() as i32;
            axis.weights.extend((first..start).map(|_| 0));
            axis.weights.extend(kernel.iter().map(fixed));
            axis.starts.push(first as usize);
            axis.weights.resize(axis.starts.len() * axis.taps, 0);
        }
        axis
    }

    /// Whether outputs are what they look at.
    pub(super) fn is_identity(&self) -> bool {
        self.identity
    }

    /// How many outputs there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// How many weights each output has.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// All that is looked at.
    pub(super) fn seen(&self) -> Range<usize> {
        let first = self.starts.first().copied().unwrap_or_default();
        first..self.starts.last().map_or(first, |last| last + self.taps)
    }

    /// Each output's start and weights.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.starts
            .iter()
            .copied()
            .zip(self.weights.chunks_exact(self.taps))
    }
}

impl Filter {
    /// Reach of the kernel to either side, in pixels of the larger scale.
    const fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The kernel at `x`. Sines from the `libm` crate, the same on any host.
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
