//! Placement of samples on the replicas of a gateway: weighted rendezvous hashing with a bounded load.
//!
//! Readers that know the same replicas place samples alike without talking to each other, and each sample stays at its replica when
//! others are added or removed, so that a result cache is of use. Sources: Thaler and Ravishankar, "Using name-based mappings
//! to increase hit rates" (1998); Schindelhauer and Schomaker, "Weighted distributed hash tables" (2005); Mirrokni, Thorup and
//! Zadimoghaddam, "Consistent hashing with bounded loads" (2018).

use std::cmp::Ordering;

use pushdown_core::{float, language::Digest};

/// Samples that a reader should have in flight per replica. With fewer, some replicas have nothing to do while samples wait at
/// others.
pub const MIN_SAMPLES_PER_REPLICA: u64 = 32;

/// Upper bound of a replica's samples in flight, as a ratio of its part of all samples in flight; 1.25 standard deviations of its part are
/// added.
pub const LOAD_CAP: f64 = 1.10;

/// Standard deviations of a replica's part that are added to its limit: hashing places samples at random, and a replica at its
/// limit turns samples away until it has answered others. With the ratio alone, one in ten of 1,024 samples in flight at 32
/// replicas would go to its second choice, where it is not cached.
const CAP_DEVIATIONS: f64 = 1.25;

/// Weights are powers of this ratio, so that small differences between replicas move no sample.
const WEIGHT_RATIO: f64 = 1.25;

/// Differences up to this number of samples are rounding errors of a load limit.
const LIMIT_EPSILON: f64 = 1e-9;

/// The replicas of a gateway with their weights. Replicas are named by their index in the list that it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    replicas: Vec<Replica>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Replica {
    /// The first 8 bytes, big-endian, of the SHA-256 digest of the id. It decides which samples a replica has cached, so it never
    /// changes.
    id_hash: u64,
    /// The position of the id among all ids in ascending order. It decides between equal scores.
    id_order: usize,
    /// A power of [`WEIGHT_RATIO`]; 1 for a replica with the mean number of cores.
    weight: f64,
}

