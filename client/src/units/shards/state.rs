//! What a reader has read of an epoch: its state, and how readers go on from states.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    left::{SamplesLeft, ShardLeft, ShardsLeft},
    place::ReaderPlace,
};
use crate::{
    epoch::{Rank, Worker},
    error::{Error, Result},
};

/// What one reader has read of an epoch's shards: the state of a [`ShardReader`](crate::shards::ShardReader).
///
/// It serializes, for example as JSON, and has about 12 bytes for each sample in the shuffle buffer.
/// [`ShardReader::shards_read`](crate::shards::ShardReader::shards_read) returns it, and
/// [`shards_read`](crate::reader::PushdownReaderBuilder::shards_read) resumes from it:
///
/// - In the same world each reader continues exactly where it was, in the same order. Its own state is enough.
/// - In another world, or with another buffer, what is left is dealt out anew. Every reader needs the states of all readers of the earlier
///   world, the same list. Readers may have stopped at different batches.
///
/// Either way each sample that is left is read once. Data set, columns, seed and epoch are not part of it, and must be the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardsRead {
    pub(super) place: ReaderPlace,
    /// The most samples in the shuffle buffer.
    pub(super) buffer: usize,
    pub(super) checkpoint: Checkpoint,
}

/// Where a reader is in an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    /// What was left of the epoch when the readers of this world began.
    begin: ShardsLeft,
    pub(super) progress: Progress,
}

/// A sample of a shard. States have it as a pair of position and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub(super) struct SampleId {
    /// Position of its shard in the epoch.
    pub(super) position: u32,
    /// Its number in the shard.
    pub(super) number: u32,
}

impl From<(u32, u32)> for SampleId {
    fn from((position, number): (u32, u32)) -> Self {
        Self { position, number }
    }
}

impl From<SampleId> for (u32, u32) {
    fn from(SampleId { position, number }: SampleId) -> Self {
        (position, number)
    }
}

/// How far a reader is in its shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    /// Samples that were delivered.
    pub(super) samples: u64,
    /// Shards that were begun. The last of them may not have ended.
    pub(super) begun: usize,
    /// The sample after the last one that entered the buffer, in the last shard that was begun. `None` if the shard has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<SampleId>,
    /// The samples in the buffer, in their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) held: Vec<SampleId>,
    /// The place of the next sample that enters the buffer, if it is that of the last one that left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) free: Option<usize>,
    /// Words of the key stream that draws have used.
    #[serde(default)]
    pub(super) words: u64,
    /// The versions of shards that have not ended, or have samples in the buffer, by position.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) etags: BTreeMap<u32, String>,
}

/// A shard that a reader reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardTask {
    /// Its number among the reader's shards.
    pub(super) number: usize,
    pub(super) shard: ShardLeft,
}

impl ShardsRead {
    pub(super) const fn new(place: ReaderPlace, buffer: usize, checkpoint: Checkpoint) -> Self {
        Self {
            place,
            buffer,
            checkpoint,
        }
    }

    /// The state of a reader that goes on from these states of an epoch of this number of shards, before its first batch.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for states that are invalid, of different worlds, or not those of all readers.
    pub(crate) fn resume(
        states: &[Self],
        rank: Rank,
        worker: Worker,
        buffer: usize,
        shards: usize,
    ) -> Result<Self> {
        let place = ReaderPlace::new(rank, worker)?;
        let shards = u32::try_from(shards).unwrap_or(u32::MAX);
        let checkpoint = Checkpoint::resume(states, place, buffer, shards)?;
        Ok(Self::new(place, buffer, checkpoint))
    }

    /// Whether no sample is left for the reader whose state it is.
    pub fn is_complete(&self) -> bool {
        self.checkpoint.tasks(self.place).next().is_none()
    }

