//! One of the readers that share the shards of an epoch.

use serde::{Deserialize, Serialize};

use crate::{
    epoch::{Rank, Worker},
    error::{Error, Result},
};

/// The most readers that share the shards of an epoch.
const MAX_READERS: usize = 1 << 20;

/// A reader's place among those that share the shards: its rank, and its number among the workers of the rank. States have it with the
/// names that they had first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReaderPlace {
    world: usize,
    rank: usize,
    #[serde(rename = "every")]
    workers: usize,
    #[serde(rename = "turn")]
    worker: usize,
}

impl ReaderPlace {
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for more readers than the limit.
    pub(super) fn new(rank: Rank, worker: Worker) -> Result<Self> {
        let place = Self {
            world: rank.world,
            rank: rank.index,
            workers: worker.count,
            worker: worker.index,
        };
        if !place.is_valid() {
            return Err(Error::config(format!(
                "invalid rank or worker: expected at most {MAX_READERS} readers, found {} ranks of {} workers",
                rank.world, worker.count
            )));
        }
        Ok(place)
    }

    pub(super) fn is_valid(&self) -> bool {
        let readers = self.world.checked_mul(self.workers);
        self.rank < self.world
            && self.worker < self.workers
            && readers.is_some_and(|readers| readers <= MAX_READERS)
    }

    /// Its number among all readers, from 0.
    pub(super) const fn number(&self) -> usize {
        self.rank * self.workers + self.worker
    }

    /// Number of all readers, at least 1.
    pub(super) const fn readers(&self) -> usize {
        self.world * self.workers
    }

    /// Whether both are places of the same world.
    pub(super) const fn is_beside(&self, other: &Self) -> bool {
        self.world == other.world && self.workers == other.workers
    }

    /// The place with this number in the same world, for a message.
    pub(super) fn describe(&self, number: usize) -> String {
        let (rank, worker) = (number / self.workers, number % self.workers);
        if self.workers == 1 {
            format!("rank {rank} of {}", self.world)
        } else {
            format!(
                "rank {rank} of {}, worker {worker} of {}",
                self.world, self.workers
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place((index, world): (usize, usize), (worker, count): (usize, usize)) -> Result<ReaderPlace> {
        let worker = Worker { index: worker, count };
        ReaderPlace::new(Rank { index, world }, worker)
    }

    #[test]
    fn readers_are_numbered_by_rank_and_worker() {
        let numbers: Vec<usize> = (0..3)
            .flat_map(|rank| (0..2).map(move |worker| place((rank, 3), (worker, 2)).unwrap().number()))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        let first = place((0, 3), (0, 2)).unwrap();
        assert_eq!(first.readers(), 6);
        assert_eq!(first.describe(5), "rank 2 of 3, worker 1 of 2");
        assert_eq!(place((0, 3), (0, 1)).unwrap().describe(2), "rank 2 of 3");
        assert!(place((0, 1 << 20), (0, 2)).is_err());
        assert!(place((0, usize::MAX), (0, 2)).is_err());
    }
}
