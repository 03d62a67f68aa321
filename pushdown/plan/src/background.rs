//! Work other than steps on the CPUs of a gateway.

use std::collections::VecDeque;

use super::mean::Mean;

/// Minimum length of a window, as a multiple of the step time of a sample: step time is reported when a sample is complete.
const MIN_WINDOW_SAMPLE_TIMES: f64 = 16.0;
/// Samples over which the step time is averaged.
const STEP_MEMORY_SAMPLES: f64 = 64.0;
/// Windows that count.
const WINDOWS: usize = 3;

/// The background load of a gateway per sample: a store on the same machine reads the object, and the gateway forwards it.
///
/// The minimum over recent windows in which the CPUs were saturated. Load that is unrelated to samples makes the load per
/// sample larger, the fewer samples arrive in a window; windows without saturation only give an upper bound.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct BackgroundLoad {
    /// Seconds of steps per sample.
    step_seconds: Mean,
    /// Background seconds per sample of recent windows.
    windows: VecDeque<f64>,
    /// Length of the current window.
    window_seconds: f64,
    /// Background seconds of the current window.
    background_seconds: f64,
    /// Samples that arrived in the current window.
    samples: f64,
}

impl BackgroundLoad {
    /// Records the seconds that the steps of one sample took.
    pub(super) fn observe_step_seconds(&mut self, seconds: f64) {
        self.step_seconds.add(seconds, STEP_MEMORY_SAMPLES);
    }

    /// Records that a sample arrived, at any split.
    pub(super) fn observe_sample(&mut self) {
        self.samples += 1.0;
    }

    /// Records an interval and the ratio of it that went to background load. The ratio is negative if steps ended that had begun
    /// before the interval. `saturated`: whether the CPUs were saturated.
    pub(super) fn observe_interval(&mut self, seconds: f64, background_ratio: f64, saturated: bool) {
        if !(seconds > 0.0 && seconds.is_finite() && background_ratio.is_finite()) {
            return;
        }
        self.window_seconds += seconds;
        // A gateway may report any number, but background load cannot exceed the time that passed.
        self.background_seconds += background_ratio.min(1.0) * seconds;
        let min_window_seconds = MIN_WINDOW_SAMPLE_TIMES * self.step_seconds.get().unwrap_or_default();
        if self.samples > 0.0 && self.window_seconds >= min_window_seconds {
            let per_sample = (self.background_seconds / self.samples).max(0.0);
            if saturated || per_sample < self.seconds_per_sample() {
                if self.windows.len() == WINDOWS {
                    self.windows.pop_front();
                }
                self.windows.push_back(per_sample);
            }
            (self.window_seconds, self.background_seconds, self.samples) = (0.0, 0.0, 0.0);
        }
    }

    /// Background seconds per sample, on all cores together.
    pub(super) fn seconds_per_sample(&self) -> f64 {
        self.windows.iter().copied().reduce(f64::min).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-9,
            "expected {expected}, found {found}"
        );
    }

    /// The background load after some intervals of 0.2 s with this ratio of background load and number of samples each.
    fn after(load: &mut BackgroundLoad, intervals: usize, samples: usize, background_ratio: f64) -> f64 {
        for _ in 0..intervals {
            (0..samples).for_each(|_| load.observe_sample());
            load.observe_interval(0.2, background_ratio, true);
        }
        load.seconds_per_sample()
    }

    #[test]
    fn the_background_load_is_the_minimum_of_recent_windows() {
        let mut load = BackgroundLoad::default();
        assert_near(load.seconds_per_sample(), 0.0);
        load.observe_step_seconds(0.001);
        assert_near(after(&mut load, 1, 100, 0.5), 0.001);
        // With fewer samples per window, constant load counts as more per sample; the minimum stays until its window is dropped.
        assert_near(after(&mut load, 2, 10, 0.5), 0.001);
        assert_near(after(&mut load, 1, 10, 0.5), 0.01);
        assert_near(after(&mut load, 1, 100, 0.25), 0.0005);
        // Layers were loaded, which is reported at the end of loading.
        assert_near(after(&mut load, 1, 10, -4.0), 0.0);
        assert_near(after(&mut load, 3, 100, 0.5), 0.001);
        for (seconds, part) in [(0.0, 0.5), (f64::NAN, 0.5), (0.2, f64::INFINITY)] {
            load.observe_interval(seconds, part, true);
        }
        assert_near(after(&mut load, 0, 0, 0.0), 0.001);
        // Windows without samples do not count.
        assert_near(after(&mut load, 9, 0, 0.0), 0.001);
    }

    /// Absurd reports of a gateway must not make a plan impossible.
    #[test]
    fn absurd_ratios_are_limited_to_the_time_that_passed() {
        for part in [1e300, -1e300, f64::MAX, f64::MIN] {
            let mut load = BackgroundLoad::default();
            let seconds = after(&mut load, 2, 10, part);
            assert_near(seconds, if part > 0.0 { 0.02 } else { 0.0 });
            assert_near(after(&mut load, 3, 100, 0.5), 0.001);
        }
    }

    #[test]
    fn idle_cpus_give_an_upper_bound() {
        let mut load = BackgroundLoad::default();
        let while_idle = |load: &mut BackgroundLoad, part: f64| {
            (0..100).for_each(|_| load.observe_sample());
            load.observe_interval(0.2, part, false);
            load.seconds_per_sample()
        };
        assert_near(while_idle(&mut load, 0.5), 0.0);
        assert_near(after(&mut load, 1, 100, 0.5), 0.001);
        assert_near(while_idle(&mut load, 0.6), 0.001);
        assert_near(while_idle(&mut load, 0.3), 0.0006);
    }

    /// A sample that takes half a second is reported in one of two or three intervals of 0.2 s.
    #[test]
    fn slow_samples_do_not_count_as_background_load() {
        let mut load = BackgroundLoad::default();
        load.observe_step_seconds(0.5);
        let mut done = 0.0;
        for turn in 1..=200_u32 {
            let reported = (f64::from(turn) * 0.2 / 0.5).floor() * 0.5;
            if reported > done {
                load.observe_sample();
            }
            load.observe_interval(0.2, (0.2 - (reported - done)) / 0.2, true);
            done = reported;
            assert!(
                load.seconds_per_sample() < 0.05,
                "{turn}: {}",
                load.seconds_per_sample()
            );
        }
    }
}
