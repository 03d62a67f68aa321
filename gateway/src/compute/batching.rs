//! How many samples run at once: as many as it takes least time for each of them, which is measured.

use std::time::Duration;

use pushdown::step::model::Provider;

/// Every so many batches another size is tried. Seldom: beside batches of one, a trial of eight is many samples.
const TRIAL: u64 = 256;
/// Times that are remembered of a size.
const REMEMBERED: usize = 4;
/// In more company a sample has to take so much less to be worth the wait for it.
const WORTHWHILE: f64 = 0.97;

/// What a sample has taken alone, and in company.
///
/// Weights are read once for a batch, which pays where there are many for little work (fully connected layers). Where
/// there are few, values of one sample fit into a cache that those of several do not. A GPU takes more samples to be
/// busy, up to where its memory ends: a batch that it refuses runs one by one, and so takes long.
#[derive(Debug)]
pub(super) struct Batching {
    batches: u64,
    /// From one sample to the most that may run at once.
    ways: Vec<Way>,
}

/// A size, and what a sample takes in a batch of up to so many.
#[derive(Debug)]
struct Way {
    size: usize,
    times: Times,
}

/// The last times of a size; the least of them is what it takes when nothing disturbs it.
#[derive(Debug, Default)]
struct Times {
    last: [Option<Duration>; REMEMBERED],
    next: usize,
}

/// The sizes to choose from. Each sample holds its memory while it waits, which bounds them all.
pub(super) const fn sizes(provider: Provider) -> &'static [usize] {
    match provider {
        Provider::Cpu => &[1, 8],
        Provider::Cuda => &[1, 8, 32, 128],
    }
}

impl Batching {
    /// Chooses from `sizes`, which rise from 1.
    pub(super) fn new(sizes: &[usize]) -> Self {
        let way = |size: &usize| Way {
            size: *size,
            times: Times::default(),
        };
        Self {
            batches: 0,
            ways: sizes.iter().map(way).collect(),
        }
    }

    /// The most samples that the next batch should have.
    pub(super) fn most(&mut self) -> usize {
        self.batches += 1;
        let known = |way: &Way| way.times.least().is_some();
        // Company comes only where there is much to do: less is tried once that was seen, from the largest down.
        let Some(seen) = self.ways.iter().rposition(known).filter(|at| *at > 0) else {
            return self.size(self.ways.len());
        };
        if let Some(unknown) = self.ways[..seen].iter().rposition(|way| !known(way)) {
            return self.size(unknown);
        }
        let best = self.best();
        if self.batches.is_multiple_of(TRIAL) {
            // The others, one after another.
            let others = u64::try_from(self.ways.len() - 1).unwrap_or(1);
            let turn = usize::try_from(self.batches / TRIAL % others).unwrap_or_default();
            return self.size((best + 1 + turn) % self.ways.len());
        }
        // Where the most that was seen is best, more may be better still.
        self.size(if best == seen { self.ways.len() } else { best })
    }

    /// In a batch of so many samples each took so long.
    pub(super) fn took(&mut self, samples: usize, each: Duration) {
        if let Some(way) = self.ways.iter_mut().find(|way| samples <= way.size) {
            way.times.add(each);
        }
    }

    /// The size at an index, or the last.
    fn size(&self, at: usize) -> usize {
        let way = self.ways.get(at).or_else(|| self.ways.last());
        way.map_or(1, |way| way.size)
    }

    /// Of the sizes that are known, the one at which a sample takes least.
    fn best(&self) -> usize {
        let known = self
            .ways
            .iter()
            .enumerate()
            .filter_map(|(at, way)| Some((at, way.times.least()?)));
        let better = |best: (usize, Duration), next: (usize, Duration)| {
            if next.1 < best.1.mul_f64(WORTHWHILE) {
                next
            } else {
                best
            }
        };
        known.reduce(better).map_or(0, |(at, _)| at)
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.last[self.next % REMEMBERED] = Some(time);
        self.next += 1;
    }

