//! What others leave of a gateway's CPUs.

use super::mean::Mean;

/// Steps get this part of the cores however much else there is to do: who has work is given turns.
const LEAST: f64 = 0.25;
/// Times of samples that a time has to have, at least: what a sample took is told when it is done.
const TIMES: f64 = 16.0;
/// Samples of which the time is the mean.
const SAMPLES: f64 = 64.0;

/// The part of a gateway's CPU time that is taken by anything but steps: the store beside it, and what the gateway itself does
/// besides.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Others {
    /// Seconds that steps take for a sample.
    sample: Mean,
    part: f64,
    /// Seconds that passed, those before the last look counting half, and what others took of them.
    passed: f64,
    taken: f64,
    /// Seconds since the last look.
    since: f64,
}

impl Others {
    /// Steps took so many seconds for a sample.
    pub(super) fn sample(&mut self, seconds: f64) {
        self.sample.add(seconds, SAMPLES);
    }

    /// So many seconds passed, of which others took so large a part; less than nothing where steps were done that had begun
    /// before.
    pub(super) fn passed(&mut self, seconds: f64, part: f64) {
        if !(seconds > 0.0 && seconds.is_finite() && part.is_finite()) {
            return;
        }
        self.since += seconds;
        self.passed += seconds;
        self.taken += part * seconds;
        if self.since >= TIMES * self.sample.get().unwrap_or_default() {
            self.part = (self.taken / self.passed).clamp(0.0, 1.0);
            self.since = 0.0;
            self.passed /= 2.0;
            self.taken /= 2.0;
        }
    }

    /// The part of the cores that is left for steps.
    pub(super) fn left(&self) -> f64 {
        (1.0 - self.part).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 0.01, "{found}, expected {expected}");
    }

    #[test]
    fn what_others_take_is_known_after_a_few_times() {
        let mut others = Others::default();
        near(others.left(), 1.0);
        others.sample(0.001);
        let mut after = |times: usize, part: f64| {
            for _ in 0..times {
                others.passed(0.2, part);
            }
            others.left()
        };
        near(after(1, 0.4), 0.6);
        near(after(3, 0.2), 0.787);
        near(after(8, 1.0), LEAST);
        near(after(8, 0.0), 1.0);
        // Layers that were loaded for a second are told of when that is done.
        near(after(5, 1.0), LEAST);
        near(after(1, -4.0), 1.0);
        for (seconds, part) in [(0.0, 0.5), (f64::NAN, 0.5), (0.2, f64::INFINITY)] {
            others.passed(seconds, part);
        }
        near(others.left(), 1.0);
    }

    /// What takes half a second is told of in one of three times of 0.2 s.
    #[test]
    fn samples_that_take_long_are_not_taken_for_others() {
        let mut others = Others::default();
        others.sample(0.5);
        let mut done = 0.0;
        for turn in 1..=200_u32 {
            let told = (f64::from(turn) * 0.2 / 0.5).floor() * 0.5;
            others.passed(0.2, (0.2 - (told - done)) / 0.2);
            done = told;
            assert!(others.left() > 0.93, "{turn}: {}", others.left());
        }
    }
}