    /// Checks that this can be the state of a reader of this number of shards.
    fn check(&self, shards: u32) -> Result<()> {
        let expect = |is_valid: bool, expected: &str| {
            if is_valid {
                return Ok(());
            }
            Err(Error::config(format!(
                "invalid shards_read: expected {expected}; is it a state of the same data set?"
            )))
        };
        expect(self.place.is_valid(), "a rank below its world")?;
        expect(
            self.checkpoint.begin.is_valid(shards),
            &format!("samples of {shards} shards, in order"),
        )?;
        let Progress {
            begun,
            next,
            ref held,
            free,
            ..
        } = self.checkpoint.progress;
        let dealt = self.checkpoint.begin.deal(self.place);
        let last = begun.checked_sub(1);
        let last_position = last.and_then(|last| dealt.get(last)).map(|shard| shard.position);
        expect(
            begun <= dealt.len() && next.is_none_or(|next| Some(next.position) == last_position),
            &format!("at most {} shards of this reader", dealt.len()),
        )?;
        let begun: BTreeMap<u32, (usize, &SamplesLeft)> = (0..begun)
            .zip(&dealt)
            .map(|(number, shard)| (shard.position, (number, &shard.samples)))
            .collect();
        let is_read = |SampleId { position, number }: &SampleId| {
            let has_entered =
                |shard: usize| Some(shard) != last || next.is_none_or(|next| *number < next.number);
            let found = begun.get(position);
            found.is_some_and(|(shard, samples)| samples.contains(*number) && has_entered(*shard))
        };
        let distinct: HashSet<&SampleId> = held.iter().collect();
        expect(
            held.iter().all(is_read) && distinct.len() == held.len() && held.len() <= self.buffer.max(1),
            "a buffer of samples that were read, each once",
        )?;
        expect(
            free.is_none_or(|free| free <= held.len()),
            "a free place in the buffer",
        )
    }
}

impl Checkpoint {
    /// The beginning of an epoch of this number of shards.
    pub(super) fn of_epoch(shards: u32) -> Self {
        Self {
            begin: ShardsLeft::all(shards),
            progress: Progress::default(),
        }
    }

    /// Where the reader at `place` goes on from states of an epoch of this number of shards.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for states that are invalid, of different worlds, or not those of all readers.
    pub(super) fn resume(
        states: &[ShardsRead],
        place: ReaderPlace,
        buffer: usize,
        shards: u32,
    ) -> Result<Self> {
        let Some(first) = states.first() else {
            return Ok(Self::of_epoch(shards));
        };
        let mut known = HashSet::new();
        for state in states {
            state.check(shards)?;
            let is_beside = state.place.is_beside(&first.place)
                && state.buffer == first.buffer
                && state.checkpoint.begin == first.checkpoint.begin;
            if !is_beside || !known.insert(state.place.number()) {
                return Err(Error::config(
                    "invalid shards_read: expected the states of readers that read together, each once",
                ));
            }
        }
        let own = states
            .iter()
            .find(|state| state.place == place && state.buffer == buffer);
        if let Some(own) = own {
            return Ok(own.checkpoint.clone());
        }
        if let Some(missing) = (0..first.place.readers()).find(|number| !known.contains(number)) {
            return Err(Error::config(format!(
                "invalid shards_read: the state of {} is missing: in another world, or with another buffer, each reader needs the \
                 states of all {} readers",
                first.place.describe(missing),
                first.place.readers()
            )));
        }
        let left = states
            .iter()
            .flat_map(|state| state.checkpoint.tasks(state.place));
        Ok(Self {
            begin: ShardsLeft::new(left.map(|task| task.shard).collect()),
            progress: Progress::default(),
        })
    }

    /// The shards that the reader at `place` reads from here on, in their order.
    pub(super) fn tasks(&self, place: ReaderPlace) -> impl Iterator<Item = ShardTask> {
        let Progress {
            begun,
            next,
            held,
            etags,
            ..
        } = &self.progress;
        let mut held_by_shard: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for SampleId { position, number } in held {
            held_by_shard.entry(*position).or_default().push(*number);
        }
        let dealt = self.begin.deal(place).into_iter().enumerate();
        dealt.filter_map(move |(number, mut shard)| {
            if number < *begun {
                let is_last = number + 1 == *begun;
                let rest = next.filter(|_| is_last);
                let rest = rest.map_or_else(SamplesLeft::none, |next| shard.samples.after(next.number));
                let held = held_by_shard.remove(&shard.position).unwrap_or_default();
                shard.samples = SamplesLeft::new(held, rest);
                if let Some(etag) = etags.get(&shard.position) {
                    shard.etag = Some(etag.clone());
                }
            }
            (!shard.samples.is_empty()).then_some(ShardTask { number, shard })
        })
    }
}
