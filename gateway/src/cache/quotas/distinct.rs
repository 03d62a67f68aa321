//! Counts the distinct objects of a set in bounded memory.

use serde::{Deserialize, Serialize};

use super::{float, threshold::Threshold};

/// Objects in the sample. The standard error of the count is then about 3 %.
const MAX_SAMPLED: usize = 1024;
/// The lowest bit of a sampled hash: the object's value is cached.
const CACHED: u64 = 1;
/// 2^64.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// An estimate of the number of distinct objects, and of how many of them are cached, from a sample of 1,024 objects.
///
/// The sample has the objects with the smallest hashes, after Bar-Yossef et al., "Counting distinct elements in a data
/// stream" (2002). The count is exact up to 1,023. Hashes are mixed before they are compared: admission selects objects
/// by their hashes, and the sample must not depend on it. Memory: 8 KiB.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub(super) struct DistinctCount {
    /// Hashes in the order of their mixed values. The lowest bit is not part of the hash: see [`CACHED`].
    sample: Vec<u64>,
}

/// Whether an object is in the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampled {
    /// The object was added.
    First,
    /// It was there before, so it is requested once more.
    Again,
    /// It is not in the sample.
    No,
}

impl DistinctCount {
    /// Counts an object.
    pub(super) fn add(&mut self, hash: u64) -> Sampled {
        match self.find(hash) {
            Ok(_) => Sampled::Again,
            Err(index) if index >= MAX_SAMPLED => Sampled::No,
            Err(index) => {
                self.sample.truncate(MAX_SAMPLED - 1);
                self.sample.insert(index, hash & !CACHED);
                Sampled::First
            }
        }
    }

    /// The number of distinct objects.
    pub(super) fn estimate(&self) -> f64 {
        let sampled = float(self.sample.len() as u64);
        match self.sample.last() {
            // k hashes fill this part of all hashes; that of the last one is known, so k - 1 are counted.
            Some(last) if self.sample.len() == MAX_SAMPLED => {
                (sampled - 1.0) * HASHES / (float(mix(*last)) + 1.0)
            }
            _ => sampled,
        }
    }

    /// Records that the value of an object is cached.
    pub(super) fn mark_cached(&mut self, hash: u64) {
        if let Ok(index) = self.find(hash) {
            self.sample[index] |= CACHED;
        }
    }

    /// Records that no object is cached which this threshold does not admit.
    pub(super) fn unmark_above(&mut self, threshold: Threshold) {
        for hash in &mut self.sample {
            if !threshold.admits(*hash) {
                *hash &= !CACHED;
            }
        }
    }

    /// Records that no object is cached which this threshold admits.
    pub(super) fn unmark_below(&mut self, threshold: Threshold) {
        for hash in &mut self.sample {
            if threshold.admits(*hash) {
                *hash &= !CACHED;
            }
        }
    }

    /// The part of all objects that this threshold admits: of those counted so far. With more objects than are in the sample, two
    /// standard errors less than expected, so that a cache seldom has fewer.
    pub(super) fn admitted_ratio(&self, threshold: Threshold) -> f64 {
        let ratio = threshold.ratio();
        if self.sample.len() == MAX_SAMPLED {
            let standard_error = (ratio * (1.0 - ratio) / self.estimate()).sqrt();
            return (ratio - 2.0 * standard_error).max(0.0);
        }
        let admitted = self.sample.iter().filter(|hash| threshold.admits(**hash)).count();
        float(admitted as u64) / float(self.sample.len().max(1) as u64)
    }

    /// The part of the admitted objects that is cached, from 0 to 1: of those counted so far. With more objects than are in
    /// the sample, two standard errors less, so that a cache seldom has fewer.
    pub(super) fn cached_ratio(&self, threshold: Threshold) -> f64 {
        let (mut admitted, mut cached) = (0_u32, 0_u32);
        for hash in self.sample.iter().filter(|hash| threshold.admits(**hash)) {
            admitted += 1;
            cached += u32::from(hash & CACHED != 0);
        }
        if admitted == 0 {
            return 0.0;
        }
        let ratio = f64::from(cached) / f64::from(admitted);
        if self.sample.len() < MAX_SAMPLED {
            return ratio;
        }
        let standard_error = (ratio * (1.0 - ratio) / f64::from(admitted)).sqrt();
        (ratio - 2.0 * standard_error).max(0.0)
    }

