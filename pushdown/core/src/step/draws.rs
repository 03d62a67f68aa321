//! The random numbers of one step for one sample.

use super::philox::philox4x32;
use crate::language::Digest;

/// A sequence of draws, determined by the seed, the epoch, the sample and the index of the step among the random steps.
///
/// Draw `d` is Philox 4x32-10 with the key `seed` (low word first) and the counter `[d + 65536 * ordinal, epoch,
/// id, id >> 32]`, where `id` is the first 64 bits of the SHA-256 of the sample's id.
#[derive(Debug, Clone)]
pub struct Draws {
    key: [u32; 2],
    counter: [u32; 4],
}

#[expect(clippy::cast_possible_truncation, reason = "words of a longer number")]
impl Draws {
    /// The draws of the `ordinal`-th random step of a pipeline, counted from 0.
    pub fn new(seed: u64, epoch: u32, sample_id: &[u8], ordinal: usize) -> Self {
        let id = Digest::new(sample_id).first_u64();
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            counter: [(ordinal as u32) << 16, epoch, id as u32, (id >> 32) as u32],
        }
    }

    /// A placeholder for steps that are not random.
    pub const fn none() -> Self {
        Self {
            key: [0; 2],
            counter: [0; 4],
        }
    }

    /// 64 random bits: the first two words of the next draw.
    fn bits(&mut self) -> u64 {
        let [low, high, ..] = philox4x32(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(1);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Uniform in `[0, 1)`, 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in `0..count`; the bias is below `count / 2^64`.
    pub fn below(&mut self, count: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u32
    }
}

/// One draw per row of a table, determined by the row number.
///
/// The draw of row `r` is Philox 4x32-10 with the key `seed` and the counter `[r, r >> 32, id, id >> 32]`, where
/// `id` is the first 64 bits of the SHA-256 of the sample's id and `\0rows`.
#[derive(Debug, Clone)]
pub struct RowDraws {
    key: [u32; 2],
    id: [u32; 2],
}

#[expect(clippy::cast_possible_truncation, reason = "words of a longer number")]
impl RowDraws {
    /// The draws for the rows of a sample.
    pub fn new(seed: u64, sample_id: &[u8]) -> Self {
        // The suffix separates these draws from those of the sample's random steps.
        let id = Digest::new(&[sample_id, b"\0rows"].concat()).first_u64();
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            id: [id as u32, (id >> 32) as u32],
        }
    }

    /// Uniform in `[0, 1)`, 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&self, row: u64) -> f64 {
        let counter = [row as u32, (row >> 32) as u32, self.id[0], self.id[1]];
        let [low, high, ..] = philox4x32(counter, self.key);
        ((u64::from(high) << 32 | u64::from(low)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of these values changes the draws of all recorded epochs: raise the version of the family with it.
    #[test]
    fn golden_draws() {
        let mut draws = Draws::new(7, 3, b"photos/cat.jpg", 1);
        let units: Vec<f64> = (0..4).map(|_| draws.unit()).collect();
        let mut draws = Draws::new(u64::MAX, u32::MAX, "\u{fc}ber.jpg".as_bytes(), 0);
        let below: Vec<u32> = (0..8).map(|_| draws.below(1000)).collect();
        insta::assert_debug_snapshot!((units, below));
    }
}
