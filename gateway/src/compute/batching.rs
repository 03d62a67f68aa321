//! How many samples run at once: as many as it takes least time for each of them, which is measured.

use std::time::Duration;

use pushdown::step::model::Provider;

/// Every so many batches another size is tried. Seldom: beside batches of one, a trial of eight is many samples.
const TRIAL: u64 = 256;
/// Batches until another size is tried, where a larger one has just become the better: what ran meanwhile may have disturbed a
/// few small batches in a row, and beside large ones a trial of few samples costs little. Each next pause is twice as long.
const SOON: u64 = 2;
/// Times that are remembered of a size.
const REMEMBERED: usize = 8;
/// In more company a sample has to take so much less to be worth the wait for it.
const WORTHWHILE: f64 = 0.97;

/// What a sample has taken alone, and in company.
///
/// Weights are read once for a batch, which pays where there are many for little work (fully connected layers). Where
/// there are few, values of one sample fit into a cache that those of several do not. A GPU takes more samples to be
/// busy, up to where its memory ends: a batch that it refuses runs one by one, and so takes long.
#[derive(Debug)]
pub(super) struct Batching {
    /// Which of the ways was best the last time.
    best: usize,
    trials: Trials,
    /// From one sample to the most that may run at once.
    ways: Vec<Way>,
}

/// When another size is tried.
#[derive(Debug)]
struct Trials {
    /// Batches between two.
    pause: u64,
    /// Batches until the next.
    left: u64,
    /// How many there were.
    count: usize,
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
            best: 0,
            trials: Trials::every(TRIAL),
            ways: sizes.iter().map(way).collect(),
        }
    }

    /// The most samples that the next batch should have.
    pub(super) fn most(&mut self) -> usize {
        let known = |way: &Way| way.times.least().is_some();
        // Company comes only where there is much to do: less is tried once that was seen, from the largest down.
        let Some(seen) = self.ways.iter().rposition(known).filter(|at| *at > 0) else {
            return self.size(self.ways.len());
        };
        if let Some(unknown) = self.ways[..seen].iter().rposition(|way| !known(way)) {
            return self.size(unknown);
        }
        let (before, best) = (self.best, self.best());
        self.best = best;
        if best != before {
            self.trials = Trials::every(if best > before { SOON } else { TRIAL });
        }
        if let Some(turn) = self.trials.due() {
            // The others, one after another.
            let others = self.ways.len().saturating_sub(1).max(1);
            return self.size((best + 1 + turn % others) % self.ways.len());
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

impl Trials {
    const fn every(pause: u64) -> Self {
        Self {
            pause,
            left: pause,
            count: 0,
        }
    }

    /// Which of the trials this batch is, if it is one.
    fn due(&mut self) -> Option<usize> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.pause = (2 * self.pause).min(TRIAL);
        self.left = self.pause;
        self.count += 1;
        Some(self.count - 1)
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
mod tests;
