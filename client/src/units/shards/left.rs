//! What is left of an epoch: shards, and samples of shards that were read in part.

use std::iter;

use serde::{Deserialize, Serialize};

use super::place::ReaderPlace;

/// Samples of one shard that are left, by their numbers in the shard: these, and all others from a number on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SamplesLeft {
    /// Ascending, and less than `from`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<u32>,
    /// `None` if there are no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
}

/// A shard of which samples are left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardLeft {
    /// Position in the epoch's order of shards.
    pub(super) position: u32,
    /// The version whose samples have these numbers. `None` if nothing was read of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
    pub(super) samples: SamplesLeft,
}

/// Positions of shards that follow each other. States have them as a pair of start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
struct PositionRange {
    start: u32,
    /// After the last of them.
    end: u32,
}

/// What is left of an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardsLeft {
    /// Positions of shards of which nothing was read: ascending and disjoint.
    whole: Vec<PositionRange>,
    /// The others, by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    partial: Vec<ShardLeft>,
}

impl SamplesLeft {
    /// All samples of a shard.
    pub(super) const ALL: Self = Self {
        numbers: Vec::new(),
        from: Some(0),
    };

    /// The samples with these numbers, and those of `rest`, whose numbers are others.
    pub(super) fn new(mut numbers: Vec<u32>, rest: Self) -> Self {
        numbers.extend(rest.numbers);
        numbers.sort_unstable();
        Self {
            numbers,
            from: rest.from,
        }
    }

    /// No samples.
    pub(super) const fn none() -> Self {
        Self {
            numbers: Vec::new(),
            from: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::none()
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.from.is_some_and(|from| number >= from) || self.numbers.binary_search(&number).is_ok()
    }

    /// Those from this number on.
    pub(super) fn after(&self, number: u32) -> Self {
        let start = self.numbers.partition_point(|other| *other < number);
        Self {
            numbers: self.numbers[start..].to_vec(),
            from: self.from.map(|from| from.max(number)),
        }
    }

    /// The known numbers, ascending.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The numbers under which these samples are reported if none of them can be read: each known one, and one for the others.
    pub(super) fn failure_numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied().chain(self.from)
    }

    fn is_valid(&self) -> bool {
        let is_ascending = self.numbers.is_sorted_by(|a, b| a < b);
        let last = self.numbers.last().zip(self.from);
        is_ascending && !self.is_empty() && last.is_none_or(|(last, from)| *last < from)
    }
}

impl ShardLeft {
    const fn whole(position: u32) -> Self {
        Self {
            position,
            etag: None,
            samples: SamplesLeft::ALL,
        }
    }
}

impl From<(u32, u32)> for PositionRange {
    fn from((start, end): (u32, u32)) -> Self {
        Self { start, end }
    }
}

impl From<PositionRange> for (u32, u32) {
    fn from(PositionRange { start, end }: PositionRange) -> Self {
        (start, end)
    }
}

impl ShardsLeft {
    /// All of an epoch with this number of shards.
    pub(super) fn all(shards: u32) -> Self {
        let whole = PositionRange {
            start: 0,
            end: shards,
        };
        Self {
            whole: (shards > 0).then_some(whole).into_iter().collect(),
            partial: Vec::new(),
        }
    }

