//! The order of an epoch: a seeded shuffle that every rank computes identically, and the rank's share of it.
//!
//! The order is a public promise: a reader that resumes, or another rank, must compute the same one years later. It is
//! therefore a Fisher-Yates shuffle, implemented in this file, over the key stream of `ChaCha12` (RFC 8439's round
//! function, 12 rounds), keyed by `seed` and `epoch`. [`SampleOrder::Shards`] is made of the same draws.

mod draws;
mod shards;
mod share;

use rand_chacha::{
    ChaCha12Rng,
    rand_core::{RngCore, SeedableRng},
};

pub(crate) use draws::{BufferDraws, shard_order};
pub use shards::SampleOrder;
pub use share::{ReaderShare, Share, Tail, TailCounts};

/// One of the ranks that share a data set: a [`Rank`](crate::reader::Rank) whose index is below the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckedRank {
    index: usize,
    world: usize,
}

/// A sample of an epoch: its position and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleRef {
    /// Position in the order of the epoch over all ranks.
    pub(crate) position: u64,
    /// Index in the data set.
    pub(crate) index: usize,
    /// Whether it is repeated only to fill the last batch.
    pub(crate) is_padding: bool,
}

/// The samples of one rank in one epoch, in order.
#[derive(Debug)]
pub(crate) struct EpochOrder {
    len: usize,
    share: Share,
    /// Sample indices of this share; `None` for the order of the data set.
    shuffled: Option<Vec<u32>>,
}

impl CheckedRank {
    /// Rank `index` of `world` ranks, counted from 0; `None` if `index` is not below `world`.
    pub(crate) const fn new(index: usize, world: usize) -> Option<Self> {
        if index < world {
            Some(Self { index, world })
        } else {
            None
        }
    }

    /// Number of samples of `total` in the share of this rank. Samples are dealt out one by one, so shares differ by at most one.
    pub(crate) const fn sample_count(self, total: usize) -> usize {
        (total + self.world - 1 - self.index) / self.world
    }

    /// Number of this rank, from 0.
    pub(crate) const fn index(self) -> usize {
        self.index
    }

    /// Number of ranks.
    pub(crate) const fn world(self) -> usize {
        self.world
    }

    /// The positions of this rank's share if each share is a contiguous range of `total`. Sizes differ by at most one.
    ///
    /// If each share is shortened by the same number of positions, these are the shares of what is left.
    #[cfg(feature = "tables")]
    pub(crate) fn contiguous_range(self, total: u64) -> std::ops::Range<u64> {
        let (world, len) = (self.world as u128, u128::from(total));
        let start = |index: usize| u64::try_from(len * index as u128 / world).unwrap_or(u64::MAX);
        start(self.index)..start(self.index + 1)
    }
}

impl EpochOrder {
    /// The order of at most `u32::MAX` samples. Without a seed it is the order of the data set.
    pub(crate) fn new(share: Share, seed: Option<u64>, epoch: u32) -> Self {
        let total = u32::try_from(share.total).unwrap_or(u32::MAX);
        let all = seed.map(|seed| permutation(total, seed, epoch, 0, SAMPLES));
        Self::from_permutation(share, all)
    }

    /// The order [`SampleOrder::Shards`] of the samples of an epoch, whose shards have these numbers. Without a seed it is the order of the
    /// data set.
    pub(crate) fn by_shards(
        shards: impl ExactSizeIterator<Item = usize>,
        buffer: usize,
        share: Share,
        seed: Option<u64>,
        epoch: u32,
    ) -> Self {
        let all = seed.map(|seed| shards::permutation_by_shards(shards, buffer, seed, epoch));
        Self::from_permutation(share, all)
    }

    fn from_permutation(share: Share, all: Option<Vec<u32>>) -> Self {
        let len = share.sample_count();
        // A share of no samples has no positions, so `total` is not 0 here.
        let shuffled = all.map(|all| {
            (0..len)
                .map(|nth| all[share.position(nth) % share.total])
                .collect()
        });
        Self { len, share, shuffled }
    }

    /// Samples in this share.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The `nth` sample of this share.
    pub(crate) fn sample(&self, nth: usize) -> SampleRef {
        let (position, total) = (self.share.position(nth), self.share.total);
        let index = self
            .shuffled
            .as_ref()
            .map_or_else(|| position % total, |indices| indices[nth] as usize);
        SampleRef {
            position: position as u64,
            index,
            is_padding: position >= total,
        }
    }
}

/// Purpose of a permutation of samples.
const SAMPLES: &[u8; 16] = b"pushdown/order/1";
/// Purpose of a permutation of row groups.
#[cfg(feature = "tables")]
pub(crate) const GROUPS: &[u8; 16] = b"pushdown/group/1";
/// Purpose of a permutation of a row group's rows.
#[cfg(feature = "tables")]
pub(crate) const ROWS: &[u8; 16] = b"pushdown/rows//1";

/// A permutation of `0..len`, a different one for each `number` and purpose.
pub(crate) fn permutation(len: u32, seed: u64, epoch: u32, number: u32, purpose: &[u8; 16]) -> Vec<u32> {
    let mut random = generator(seed, epoch, number, purpose);
    let mut indices: Vec<u32> = (0..len).collect();
    for last in (1..indices.len()).rev() {
        indices.swap(last, random_below(&mut random, last as u64 + 1));
    }
    indices
}

/// The draws of one purpose.
fn generator(seed: u64, epoch: u32, number: u32, purpose: &[u8; 16]) -> ChaCha12Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&epoch.to_le_bytes());
    key[12..16].copy_from_slice(&number.to_le_bytes());
    key[16..].copy_from_slice(purpose);
    ChaCha12Rng::from_seed(key)
}

/// A uniform draw from `0..bound` by multiplication, with rejection of the draws that would bias the result.
fn random_below(random: &mut ChaCha12Rng, bound: u64) -> usize {
    let rejected = bound.wrapping_neg() % bound;
    loop {
        let wide = u128::from(random.next_u64()) * u128::from(bound);
        if wide & u128::from(u64::MAX) >= u128::from(rejected) {
            // Less than `bound`, which is a length.
            return usize::try_from(wide >> 64).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
