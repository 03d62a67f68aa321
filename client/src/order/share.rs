//! A rank's share of an epoch, and what happens at its end if the samples do not divide evenly.

use serde::{Deserialize, Serialize};

use super::Shard;

/// How an epoch ends if its samples do not divide evenly among ranks and batches.
///
/// Under every policy but [`Short`](Self::Short) all ranks read the same number of batches. What is dropped or repeated
/// depends on the order, and so on the epoch; [`TailCounts`] says how much it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// Every sample once. Some ranks read one sample more than others, and so perhaps one batch more.
    #[default]
    Short,
    /// Every rank reads the same number of samples: fewer than `world` samples are dropped.
    Even,
    /// Every batch is full: fewer than `world * batch_size` samples are dropped.
    Drop,
    /// Every batch is full: samples from the beginning of the order are repeated, in rows that are
    /// [padding](crate::Row::is_padding).
    Pad,
}

/// What a tail policy leaves out or adds in an epoch, over all ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailCounts {
    /// Samples that no rank reads.
    pub dropped: usize,
    /// Samples that are read once more, as padding.
    pub repeated: usize,
}

/// The positions of an epoch that one rank reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) shard: Shard,
    /// Earlier positions are not read. The others are dealt out to the ranks anew, so `shard` may be of another world than the
    /// one that read the earlier ones.
    pub(crate) start: usize,
    pub(crate) batch_size: usize,
    pub(crate) tail: Tail,
}

impl Share {
    /// Number of samples in this share of an epoch of `total` samples, padding included.
    pub(crate) fn sample_count(self, total: usize) -> usize {
        let left = total.saturating_sub(self.start);
        let world = self.shard.world;
        let in_batches = |batches: usize| batches.saturating_mul(self.batch_size);
        match self.tail {
            Tail::Short => self.shard.sample_count(left),
            Tail::Even => left / world,
            Tail::Drop => in_batches(left / in_batches(world)),
            Tail::Pad => in_batches(left.div_ceil(in_batches(world))),
        }
    }

    /// The most samples that a rank of the same world has, padding included. It is the same for every rank.
    #[cfg(feature = "tables")]
    pub(crate) fn most_samples(self, total: usize) -> usize {
        let first = Shard {
            rank: 0,
            ..self.shard
        };
        Self { shard: first, ..self }.sample_count(total)
    }

    /// The position of the `nth` sample. From `total` on it is padding.
    pub(crate) const fn position(self, nth: usize) -> usize {
        self.start + nth * self.shard.world + self.shard.rank
    }

    /// What the policy drops or repeats in an epoch of `total` samples.
    pub(crate) fn tail_counts(self, total: usize) -> TailCounts {
        let left = total.saturating_sub(self.start);
        let read = match self.tail {
            Tail::Short => left,
            Tail::Even | Tail::Drop | Tail::Pad => self.sample_count(total) * self.shard.world,
        };
        TailCounts {
            dropped: left.saturating_sub(read),
            repeated: read.saturating_sub(left),
        }
    }
}
