//! Which samples of an epoch are in which shard.

use std::sync::Arc;

use crate::{
    epoch::{
        ReadPlan,
        order::{EpochOrder, SampleRef},
    },
    objects::Objects,
};

/// The samples that a reader reads in an epoch, by shard. It takes 4 bytes for each sample. Padding is left out: it is read at the end
/// of the epoch, and its shards at the beginning.
#[derive(Debug)]
pub(super) struct ShardSamples {
    order: Arc<EpochOrder>,
    batch_size: usize,
    /// By shard: where its samples begin in `numbers`; at the end the number of all samples.
    starts: Vec<usize>,
    /// The numbers of samples in `order`, those of a shard together and ascending.
    numbers: Vec<u32>,
}

impl ShardSamples {
    /// The samples of this reader's batches.
    pub(super) fn new(objects: &Objects, order: Arc<EpochOrder>, plan: &ReadPlan) -> Self {
        let (batch_size, count) = (plan.batch_size, order.len());
        let batches = plan.reader_share(objects.len()).batch_numbers();
        let numbers = batches.flat_map(|batch| {
            let first = batch * batch_size;
            first..count.min(first + batch_size)
        });
        let shard = |number: usize| {
            let sample = order.sample(number);
            (!sample.is_padding).then(|| objects.shard_number(sample.index))
        };
        let mut starts = vec![0; objects.shard_count() + 1];
        for shard in numbers.clone().filter_map(shard) {
            starts[shard + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut places = starts.clone();
        let mut grouped = vec![0; sum];
        for number in numbers {
            let Some(shard) = shard(number) else { continue };
            let place: &mut usize = &mut places[shard];
            // There are at most `u32::MAX` samples.
            grouped[*place] = u32::try_from(number).unwrap_or(u32::MAX);
            *place += 1;
        }
        Self {
            order,
            batch_size,
            starts,
            numbers: grouped,
        }
    }

    /// The samples of a shard in the order of the epoch, each with its batch.
    pub(super) fn of_shard(&self, shard: usize) -> impl Iterator<Item = (usize, SampleRef)> {
        let bounds = self.starts.get(shard).zip(self.starts.get(shard + 1));
        let numbers = bounds.and_then(|(start, end)| self.numbers.get(*start..*end));
        numbers.unwrap_or_default().iter().map(move |number| {
            let number = *number as usize;
            (number / self.batch_size, self.order.sample(number))
        })
    }
}

#[cfg(test)]
mod tests {
    use pushdown::shard::MemberRange;

    use super::*;
    use crate::{
        epoch::{
            Worker,
            order::{CheckedRank, SampleOrder, Tail},
        },
        objects::{MemberRef, Object},
    };

    /// Members of three shards, by turns.
    fn objects(count: usize) -> Objects {
        let objects = (0..count).map(|index| Object {
            key: ["a.tar", "b.tar", "c.tar"][index % 3],
            bytes: None,
            etag: Some("\"e\""),
            member: Some(MemberRef {
                name: "1.jpg",
                range: MemberRange::new(index as u64 * 1024, 512, 5).unwrap(),
            }),
        });
        Objects::from_objects("b", objects)
    }

    fn plan(rank: (usize, usize), worker: Worker) -> ReadPlan {
        ReadPlan {
            batch_size: 4,
            rank: CheckedRank::new(rank.0, rank.1).unwrap(),
            shuffle_seed: Some(5),
            order: SampleOrder::Shards { buffer: 9 },
            epoch: 1,
            start_position: 7,
            tail: Tail::Pad,
            start: 1,
            worker,
            limit: Some(30),
            prefetch_bytes: 0,
            requests: 1,
        }
    }

    #[test]
    fn each_sample_of_a_reader_is_in_the_list_of_its_shard() {
        let objects = objects(50);
        for (rank, index, count) in [((0, 1), 0, 1), ((1, 2), 0, 1), ((0, 1), 1, 3), ((2, 3), 1, 2)] {
            let plan = plan(rank, Worker { index, count });
            let shards = (0..objects.len()).map(|index| objects.shard_number(index));
            let order = EpochOrder::by_shards(
                shards,
                9,
                plan.share(objects.len()),
                plan.shuffle_seed,
                plan.epoch,
            );
            let order = Arc::new(order);
            let count = order.len();
            let mut expected = vec![Vec::new(); 3];
            for batch in plan.reader_share(objects.len()).batch_numbers() {
                for number in batch * 4..count.min(batch * 4 + 4) {
                    let sample = order.sample(number);
                    if !sample.is_padding {
                        expected[sample.index % 3].push((batch, sample));
                    }
                }
            }
            let samples = ShardSamples::new(&objects, order, &plan);
            let found = (0..3).map(|shard| samples.of_shard(shard).collect::<Vec<_>>());
            assert_eq!(found.collect::<Vec<_>>(), expected, "{plan:?}");
            assert!(samples.of_shard(3).next().is_none());
        }
    }
}
