//! Chooses the size of micro-batches: the one with the lowest measured time per sample.

use std::time::Duration;

use pushdown::step::model::Provider;

/// Batches between two trials of another size. Trials are rare, because a trial of eight samples is expensive compared
/// with batches of one.
const TRIAL_INTERVAL: u64 = 256;
/// Batches until the first trial after a larger size has become the best. Background load may have slowed a few small
/// batches in a row, and a trial of a few samples costs little compared with large batches. The interval then doubles
/// with each trial.
const FIRST_TRIAL_INTERVAL: u64 = 2;
/// Times that are kept per size.
const KEPT_TIMES: usize = 8;
/// A larger batch must take at most this ratio of the time per sample, to be worth the wait for more samples.
const MAX_TIME_RATIO: f64 = 0.97;

/// Chooses batch sizes from the measured time per sample of each size.
///
/// A batch reads weights only once. This pays if there are many weights and little work (fully connected layers). With few
/// weights, the activations of one sample may fit into a CPU cache and those of several may not. A GPU requires more
/// samples to be saturated, up to its memory: it refuses a larger batch. The samples of a refused batch run one by one,
/// and so take long.
#[derive(Debug)]
pub(super) struct BatchSizeTuner {
    /// Index of the size that was best at the last decision.
    best: usize,
    trials: TrialSchedule,
    /// Ascending from one sample to the largest allowed batch.
    sizes: Vec<MeasuredSize>,
}

/// Schedule of trials of other sizes.
#[derive(Debug)]
struct TrialSchedule {
    /// Batches between two trials.
    interval: u64,
    /// Batches until the next trial.
    remaining: u64,
    /// Trials so far.
    count: usize,
}

/// A batch size, and the times per sample of batches up to this size.
#[derive(Debug)]
struct MeasuredSize {
    size: usize,
    times: RecentTimes,
}

/// The last times of a size. The minimum is the time without disturbance by background load.
#[derive(Debug, Default)]
struct RecentTimes {
    last: [Option<Duration>; KEPT_TIMES],
    next: usize,
}

/// Which samples a batch may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchMembers {
    /// Any that wait for the same layers, as many as take the least time per sample.
    Any,
    /// One, so that its value does not depend on others in its last bits.
    One,
}

impl BatchMembers {
    /// The sizes to choose from on this provider.
    pub(super) const fn sizes(self, provider: Provider) -> &'static [usize] {
        match self {
            Self::Any => candidate_sizes(provider),
            Self::One => &[1],
        }
    }
}

/// The sizes to choose from. They are small, because waiting samples keep their memory reserved.
const fn candidate_sizes(provider: Provider) -> &'static [usize] {
    match provider {
        Provider::Cpu => &[1, 8],
        Provider::Cuda => &[1, 8, 32, 128],
    }
}

impl BatchSizeTuner {
    /// Chooses from `sizes`, in ascending order from 1.
    pub(super) fn new(sizes: &[usize]) -> Self {
        let unmeasured = |size: &usize| MeasuredSize {
            size: *size,
            times: RecentTimes::default(),
        };
        Self {
            best: 0,
            trials: TrialSchedule::with_interval(TRIAL_INTERVAL),
            sizes: sizes.iter().map(unmeasured).collect(),
        }
    }

    /// The maximum number of samples for the next batch.
    pub(super) fn next_max_samples(&mut self) -> usize {
        let is_measured = |size: &MeasuredSize| size.times.min().is_some();
        // Large batches fill up only under load. After the first such batch, smaller sizes are measured in descending order.
        let Some(largest) = self
            .sizes
            .iter()
            .rposition(is_measured)
            .filter(|index| *index > 0)
        else {
            return self.size_at(self.sizes.len());
        };
        if let Some(unmeasured) = self.sizes[..largest].iter().rposition(|size| !is_measured(size)) {
            return self.size_at(unmeasured);
        }
        let (before, best) = (self.best, self.best());
        self.best = best;
        if best != before {
            self.trials = TrialSchedule::with_interval(if best > before {
                FIRST_TRIAL_INTERVAL
            } else {
                TRIAL_INTERVAL
            });
        }
        if let Some(trial) = self.trials.next_trial() {
            // Round robin over the other sizes.
            let others = self.sizes.len().saturating_sub(1).max(1);
            return self.size_at((best + 1 + trial % others) % self.sizes.len());
        }
        // If the largest measured size is the best, an even larger batch may be better.
        self.size_at(if best == largest { self.sizes.len() } else { best })
    }

    /// Records the time per sample of a batch of `samples`.
    pub(super) fn record(&mut self, samples: usize, time_per_sample: Duration) {
        if let Some(size) = self.sizes.iter_mut().find(|size| samples <= size.size) {
            size.times.add(time_per_sample);
        }
    }

    /// The size at an index, or the largest.
    fn size_at(&self, index: usize) -> usize {
        let size = self.sizes.get(index).or_else(|| self.sizes.last());
        size.map_or(1, |size| size.size)
    }

    /// The measured size with the lowest time per sample.
    fn best(&self) -> usize {
        let measured = self
            .sizes
            .iter()
            .enumerate()
            .filter_map(|(index, size)| Some((index, size.times.min()?)));
        let better = |best: (usize, Duration), next: (usize, Duration)| {
            if next.1 < best.1.mul_f64(MAX_TIME_RATIO) {
                next
            } else {
                best
            }
        };
        measured.reduce(better).map_or(0, |(index, _)| index)
    }
}

impl TrialSchedule {
    const fn with_interval(interval: u64) -> Self {
        Self {
            interval,
            remaining: interval,
            count: 0,
        }
    }

    /// The index of the trial, if this batch is one.
    fn next_trial(&mut self) -> Option<usize> {
        self.remaining -= 1;
        if self.remaining > 0 {
            return None;
        }
        self.interval = (2 * self.interval).min(TRIAL_INTERVAL);
        self.remaining = self.interval;
        self.count += 1;
        Some(self.count - 1)
    }
}

impl RecentTimes {
    fn add(&mut self, time: Duration) {
        self.last[self.next % KEPT_TIMES] = Some(time);
        self.next += 1;
    }

    /// The lowest time. `None` after a single run too: the first run of a size warms up memory and caches.
    fn min(&self) -> Option<Duration> {
        let times = self.last.iter().flatten();
        (self.next > 1).then(|| times.min().copied()).flatten()
    }
}

#[cfg(test)]
mod tests;