    /// `None` of a single one, too: the first run of a size gets memory and caches ready.
    fn least(&self) -> Option<Duration> {
        let known = self.last.iter().flatten();
        (self.next > 1).then(|| known.min().copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of each batch, where a sample takes as many microseconds as `time` says of a batch of so many, and
    /// `load` samples wait.
    fn batches(provider: Provider, count: usize, load: usize, time: impl Fn(usize) -> u64) -> Vec<usize> {
        let mut batching = Batching::new(sizes(provider));
        let mut next = |_| {
            let most = batching.most();
            let samples = most.min(load);
            batching.took(samples, Duration::from_micros(time(samples)));
            most
        };
        (0..count).map(&mut next).collect()
    }

    /// Batches on the processor, under a load that always gives as many samples as are wanted.
    fn on_cpu(alone: u64, together: u64) -> Vec<usize> {
        batches(Provider::Cpu, 2_560, 8, |samples| {
            if samples == 1 { alone } else { together }
        })
    }

    fn count(batches: &[usize], size: usize) -> usize {
        batches.iter().filter(|batch| **batch == size).count()
    }

    #[test]
    fn the_better_way_is_found_and_the_other_tried_again() {
        let small = on_cpu(10_000, 12_000);
        assert_eq!(small[..5], [8, 8, 1, 1, 1]);
        assert_eq!(count(&small, 8), 2 + 10);
        let large = on_cpu(40_000, 25_000);
        assert_eq!(count(&large, 1), 2 + 10);
        let same = on_cpu(10_000, 9_900);
        assert_eq!(count(&same, 8), 2 + 10);
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut batching = Batching::new(sizes(Provider::Cpu));
        let mut together = 0;
        for batch in 0..1_000_u64 {
            let most = batching.most();
            together += usize::from(batch >= 500 && most > 1);
            // Company pays from the middle on.
            let time = match (most, batch < 500) {
                (1, _) => 10_000,
                (_, true) => 20_000,
                (_, false) => 5_000,
            };
            batching.took(most, Duration::from_micros(time));
        }
        assert!(together > 400, "{together} of 500");
    }

    /// A launch costs the same whatever it computes, so each sample takes less in a large batch.
    #[test]
    fn a_gpu_gets_more_at_once_while_that_pays() {
        let each = |samples: usize| 50 + 2_000 / samples as u64;
        let found = batches(Provider::Cuda, 2_560, 1_000, each);
        assert_eq!(found[..9], [128, 128, 32, 32, 8, 8, 1, 1, 128]);
        assert_eq!(count(&found, 128), 2_560 - 6 - 10);
        // The trials take turns.
        assert!([1, 8, 32].iter().all(|size| count(&found, *size) >= 2 + 3));
    }

    #[test]
    fn what_does_not_fit_into_a_gpu_is_not_asked_of_it() {
        // 128 are refused, and run one by one.
        let each = |samples: usize| {
            if samples > 32 {
                3_000
            } else {
                50 + 2_000 / samples as u64
            }
        };
        let found = batches(Provider::Cuda, 2_560, 1_000, each);
        assert_eq!(count(&found, 32), 2_560 - 6 - 10);
    }

    #[test]
    fn a_load_that_never_fills_the_largest_batch_runs_as_it_comes() {
        let each = |samples: usize| 50 + 2_000 / samples as u64;
        let found = batches(Provider::Cuda, 2_560, 20, each);
        assert_eq!(found[..7], [128, 128, 8, 8, 1, 1, 128]);
        let whole = found.iter().filter(|most| **most >= 20).count();
        assert!(whole >= 2_560 - 4 - 10, "{whole} took all that waited");
        let alone = batches(Provider::Cuda, 100, 1, each);
        assert_eq!(count(&alone, 128), 100);
    }
}