impl Placement {
    /// The placement on replicas with these ids and numbers of cores. The order of the list does not matter if the ids differ.
    ///
    /// The weight of a replica is its cores over the mean of all replicas, rounded to the nearest power of 1.25. Cores that are not
    /// finite or not positive count as the mean.
    pub fn new<'a>(replicas: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let replicas: Vec<(&str, f64)> = replicas.into_iter().collect();
        let mut by_id: Vec<usize> = (0..replicas.len()).collect();
        by_id.sort_by_key(|index| replicas[*index].0);
        let mut id_orders = vec![0; replicas.len()];
        for (id_order, index) in by_id.iter().enumerate() {
            id_orders[*index] = id_order;
        }
        // Added up in the order of ids: the order of additions decides the last bit of a sum.
        let known: Vec<f64> = by_id
            .iter()
            .map(|index| replicas[*index].1)
            .filter(|cores| is_known(*cores))
            .collect();
        let count = float(known.len() as u64);
        let mean_cores: f64 = known.iter().map(|cores| cores / count).sum();
        let replica = |((id, cores), id_order): ((&str, f64), usize)| Replica {
            id_hash: Digest::new(id.as_bytes()).first_u64(),
            id_order,
            weight: if is_known(cores) {
                rounded_weight(cores / mean_cores)
            } else {
                1.0
            },
        };
        Self {
            replicas: replicas.into_iter().zip(id_orders).map(replica).collect(),
        }
    }

    /// The number of replicas.
    pub const fn len(&self) -> usize {
        self.replicas.len()
    }

    /// Whether there are no replicas.
    pub const fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    /// All replicas in the order in which they should have the object with this hash, the first choice first.
    pub fn ranking(&self, object_hash: u64) -> Vec<usize> {
        let mut scored: Vec<(f64, usize)> = (0..self.len())
            .map(|index| (self.replicas[index].score(object_hash), index))
            .collect();
        scored.sort_unstable_by(|a, b| self.by_rank(*a, *b));
        scored.into_iter().map(|(_, index)| index).collect()
    }

    /// The first replica of the [ranking](Self::ranking); `None` without replicas.
    pub fn first_choice(&self, object_hash: u64) -> Option<usize> {
        self.first_choice_among(object_hash, |_| true)
    }

    /// The part of the samples whose first choice is this replica, from 0 to 1: its part of the weights.
    ///
    /// # Panics
    /// If there is no replica with this index.
    pub fn fraction(&self, index: usize) -> f64 {
        self.replicas[index].weight / self.total_weight(|_| true)
    }

    /// Assigns each sample to the first replica of its ranking that is usable and below its limit, in the order of `hashes`.
    ///
    /// The part of a replica is that of its weight among usable replicas, of the samples in flight at these and of `hashes`. Its limit
    /// is [`LOAD_CAP`] times its part and 1.25 times the square root of its part, rounded up to whole samples. If every usable
    /// replica has reached its limit, a sample goes to the first usable one. `in_flight` has the samples in flight by replica;
    /// missing entries count as 0.
    ///
    /// Returns an index by hash; an empty list if no replica is usable.
    pub fn assign(&self, hashes: &[u64], in_flight: &[u64], is_usable: impl Fn(usize) -> bool) -> Vec<usize> {
        let is_usable: Vec<bool> = (0..self.len()).map(is_usable).collect();
        let mut loads: Vec<u64> = (0..self.len())
            .map(|index| in_flight.get(index).copied().unwrap_or_default())
            .collect();
        let usable_loads = loads.iter().zip(&is_usable).filter(|(_, usable)| **usable);
        let total_load: u64 = usable_loads.map(|(load, _)| load).sum::<u64>() + hashes.len() as u64;
        let samples_per_weight = float(total_load) / self.total_weight(|index| is_usable[index]);
        let parts = self
            .replicas
            .iter()
            .map(|replica| samples_per_weight * replica.weight);
        let limits: Vec<f64> = parts.map(limit_samples).collect();
        let assign = |hash: &u64| {
            let has_room = |index: usize| is_usable[index] && float(loads[index]) < limits[index];
            let choice = self
                .first_choice_among(*hash, has_room)
                .or_else(|| self.first_choice_among(*hash, |index| is_usable[index]))?;
            loads[choice] += 1;
            Some(choice)
        };
        hashes.iter().filter_map(assign).collect()
    }

    /// How many replicas a reader should use that may have this number of samples in flight: one per
    /// [`MIN_SAMPLES_PER_REPLICA`], and at least one, but no more than there are.
    pub fn count_for(&self, samples_in_flight: u64) -> usize {
        let count = usize::try_from(samples_in_flight / MIN_SAMPLES_PER_REPLICA).unwrap_or(usize::MAX);
        count.max(1).min(self.len())
    }

    /// The replicas that a reader uses if it has too few samples in flight for all of them: the first `count` in the ranking of the
    /// data set that are usable. They are the same for all ranks of a job, and differ between data sets.
    pub fn subset(&self, data_set_hash: u64, count: usize, is_usable: impl Fn(usize) -> bool) -> Vec<usize> {
        let ranking = self.ranking(data_set_hash).into_iter();
        ranking.filter(|index| is_usable(*index)).take(count).collect()
    }

    /// The first replica by rank among those that satisfy `is_candidate`. One pass: it does not sort the others.
    fn first_choice_among(&self, object_hash: u64, is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.len())
            .filter(|index| is_candidate(*index))
            .map(|index| (self.replicas[index].score(object_hash), index))
            .min_by(|a, b| self.by_rank(*a, *b))
            .map(|(_, index)| index)
    }

    /// The order of two replicas with their scores: the higher score first, then the lower id.
    fn by_rank(&self, (a_score, a): (f64, usize), (b_score, b): (f64, usize)) -> Ordering {
        let by_id = || self.replicas[a].id_order.cmp(&self.replicas[b].id_order);
        b_score.total_cmp(&a_score).then_with(by_id)
    }

    /// The sum of the weights of these replicas. Weights are powers of one ratio, so equal lists have equal sums in the order of
    /// their indices up to a rounding error, which [`LIMIT_EPSILON`] covers.
    fn total_weight(&self, is_counted: impl Fn(usize) -> bool) -> f64 {
        let counted = (0..self.len()).filter(|index| is_counted(*index));
        counted.map(|index| self.replicas[index].weight).sum()
    }
}

impl Replica {
    /// The score of an object: `-weight / ln(u)`, with `u` between 0 and 1 from a fixed mix of both hashes. A replica has the
    /// highest score for its part of all objects. Other replicas do not change it.
    fn score(&self, object_hash: u64) -> f64 {
        // From `libm`, for the same scores on every platform.
        -self.weight / libm::log(open_fraction(mix(self.id_hash ^ object_hash)))
    }
}

/// The limit of samples in flight at a replica whose part of all of them is this.
fn limit_samples(part_samples: f64) -> f64 {
    (LOAD_CAP * part_samples + CAP_DEVIATIONS * part_samples.sqrt() - LIMIT_EPSILON).ceil()
}

/// Whether a replica has stated how many cores it has.
fn is_known(cores: f64) -> bool {
    cores.is_finite() && cores > 0.0
}

/// The power of [`WEIGHT_RATIO`] that is nearest to a ratio of cores, on a logarithmic scale.
fn rounded_weight(cores_ratio: f64) -> f64 {
    let exponent = libm::round(libm::log(cores_ratio) / libm::log(WEIGHT_RATIO));
    libm::pow(WEIGHT_RATIO, exponent)
}

/// Maps different hashes to different, evenly distributed values: the last step of `SplitMix64` (Steele et al., "Fast splittable
/// pseudorandom number generators", 2014). Gateways cache objects with low hashes, so an unmixed hash would place these unevenly.
pub(crate) const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A hash as a fraction of all hashes by its upper 52 bits; never 0 or 1.
fn open_fraction(hash: u64) -> f64 {
    /// Number of different upper 52 bits.
    const VALUES: f64 = 4_503_599_627_370_496.0;
    (float(hash >> 12) + 0.5) / VALUES
}

#[cfg(test)]
mod tests;
