//! Which batches of an epoch a reader reads.

use super::{
    Worker,
    order::{CheckedRank, ReaderShare, SampleOrder, Share, Tail},
};

/// Which batches to read, of samples or rows, and how far to prefetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPlan {
    pub(crate) batch_size: usize,
    pub(crate) rank: CheckedRank,
    pub(crate) shuffle_seed: Option<u64>,
    pub(crate) order: SampleOrder,
    pub(crate) epoch: u32,
    /// Position of the first sample in the order of the epoch over all ranks.
    pub(crate) start_position: usize,
    pub(crate) tail: Tail,
    /// Number of the first batch.
    pub(crate) start: usize,
    /// Which of the batches from `start` on are read.
    pub(crate) worker: Worker,
    /// The most samples of an epoch.
    pub(crate) limit: Option<usize>,
    pub(crate) prefetch_bytes: u64,
    pub(crate) requests: usize,
}

impl ReadPlan {
    /// Upper bound of the samples in flight whose values have this many bytes, if that is known.
    pub(crate) fn max_samples_in_flight(&self, sample_bytes: Option<u64>) -> u64 {
        let batch_size = self.batch_size as u64;
        let within_budget = sample_bytes.map_or(u64::MAX, |bytes| self.prefetch_bytes / bytes.max(1));
        // A batch is read whatever it takes.
        within_budget
            .max(batch_size)
            .min(self.requests as u64 * batch_size)
    }

    /// What this reader's rank reads of an epoch of `total` samples.
    pub(crate) const fn share(&self, total: usize) -> Share {
        Share {
            total,
            rank: self.rank,
            start: self.start_position,
            batch_size: self.batch_size,
            tail: self.tail,
            limit: self.limit,
        }
    }

    /// What this reader reads of an epoch of `total` samples.
    pub(crate) const fn reader_share(&self, total: usize) -> ReaderShare {
        ReaderShare {
            rank: self.share(total),
            first_batch: self.start,
            worker: self.worker,
        }
    }

    /// In shard order, the number of samples in the shuffle buffer: 1 without a seed, since nothing is shuffled then.
    pub(crate) fn shuffle_buffer(&self) -> Option<usize> {
        match self.order {
            SampleOrder::Global => None,
            SampleOrder::Shards { buffer } => Some(if self.shuffle_seed.is_some() { buffer } else { 1 }),
        }
    }
}
