//! One of the readers that share the shards of an epoch.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most readers that share the shards of an epoch.
const MAX_READERS: usize = 1 << 20;

/// A reader's place among those that share the shards: its rank, and its turn among the readers of the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReaderPlace {
    world: usize,
    rank: usize,
    every: usize,
    turn: usize,
}

impl ReaderPlace {
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for more readers than the limit.
    pub(super) fn new((rank, world): (usize, usize), (every, turn): (usize, usize)) -> Result<Self> {
        let place = Self {
            world,
            rank,
            every,
            turn,
        };
        if !place.is_valid() {
            return Err(Error::config(format!(
                "invalid shard or every: expected at most {MAX_READERS} readers, found {world} ranks of {every} readers"
            )));
        }
        Ok(place)
    }

    pub(super) fn is_valid(&self) -> bool {
        let readers = self.world.checked_mul(self.every);
        self.rank < self.world
            && self.turn < self.every
            && readers.is_some_and(|readers| readers <= MAX_READERS)
    }

    /// Its number among all readers, from 0.
    pub(super) const fn number(&self) -> usize {
        self.rank * self.every + self.turn
    }

    /// Number of all readers, at least 1.
    pub(super) const fn readers(&self) -> usize {
        self.world * self.every
    }

    /// Whether both are places of the same world.
    pub(super) const fn is_beside(&self, other: &Self) -> bool {
        self.world == other.world && self.every == other.every
    }

    /// The place with this number in the same world, for a message.
    pub(super) fn describe(&self, number: usize) -> String {
        let (rank, turn) = (number / self.every, number % self.every);
        if self.every == 1 {
            format!("rank {rank} of {}", self.world)
        } else {
            format!("rank {rank} of {}, turn {turn} of {}", self.world, self.every)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_numbered_by_rank_and_turn() {
        let numbers: Vec<usize> = (0..3)
            .flat_map(|rank| (0..2).map(move |turn| ReaderPlace::new((rank, 3), (2, turn)).unwrap().number()))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        let place = ReaderPlace::new((0, 3), (2, 0)).unwrap();
        assert_eq!(place.readers(), 6);
        assert_eq!(place.describe(5), "rank 2 of 3, turn 1 of 2");
        assert_eq!(
            ReaderPlace::new((0, 3), (1, 0)).unwrap().describe(2),
            "rank 2 of 3"
        );
        assert!(ReaderPlace::new((0, 1 << 20), (2, 0)).is_err());
        assert!(ReaderPlace::new((0, usize::MAX), (2, 0)).is_err());
    }
}
