//! A rank's share of an epoch, what happens at its end if the samples do not divide evenly, and which of its batches a reader reads.

use std::{iter::StepBy, ops::Range};

use serde::{Deserialize, Serialize};

use super::CheckedRank;
use crate::epoch::Worker;

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
    /// [padding](crate::reader::Row::is_padding).
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

/// The samples of an epoch that one rank reads, in batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Samples of the epoch, over all ranks.
    pub(crate) total: usize,
    pub(crate) rank: CheckedRank,
    /// Earlier positions are not read. The others are dealt out to the ranks anew, so `rank` may be of another world than the
    /// one that read the earlier ones.
    pub(crate) start: usize,
    pub(crate) batch_size: usize,
    pub(crate) tail: Tail,
    /// The most samples that the rank reads.
    pub(crate) limit: Option<usize>,
}

/// The batches of a [`Share`] that one reader reads: all of them, or every n-th one if the rank has several workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderShare {
    pub(crate) rank: Share,
    /// Number of the first batch. The workers of the rank read from there on.
    pub(crate) first_batch: usize,
    pub(crate) worker: Worker,
}

impl Share {
    /// Number of samples, padding included.
    pub fn sample_count(self) -> usize {
        let dealt = self.dealt_samples();
        self.limit.map_or(dealt, |limit| dealt.min(limit))
    }

    /// Number of batches; the last one may be short.
    pub fn batch_count(self) -> usize {
        self.sample_count().div_ceil(self.batch_size)
    }

    /// The most samples that a rank of the same world has, padding included. It is the same for every rank.
    pub(crate) fn most_samples(self) -> usize {
        let first = CheckedRank {
            index: 0,
            ..self.rank
        };
        Self { rank: first, ..self }.sample_count()
    }

    /// The most batches that a rank of the same world has.
    fn most_batches(self) -> usize {
        self.most_samples().div_ceil(self.batch_size)
    }

    /// What the policy drops or repeats, over all ranks. A limit drops nothing: it ends the epoch earlier.
    pub fn tail_counts(self) -> TailCounts {
        let left = self.left_samples();
        let read = match self.tail {
            Tail::Short => left,
            Tail::Even | Tail::Drop | Tail::Pad => self.dealt_samples().saturating_mul(self.rank.world),
        };
        TailCounts {
            dropped: left.saturating_sub(read),
            repeated: read.saturating_sub(left),
        }
    }

    /// The position of the `nth` sample. From `total` on it is padding.
    pub(super) const fn position(self, nth: usize) -> usize {
        self.start + nth * self.rank.world + self.rank.index
    }

    /// Position after the first `batches` batches of every rank, and `total` once all ranks have all their batches.
    fn position_after(self, batches: usize) -> usize {
        if batches >= self.most_batches() {
            return self.total;
        }
        let samples = batches
            .saturating_mul(self.batch_size)
            .saturating_mul(self.rank.world);
        self.start.saturating_add(samples).min(self.total)
    }

    /// Samples from `start` on, over all ranks.
    const fn left_samples(self) -> usize {
        self.total.saturating_sub(self.start)
    }

    /// Samples of this rank without a limit, padding included.
    fn dealt_samples(self) -> usize {
        let left = self.left_samples();
        let world = self.rank.world;
        let in_batches = |batches: usize| batches.saturating_mul(self.batch_size);
        match self.tail {
            Tail::Short => self.rank.sample_count(left),
            Tail::Even => left / world,
            Tail::Drop => in_batches(left / in_batches(world)),
            Tail::Pad => in_batches(left.div_ceil(in_batches(world))),
        }
    }
}

impl ReaderShare {
    /// The share of the reader's rank.
    pub const fn rank(self) -> Share {
        self.rank
    }

    /// The numbers of this reader's batches.
    pub(crate) fn batch_numbers(self) -> StepBy<Range<usize>> {
        let Worker { index, count } = self.worker;
        (self.first_batch.saturating_add(index)..self.rank.batch_count()).step_by(count)
    }

    /// Position in the order of the epoch, over all ranks, after this reader's first `batches` batches: where
    /// [`start_position`](crate::reader::PushdownReaderBuilder::start_position) resumes. It is the same on every rank, and the number of all samples
    /// once all ranks have all their batches.
    ///
    /// If the rank has several workers, it stays where the share begins, since none of them knows how far the others are.
    pub fn position_after(self, batches: usize) -> usize {
        let next_batch = self.first_batch.saturating_add(batches);
        if self.worker.count > 1 || next_batch == 0 {
            return self.rank.start;
        }
        self.rank.position_after(next_batch)
    }

    /// Whether no rank has a batch after this reader's first `batches` batches. With [`Tail::Short`] other ranks may have one more, and until
    /// they have it the position is that of all ranks.
    pub fn is_complete_after(self, batches: usize) -> bool {
        let Worker { index, count } = self.worker;
        let next_batch = batches
            .saturating_mul(count)
            .saturating_add(self.first_batch)
            .saturating_add(index);
        batches > 0 && next_batch >= self.rank.most_batches()
    }
}