    /// These shards, in any order, each once.
    pub(super) fn new(mut shards: Vec<ShardLeft>) -> Self {
        shards.sort_unstable_by_key(|shard| shard.position);
        let mut left = Self::default();
        for shard in shards {
            if shard.samples != SamplesLeft::ALL {
                left.partial.push(shard);
                continue;
            }
            let (start, end) = (shard.position, shard.position.saturating_add(1));
            match left.whole.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => left.whole.push(PositionRange { start, end }),
            }
        }
        left
    }

    /// The shards of one of the readers that share them: they are dealt out one by one, in the order of the epoch.
    pub(super) fn deal(&self, place: ReaderPlace) -> Vec<ShardLeft> {
        let shards = self.shards().skip(place.number());
        shards.step_by(place.readers()).collect()
    }

    /// All shards, in the order of the epoch.
    pub(super) fn shards(&self) -> impl Iterator<Item = ShardLeft> {
        let whole = self.whole.iter().flat_map(|range| range.start..range.end);
        let mut whole = whole.peekable();
        let mut partial = self.partial.iter().peekable();
        iter::from_fn(move || match (whole.peek(), partial.peek()) {
            (Some(position), Some(shard)) if shard.position < *position => partial.next().cloned(),
            (Some(_), _) => whole.next().map(ShardLeft::whole),
            (None, _) => partial.next().cloned(),
        })
    }

    /// Whether this can be left of an epoch with this number of shards.
    pub(super) fn is_valid(&self, shards: u32) -> bool {
        let are_ranges = self.whole.iter().all(|range| range.start < range.end)
            && self.whole.is_sorted_by(|before, next| before.end <= next.start);
        let is_within = self.whole.last().is_none_or(|range| range.end <= shards);
        let is_valid = |shard: &ShardLeft| shard.position < shards && shard.samples.is_valid();
        // Checked before they are listed, since a range may be of any length.
        are_ranges
            && is_within
            && self.partial.iter().all(is_valid)
            && self
                .shards()
                .is_sorted_by(|before, next| before.position < next.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(numbers: &[u32], from: Option<u32>) -> SamplesLeft {
        SamplesLeft {
            numbers: numbers.to_vec(),
            from,
        }
    }

    fn shard(position: u32, samples: SamplesLeft) -> ShardLeft {
        ShardLeft {
            samples,
            ..ShardLeft::whole(position)
        }
    }

    fn positions(left: &ShardsLeft) -> Vec<u32> {
        left.shards().map(|shard| shard.position).collect()
    }

    #[test]
    fn samples_are_known_numbers_and_all_from_one_on() {
        let left = samples(&[2, 5], Some(8));
        let found: Vec<u32> = (0..12).filter(|number| left.contains(*number)).collect();
        assert_eq!(found, [2, 5, 8, 9, 10, 11]);
        assert_eq!(left.after(0), left);
        assert_eq!(left.after(3), samples(&[5], Some(8)));
        assert_eq!(left.after(10), samples(&[], Some(10)));
        assert!(samples(&[2], None).after(3).is_empty() && !samples(&[], Some(3)).is_empty());
        assert_eq!(
            SamplesLeft::new(vec![4, 1], samples(&[2], Some(7))),
            samples(&[1, 2, 4], Some(7))
        );
        assert!(left.failure_numbers().eq([2, 5, 8]));
    }

    #[test]
    fn shards_are_in_the_order_of_the_epoch() {
        let left = ShardsLeft::new(vec![
            shard(4, SamplesLeft::ALL),
            shard(2, samples(&[1], None)),
            shard(3, SamplesLeft::ALL),
            shard(0, samples(&[], Some(9))),
            shard(7, SamplesLeft::ALL),
        ]);
        assert_eq!(left.whole, [(3, 5), (7, 8)].map(PositionRange::from));
        assert_eq!(positions(&left), [0, 2, 3, 4, 7]);
        assert!(left.is_valid(8) && !left.is_valid(7));
        assert_eq!(
            serde_json::to_string(&left).unwrap(),
            r#"{"whole":[[3,5],[7,8]],"partial":[{"position":0,"samples":{"from":9}},{"position":2,"samples":{"numbers":[1]}}]}"#
        );
        assert_eq!(positions(&ShardsLeft::all(3)), [0, 1, 2]);
        assert_eq!(ShardsLeft::all(0), ShardsLeft::default());
    }

    #[test]
    fn what_cannot_be_left_is_invalid() {
        let valid = |text: &str| serde_json::from_str::<ShardsLeft>(text).unwrap().is_valid(9);
        assert!(valid(r#"{"whole":[[0,2],[2,9]]}"#));
        for text in [
            r#"{"whole":[[0,10]]}"#,
            r#"{"whole":[[0,4294967295]]}"#,
            r#"{"whole":[[3,3]]}"#,
            r#"{"whole":[[3,5],[4,6]]}"#,
            r#"{"whole":[[3,5],[0,2]]}"#,
            r#"{"whole":[],"partial":[{"position":9,"samples":{"from":1}}]}"#,
            r#"{"whole":[],"partial":[{"position":1,"samples":{}}]}"#,
            r#"{"whole":[[0,3]],"partial":[{"position":1,"samples":{"from":1}}]}"#,
            r#"{"whole":[],"partial":[{"position":1,"samples":{"numbers":[2,2]}}]}"#,
            r#"{"whole":[],"partial":[{"position":1,"samples":{"numbers":[2],"from":2}}]}"#,
        ] {
            assert!(!valid(text), "{text}");
        }
    }
}
