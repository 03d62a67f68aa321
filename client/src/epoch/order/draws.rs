//! The parts of [`SampleOrder::Shards`](super::SampleOrder::Shards) for a reader that does not know the samples of its shards.

use rand_chacha::ChaCha12Rng;

use super::{
    generator, permutation, random_below,
    shards::{BUFFER, SHARDS},
};

/// The order of `count` shards in an epoch. Without a seed it is that of the data set.
pub(crate) fn shard_order(count: u32, seed: Option<u64>, epoch: u32) -> Vec<u32> {
    match seed {
        Some(seed) => permutation(count, seed, epoch, 0, SHARDS),
        None => (0..count).collect(),
    }
}

/// Draws places in a shuffle buffer. It can be continued from any draw.
#[derive(Debug)]
pub(crate) struct BufferDraws {
    /// `None` without a seed: the place is always the first.
    random: Option<ChaCha12Rng>,
}

impl BufferDraws {
    /// The draws of the reader with this number, from 0, after `words` words of their key stream.
    pub(crate) fn new(seed: Option<u64>, epoch: u32, reader: u32, words: u64) -> Self {
        let random = seed.map(|seed| {
            let mut random = generator(seed, epoch, reader, BUFFER);
            random.set_word_pos(u128::from(words));
            random
        });
        Self { random }
    }

    /// A uniform place in a buffer of `len` samples, at least one.
    pub(crate) fn place(&mut self, len: usize) -> usize {
        match &mut self.random {
            Some(random) => random_below(random, len as u64),
            None => 0,
        }
    }

    /// Words of the key stream that the draws so far have used.
    pub(crate) fn words(&self) -> u64 {
        let words = self.random.as_ref().map_or(0, ChaCha12Rng::get_word_pos);
        u64::try_from(words).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_continue_from_any_of_them() {
        let places = |draws: &mut BufferDraws| (3..40).map(|len| draws.place(len)).collect::<Vec<_>>();
        let mut draws = BufferDraws::new(Some(7), 1, 2, 0);
        // Beyond a block of the key stream.
        for count in 0..70 {
            let mut continued = BufferDraws::new(Some(7), 1, 2, draws.words());
            let mut again = BufferDraws::new(Some(7), 1, 2, 0);
            (0..count).for_each(|_| assert!(again.place(1000) < 1000));
            let expected = places(&mut again);
            assert_eq!(places(&mut continued), expected, "{count}");
            assert!(draws.place(1000) < 1000);
        }
        let mut other = BufferDraws::new(Some(7), 1, 3, 0);
        assert_ne!(
            places(&mut other),
            places(&mut BufferDraws::new(Some(7), 1, 2, 0))
        );
    }

    #[test]
    fn without_a_seed_nothing_is_shuffled() {
        assert_eq!(shard_order(3, None, 5), [0, 1, 2]);
        let mut draws = BufferDraws::new(None, 0, 0, 9);
        assert_eq!((draws.place(8), draws.words()), (0, 0));
    }
}
