//! The order of an epoch: a seeded shuffle that every rank computes identically, and the rank's share of it.
//!
//! The order is a public promise: a reader that resumes, or another rank, must compute the same one years later. It is
//! therefore a Fisher-Yates shuffle, implemented in this file, over the key stream of `ChaCha12` (RFC 8439's round
//! function, 12 rounds), keyed by `seed` and `epoch`.

use rand_chacha::{
    ChaCha12Rng,
    rand_core::{RngCore, SeedableRng},
};

/// A rank's share of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    rank: usize,
    world: usize,
}

/// A sample of an epoch: its position and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleRef {
    /// Position in the order of the epoch over all ranks.
    pub(crate) position: u64,
    /// Index in the data set.
    pub(crate) index: usize,
}

/// The samples of one rank in one epoch, in order.
#[derive(Debug)]
pub(crate) struct EpochOrder {
    len: usize,
    shard: Shard,
    /// Sample indices of this shard; `None` for the order of the data set.
    shuffled: Option<Vec<u32>>,
}

// === impl Shard ===

impl Shard {
    /// The share of `rank` among `world` ranks, counted from 0; `None` if `rank` is not below `world`.
    pub(crate) const fn new(rank: usize, world: usize) -> Option<Self> {
        if rank < world {
            Some(Self { rank, world })
        } else {
            None
        }
    }

    /// Number of samples of `total` in this shard. Samples are dealt out one by one, so shard sizes differ by at most
    /// one.
    pub(crate) const fn sample_count(self, total: usize) -> usize {
        (total + self.world - 1 - self.rank) / self.world
    }

    /// The positions of this shard if each shard is a contiguous range of `total`. Sizes differ by at most one.
    #[cfg(feature = "tables")]
    pub(crate) fn contiguous_range(self, total: u64) -> std::ops::Range<u64> {
        let (world, len) = (self.world as u128, u128::from(total));
        let start = |rank: usize| u64::try_from(len * rank as u128 / world).unwrap_or(u64::MAX);
        start(self.rank)..start(self.rank + 1)
    }
}

// === impl EpochOrder ===

impl EpochOrder {
    /// The order of `len` samples, at most `u32::MAX`. Without a seed it is the order of the data set.
    pub(crate) fn new(len: usize, shard: Shard, seed: Option<u64>, epoch: u32) -> Self {
        let shuffled = seed.map(|seed| {
            let all = permutation(u32::try_from(len).unwrap_or(u32::MAX), seed, epoch, 0, SAMPLES);
            all.into_iter().skip(shard.rank).step_by(shard.world).collect()
        });
        Self {
            len: shard.sample_count(len),
            shard,
            shuffled,
        }
    }

    /// Samples in this shard.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The `nth` sample of this shard.
    pub(crate) fn sample(&self, nth: usize) -> SampleRef {
        let position = nth * self.shard.world + self.shard.rank;
        let index = self
            .shuffled
            .as_ref()
            .map_or(position, |indices| indices[nth] as usize);
        SampleRef {
            position: position as u64,
            index,
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
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&epoch.to_le_bytes());
    key[12..16].copy_from_slice(&number.to_le_bytes());
    key[16..].copy_from_slice(purpose);
    let mut random = ChaCha12Rng::from_seed(key);
    let mut indices: Vec<u32> = (0..len).collect();
    for last in (1..indices.len()).rev() {
        indices.swap(last, random_below(&mut random, last as u64 + 1));
    }
    indices
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: Shard = Shard { rank: 0, world: 1 };

    fn indices(len: usize, shard: Shard, seed: Option<u64>, epoch: u32) -> Vec<usize> {
        let order = EpochOrder::new(len, shard, seed, epoch);
        (0..order.len()).map(|nth| order.sample(nth).index).collect()
    }

    #[test]
    fn the_order_never_changes() {
        insta::assert_compact_debug_snapshot!([
            indices(12, ALL, Some(7), 0),
            indices(12, ALL, Some(7), 1),
            indices(12, ALL, Some(8), 0)
        ]);
    }

    #[test]
    fn without_a_seed_the_order_is_that_of_the_data_set() {
        assert_eq!(indices(4, ALL, None, 9), [0, 1, 2, 3]);
        assert_eq!(indices(5, Shard::new(1, 2).unwrap(), None, 9), [1, 3]);
        assert_eq!(Shard::new(2, 2), None);
        assert_eq!(Shard::new(0, 0), None);
    }

    #[test]
    fn every_position_is_equally_likely() {
        // 10,000 epochs of 8 samples: each of the 64 cells expects 1,250, and a deviation of 33 is one sigma.
        let mut counts = [[0u32; 8]; 8];
        for epoch in 0..10_000 {
            for (position, index) in permutation(8, 1, epoch, 0, SAMPLES).into_iter().enumerate() {
                counts[position][index as usize] += 1;
            }
        }
        assert!(
            counts.iter().flatten().all(|count| count.abs_diff(1_250) < 165),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_and_cover_everything(
            len in 0usize..200, world in 1usize..9, seed: Option<u64>, epoch: u32
        ) {
            let whole = indices(len, ALL, seed, epoch);
            let mut seen = vec![None; len];
            for rank in 0..world {
                let order = EpochOrder::new(len, Shard::new(rank, world).unwrap(), seed, epoch);
                for nth in 0..order.len() {
                    let sample = order.sample(nth);
                    let position = usize::try_from(sample.position).unwrap();
                    prop_assert_eq!(whole[position], sample.index, "all ranks see one order");
                    prop_assert_eq!(seen[sample.index].replace(rank), None, "no sample twice");
                }
            }
            prop_assert!(seen.iter().all(Option::is_some), "no sample left out");
        }
    }
}
