//! The order of shards: shards are shuffled as a whole, and samples only among those that are read at about the same time.

use std::{collections::HashMap, mem};

use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use super::{generator, random_below, shard_order};

/// Purpose of a permutation of shards.
pub(super) const SHARDS: &[u8; 16] = b"pushdown/shard/1";
/// Purpose of the draws from the buffer.
pub(super) const BUFFER: &[u8; 16] = b"pushdown/buffer1";

/// How the seed shuffles the samples of an epoch. Without a seed, or with [`shuffle(false)`], neither applies.
///
/// [`shuffle(false)`]: crate::reader::PushdownReaderBuilder::shuffle
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleOrder {
    /// All samples of the data set are shuffled together: each position has each sample with the same probability.
    #[default]
    Global,
    /// Whole shards are shuffled, and samples among those near them, so that a shard is read within a short time. For lists with
    /// members, and for [readers of whole shards](crate::shards::ShardReader). The order is exactly this:
    ///
    /// 1. Shards are numbered in the order of their first samples in the data set. A Fisher-Yates shuffle of these numbers is the
    ///    order of the shards. Each shard's samples follow in the order of the data set; together they are a sequence.
    /// 2. The first `buffer` samples of the sequence form a buffer. For each position of the epoch a place in the buffer is drawn
    ///    uniformly, and its sample is that of the position. The next sample of the sequence takes the place; after the last one, the
    ///    last sample of the buffer does, and the buffer has one place less.
    ///
    /// So a sample is read at most `buffer - 1` positions earlier than in the sequence. The order does not depend on the world: ranks
    /// share its positions as those of [`Global`](Self::Global).
    Shards {
        /// Number of samples in the buffer. 0 and 1 leave the samples of a shard in their order.
        buffer: usize,
    },
}

/// A permutation of samples whose shards have these numbers, by [`SampleOrder::Shards`].
pub(super) fn permutation_by_shards(
    shards: impl Iterator<Item = usize>,
    buffer: usize,
    seed: u64,
    epoch: u32,
) -> Vec<u32> {
    let sequence = sequence(shards, seed, epoch);
    through_buffer(sequence, buffer, &mut generator(seed, epoch, 0, BUFFER))
}

/// The samples in the order of their shuffled shards.
fn sequence(shards: impl Iterator<Item = usize>, seed: u64, epoch: u32) -> Vec<u32> {
    let mut numbers = HashMap::new();
    // By sample: the number of its shard, in the order of first samples.
    let shards: Vec<u32> = shards
        .map(|shard| {
            // There are at most `u32::MAX` samples.
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(shard).or_insert(next)
        })
        .collect();
    let mut sizes = vec![0; numbers.len()];
    for shard in &shards {
        sizes[*shard as usize] += 1;
    }
    // By shard: where its next sample is in the sequence.
    let mut places = vec![0; sizes.len()];
    let mut start = 0;
    let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    for shard in shard_order(count, Some(seed), epoch) {
        places[shard as usize] = start;
        start += sizes[shard as usize];
    }
    let mut sequence = vec![0; shards.len()];
    for (sample, shard) in (0..).zip(&shards) {
        let place: &mut usize = &mut places[*shard as usize];
        sequence[*place] = sample;
        *place += 1;
    }
    sequence
}

/// Shuffles a sequence by a buffer of `buffer` samples, at least one.
fn through_buffer(sequence: Vec<u32>, buffer: usize, random: &mut ChaCha12Rng) -> Vec<u32> {
    let mut shuffled = Vec::with_capacity(sequence.len());
    let mut rest = sequence.into_iter();
    let mut held: Vec<u32> = rest.by_ref().take(buffer.max(1)).collect();
    while !held.is_empty() {
        let place = random_below(random, held.len() as u64);
        shuffled.push(match rest.next() {
            Some(next) => mem::replace(&mut held[place], next),
            None => held.swap_remove(place),
        });
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From a second implementation, in Python.
    #[test]
    fn the_order_of_shards_never_changes() {
        const SHARDS_OF_SAMPLES: [usize; 12] = [7, 7, 7, 2, 2, 2, 2, 9, 9, 9, 4, 4];
        for (buffer, seed, epoch, expected) in [
            (1, 7, 0, [0, 1, 2, 10, 11, 3, 4, 5, 6, 7, 8, 9]),
            (4, 7, 0, [1, 2, 10, 3, 5, 4, 0, 11, 7, 8, 6, 9]),
            (4, 7, 1, [0, 10, 1, 3, 11, 5, 7, 8, 9, 6, 2, 4]),
            (4, 8, 0, [8, 9, 0, 1, 2, 3, 7, 10, 11, 6, 4, 5]),
        ] {
            let found = permutation_by_shards(SHARDS_OF_SAMPLES.into_iter(), buffer, seed, epoch);
            assert_eq!(found, expected, "{buffer}, {seed}, {epoch}");
        }
        let interleaved = permutation_by_shards([0, 1, 0, 1, 0, 1].into_iter(), 1, 7, 0);
        assert_eq!(interleaved, [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn every_sample_is_drawn_from_its_window_with_the_same_probability() {
        // 10,000 epochs of one shard: the first position has each sample of the buffer in 2,500 of them; one sigma is 43.
        let mut counts = [0_u32; 8];
        for epoch in 0..10_000 {
            counts[permutation_by_shards([0; 8].into_iter(), 4, 1, epoch)[0] as usize] += 1;
        }
        assert!(
            counts[..4].iter().all(|count| count.abs_diff(2_500) < 215) && counts[4..] == [0; 4],
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn shards_are_read_one_after_the_other_and_samples_within_the_buffer(
            shards in prop::collection::vec(0usize..7, 0..200),
            buffer in prop_oneof![0usize..9, Just(usize::MAX)],
            seed: u64,
            epoch: u32,
        ) {
            let sequence = sequence(shards.iter().copied(), seed, epoch);
            let mut seen = Vec::new();
            for run in sequence.chunk_by(|a, b| shards[*a as usize] == shards[*b as usize]) {
                prop_assert!(run.is_sorted(), "in the order of the data set");
                let shard = shards[run[0] as usize];
                prop_assert!(!seen.contains(&shard), "each shard once");
                seen.push(shard);
            }
            let shuffled = permutation_by_shards(shards.iter().copied(), buffer, seed, epoch);
            for (position, sample) in shuffled.iter().enumerate() {
                let place = sequence.iter().position(|other| other == sample).unwrap();
                prop_assert!(place <= position.saturating_add(buffer.max(1) - 1));
            }
            let mut all = shuffled;
            all.sort_unstable();
            prop_assert!(all.into_iter().eq((0..).take(shards.len())), "each sample once");
        }
    }
}