    /// The index of an object in the sample, or the one that it would have.
    fn find(&self, hash: u64) -> Result<usize, usize> {
        let mixed = mix(hash);
        match self.sample.last() {
            // Almost every object of a large set ends here.
            Some(last) if mix(*last) < mixed => Err(self.sample.len()),
            _ => self.sample.binary_search_by(|sampled| mix(*sampled).cmp(&mixed)),
        }
    }
}

/// Maps hashes that differ in more than the lowest bit to different, evenly distributed values: the last step of
/// `SplitMix64` (Steele et al., "Fast splittable pseudorandom number generators", 2014).
const fn mix(hash: u64) -> u64 {
    let hash = hash & !CACHED;
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl From<DistinctCount> for Vec<u64> {
    fn from(count: DistinctCount) -> Self {
        count.sample
    }
}

impl TryFrom<Vec<u64>> for DistinctCount {
    type Error = &'static str;

    fn try_from(sample: Vec<u64>) -> Result<Self, Self::Error> {
        let is_valid =
            sample.len() <= MAX_SAMPLED && sample.is_sorted_by(|one, other| mix(*one) < mix(*other));
        is_valid
            .then_some(Self { sample })
            .ok_or("invalid sample: expected at most 1,024 hashes in their order")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::tests::object_hash, *};

    fn count_of(objects: impl Iterator<Item = u64>) -> DistinctCount {
        let mut count = DistinctCount::default();
        for object in objects {
            count.add(object_hash(object));
        }
        count
    }

    #[test]
    fn large_counts_are_estimated_within_a_tenth() {
        for objects in [10_000, 100_000, 1_000_000] {
            let start = objects << 8;
            let count = count_of(start..start + objects);
            let error = count.estimate() / float(objects) - 1.0;
            assert!(error.abs() < 0.1, "{objects} objects: error {error}");
            assert!(
                count.sample.capacity() <= MAX_SAMPLED,
                "{}",
                count.sample.capacity()
            );
        }
    }

    #[test]
    fn an_object_of_the_sample_is_recognized() {
        let mut count = count_of(0..100);
        assert_eq!(count.add(object_hash(7)), Sampled::Again);
        assert_eq!(count.add(object_hash(100)), Sampled::First);
        let mut count = count_of(0..100_000);
        let again = (0..100_000)
            .map(|object| count.add(object_hash(object)))
            .filter(|sampled| *sampled == Sampled::Again);
        assert_eq!(again.count(), MAX_SAMPLED);
    }

    #[test]
    fn the_cached_ratio_does_not_depend_on_which_objects_are_admitted() {
        // A third of the objects was admitted until all had been requested, then all were.
        let mut count = count_of(0..50_000);
        let third = Threshold::from_ratio(1.0 / 3.0);
        for hash in (0..50_000).map(object_hash).filter(|hash| third.admits(*hash)) {
            count.mark_cached(hash);
        }
        assert_eq!(
            (
                count.cached_ratio(third),
                count.cached_ratio(Threshold::default())
            ),
            (1.0, 0.0)
        );
        let ratio = count.cached_ratio(Threshold::ALL);
        assert!((0.25..0.34).contains(&ratio), "{ratio}");
        count.unmark_above(Threshold::from_ratio(1.0 / 6.0));
        let ratio = count.cached_ratio(third);
        assert!((0.35..0.55).contains(&ratio), "{ratio}");
    }

    proptest! {
        /// Repeats and marks change nothing.
        #[test]
        fn small_counts_are_exact(objects in prop::collection::vec(0..MAX_SAMPLED as u64 - 1, 0..3000)) {
            let distinct: std::collections::BTreeSet<u64> = objects.iter().copied().collect();
            let mut count = DistinctCount::default();
            for object in objects {
                count.add(object_hash(object));
                count.mark_cached(object_hash(object));
            }
            prop_assert_eq!(Some(count.estimate()), Some(float(distinct.len() as u64)));
        }
    }
}
