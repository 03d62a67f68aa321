//! What others take of a gateway's CPUs.

use std::collections::VecDeque;

use super::mean::Mean;

/// Times of samples that a time has to have, at least: what a sample took is told when it is done.
const TIMES: f64 = 16.0;
/// Samples of which the time is the mean.
const SAMPLES: f64 = 64.0;
/// Times that are remembered.
const REMEMBERED: usize = 3;

/// What is done at a gateway for each sample besides steps: by the store beside it, which reads the object, and by the gateway,
/// which passes it on.
///
/// The least of some times in which the CPUs had their hands full: what has nothing to do with samples is the more for each, the
/// fewer of them come, so that other times tell only how much it is at most.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Others {
    /// Seconds that steps take for a sample.
    steps: Mean,
    /// Of each of the last times, what others took for a sample.
    each: VecDeque<f64>,
    /// Seconds that passed since then, those that others took of them, and samples that came.
    passed: f64,
    taken: f64,
    samples: f64,
}

impl Others {
    /// Steps took so many seconds for a sample.
    pub(super) fn steps(&mut self, seconds: f64) {
        self.steps.add(seconds, SAMPLES);
    }

    /// A sample came, whichever way.
    pub(super) fn came(&mut self) {
        self.samples += 1.0;
    }

    /// So many seconds passed, of which others took so large a part; less than nothing where steps were done that had begun
    /// before. `full`: the CPUs had their hands full.
    pub(super) fn passed(&mut self, seconds: f64, part: f64, full: bool) {
        if !(seconds > 0.0 && seconds.is_finite() && part.is_finite()) {
            return;
        }
        self.passed += seconds;
        // Whatever a gateway tells: others cannot take more than there is.
        self.taken += part.min(1.0) * seconds;
        if self.samples > 0.0 && self.passed >= TIMES * self.steps.get().unwrap_or_default() {
            let each = (self.taken / self.samples).max(0.0);
            if full || each < self.seconds() {
                if self.each.len() == REMEMBERED {
                    self.each.pop_front();
                }
                self.each.push_back(each);
            }
            (self.passed, self.taken, self.samples) = (0.0, 0.0, 0.0);
        }
    }

    /// Seconds for each sample, of all cores together.
    pub(super) fn seconds(&self) -> f64 {
        self.each.iter().copied().reduce(f64::min).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    /// Seconds after so many times of 0.2 s, of which others took a part, with so many samples in each.
    fn after(others: &mut Others, times: usize, samples: usize, part: f64) -> f64 {
        for _ in 0..times {
            (0..samples).for_each(|_| others.came());
            others.passed(0.2, part, true);
        }
        others.seconds()
    }

    #[test]
    fn the_least_of_what_others_took_for_a_sample_is_known() {
        let mut others = Others::default();
        near(others.seconds(), 0.0);
        others.steps(0.001);
        near(after(&mut others, 1, 100, 0.5), 0.001);
        // Few samples came in that time: what is done all the time is no more work for each.
        near(after(&mut others, 2, 10, 0.5), 0.001);
        near(after(&mut others, 1, 10, 0.5), 0.01);
        near(after(&mut others, 1, 100, 0.25), 0.0005);
        // Layers were loaded, of which is told when that is done.
        near(after(&mut others, 1, 10, -4.0), 0.0);
        near(after(&mut others, 3, 100, 0.5), 0.001);
        for (seconds, part) in [(0.0, 0.5), (f64::NAN, 0.5), (0.2, f64::INFINITY)] {
            others.passed(seconds, part, true);
        }
        near(after(&mut others, 0, 0, 0.0), 0.001);
        // Without samples there is nothing to tell.
        near(after(&mut others, 9, 0, 0.0), 0.001);
    }

    /// A plan that was made from more seconds than any epoch has would be none.
    #[test]
    fn what_cannot_be_is_bounded_by_the_time_that_passed() {
        for part in [1e300, -1e300, f64::MAX, f64::MIN] {
            let mut others = Others::default();
            let seconds = after(&mut others, 2, 10, part);
            near(seconds, if part > 0.0 { 0.02 } else { 0.0 });
            near(after(&mut others, 3, 100, 0.5), 0.001);
        }
    }

    #[test]
    fn cpus_that_have_time_tell_the_most_that_it_may_be() {
        let mut others = Others::default();
        let with_time = |others: &mut Others, part: f64| {
            (0..100).for_each(|_| others.came());
            others.passed(0.2, part, false);
            others.seconds()
        };
        near(with_time(&mut others, 0.5), 0.0);
        near(after(&mut others, 1, 100, 0.5), 0.001);
        near(with_time(&mut others, 0.6), 0.001);
        near(with_time(&mut others, 0.3), 0.0006);
    }

    /// What takes half a second is told of in one of three times of 0.2 s.
    #[test]
    fn samples_that_take_long_are_not_taken_for_others() {
        let mut others = Others::default();
        others.steps(0.5);
        let mut done = 0.0;
        for turn in 1..=200_u32 {
            let told = (f64::from(turn) * 0.2 / 0.5).floor() * 0.5;
            if told > done {
                others.came();
            }
            others.passed(0.2, (0.2 - (told - done)) / 0.2, true);
            done = told;
            assert!(others.seconds() < 0.05, "{turn}: {}", others.seconds());
        }
    }
}
