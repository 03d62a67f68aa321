//! How many samples run at once: as many as it takes least time for each of them, which is measured.

use std::time::Duration;

/// Samples that run at once, at most: each holds its memory while it waits.
const MOST: usize = 8;
/// Every so many batches the other way is tried.
const TRIAL: u64 = 32;
/// Times that are remembered of either way.
const REMEMBERED: usize = 4;
/// In company a sample has to take so much less to be worth the wait for it.
const WORTHWHILE: f64 = 0.97;

/// What a sample has taken alone, and in company.
///
/// Weights are read once for a batch, which pays where there are many for little work (fully connected layers). Where
/// there are few, values of one sample fit into a cache that those of several do not.
#[derive(Debug, Default)]
pub(super) struct Batching {
    batches: u64,
    alone: Times,
    together: Times,
}

/// The last times of a way; the least of them is what it takes when nothing disturbs it.
#[derive(Debug, Default)]
struct Times {
    last: [Option<Duration>; REMEMBERED],
    next: usize,
}

impl Batching {
    /// The most samples that the next batch should have.
    pub(super) fn most(&mut self) -> usize {
        self.batches += 1;
        let together = match (self.alone.least(), self.together.least()) {
            // Company comes only where there is much to do: alone is tried once that was seen.
            (_, None) => return MOST,
            (None, Some(_)) => return 1,
            (Some(alone), Some(together)) => together < alone.mul_f64(WORTHWHILE),
        };
        let trial = self.batches.is_multiple_of(TRIAL);
        if together ^ trial { MOST } else { 1 }
    }

    /// In a batch of so many samples each took so long.
    pub(super) fn took(&mut self, samples: u32, each: Duration) {
        if samples == 1 {
            self.alone.add(each);
        } else {
            self.together.add(each);
        }
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.last[self.next % REMEMBERED] = Some(time);
        self.next += 1;
    }

    /// `None` of a single one, too: the first run of a way gets memory and caches ready.
    fn least(&self) -> Option<Duration> {
        let known = self.last.iter().flatten();
        (self.next > 1).then(|| known.min().copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches as the measurements ask for them, under a load that always gives as many samples as are wanted.
    fn sizes(alone: u64, together: u64, batches: usize) -> Vec<usize> {
        let mut batching = Batching::default();
        let mut next = |_| {
            let most = batching.most();
            let time = if most == 1 { alone } else { together };
            batching.took(u32::try_from(most).unwrap(), Duration::from_micros(time));
            most
        };
        (0..batches).map(&mut next).collect()
    }

    #[test]
    fn the_better_way_is_found_and_the_other_tried_again() {
        let small = sizes(10_000, 12_000, 320);
        assert_eq!(small[..5], [8, 8, 1, 1, 1]);
        assert_eq!(small.iter().filter(|size| **size == 8).count(), 2 + 10);
        let large = sizes(40_000, 25_000, 320);
        assert_eq!(large.iter().filter(|size| **size == 1).count(), 2 + 10);
        let same = sizes(10_000, 9_900, 320);
        assert_eq!(same.iter().filter(|size| **size == 8).count(), 2 + 10);
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut batching = Batching::default();
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
            batching.took(u32::try_from(most).unwrap(), Duration::from_micros(time));
        }
        assert!(together > 400, "{together} of 500");
    }
}
