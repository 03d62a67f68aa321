use proptest::prelude::*;

use super::*;
use crate::epoch::Worker;

const ALL: CheckedRank = CheckedRank { index: 0, world: 1 };

fn whole_epoch(total: usize, rank: CheckedRank) -> Share {
    Share {
        total,
        rank,
        start: 0,
        batch_size: 1,
        tail: Tail::Short,
        limit: None,
    }
}

fn indices(total: usize, rank: CheckedRank, seed: Option<u64>, epoch: u32) -> Vec<usize> {
    let order = EpochOrder::new(whole_epoch(total, rank), seed, epoch);
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
    assert_eq!(indices(5, CheckedRank::new(1, 2).unwrap(), None, 9), [1, 3]);
    assert_eq!(CheckedRank::new(2, 2), None);
    assert_eq!(CheckedRank::new(0, 0), None);
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

/// The share of the first of two ranks with batches of 4, of 100 samples.
fn first_of_two(limit: Option<usize>) -> Share {
    Share {
        batch_size: 4,
        tail: Tail::Even,
        limit,
        ..whole_epoch(100, CheckedRank::new(0, 2).unwrap())
    }
}

#[test]
fn a_limit_ends_the_epoch_earlier() {
    let rank = first_of_two(Some(10));
    let reader = ReaderShare {
        rank,
        first_batch: 0,
        worker: Worker::default(),
    };
    assert_eq!((rank.sample_count(), rank.batch_count()), (10, 3));
    assert_eq!(rank.tail_counts(), TailCounts::default());
    let positions = [0, 1, 2, 3, usize::MAX].map(|batches| reader.position_after(batches));
    assert_eq!(positions, [0, 8, 16, 100, 100]);
    let complete = [0, 1, 2, 3].map(|batches| reader.is_complete_after(batches));
    assert_eq!(complete, [false, false, false, true]);
    assert_eq!(EpochOrder::new(rank, Some(1), 0).len(), 10);
}

#[test]
fn one_of_several_workers_does_not_know_the_position() {
    // 13 batches, of which the first two were read.
    let reader = |index| ReaderShare {
        rank: first_of_two(None),
        first_batch: 2,
        worker: Worker { index, count: 3 },
    };
    let numbers = |index| reader(index).batch_numbers().collect::<Vec<_>>();
    assert_eq!(
        (numbers(0), numbers(1), numbers(2)),
        (vec![2, 5, 8, 11], vec![3, 6, 9, 12], vec![4, 7, 10])
    );
    for (index, batches) in [(0, 4), (1, 4), (2, 3)] {
        let reader = reader(index);
        assert_eq!([0, 1, 4].map(|batches| reader.position_after(batches)), [0; 3]);
        assert!(reader.is_complete_after(batches) && !reader.is_complete_after(batches - 1));
    }
    let alone = ReaderShare {
        worker: Worker::default(),
        ..reader(0)
    };
    assert_eq!([0, 1].map(|batches| alone.position_after(batches)), [16, 24]);
}

proptest! {
    /// Positions grow with each batch of the rank that has the most, up to the end of the epoch.
    #[test]
    fn positions_grow_to_the_total(
        (total, start) in (0usize..200).prop_flat_map(|total| (Just(total), 0..=total)),
        world in 1usize..9, batch_size in 1usize..20, limit in prop::option::of(0usize..100),
        tail in prop::sample::select(vec![Tail::Short, Tail::Even, Tail::Drop, Tail::Pad]),
    ) {
        let of_rank = |rank| Share {
            start, batch_size, tail, limit, ..whole_epoch(total, CheckedRank::new(rank, world).unwrap())
        };
        let reader = ReaderShare { rank: of_rank(0), first_batch: 0, worker: Worker::default() };
        let batches = reader.batch_numbers().len();
        prop_assert_eq!(batches, of_rank(0).batch_count());
        prop_assert!((0..world).all(|rank| of_rank(rank).batch_count() <= batches));
        let positions: Vec<_> = (0..=batches).map(|batches| reader.position_after(batches)).collect();
        prop_assert!(positions.is_sorted_by(|a, b| a < b), "{:?}", positions);
        let end = if batches == 0 { start } else { total };
        prop_assert_eq!(positions.last(), Some(&end));
        for rank in 0..world {
            let other = ReaderShare { rank: of_rank(rank), ..reader };
            for (batches, position) in positions.iter().enumerate() {
                prop_assert_eq!(other.position_after(batches), *position, "all ranks have one position");
                prop_assert_eq!(other.is_complete_after(batches), batches > 0 && batches == positions.len() - 1);
            }
        }
    }

    #[test]
    fn shards_are_disjoint_and_cover_everything(
        len in 0usize..200, world in 1usize..9, seed: Option<u64>, epoch: u32
    ) {
        let whole = indices(len, ALL, seed, epoch);
        let mut seen = vec![None; len];
        for rank in 0..world {
            let order = EpochOrder::new(whole_epoch(len, CheckedRank::new(rank, world).unwrap()), seed, epoch);
            for nth in 0..order.len() {
                let sample = order.sample(nth);
                let position = usize::try_from(sample.position).unwrap();
                prop_assert_eq!(whole[position], sample.index, "all ranks see one order");
                prop_assert_eq!(seen[sample.index].replace(rank), None, "no sample twice");
            }
        }
        prop_assert!(seen.iter().all(Option::is_some), "no sample left out");
    }

    /// What world 1 reads in one go, any sequence of worlds reads from any positions on: the prefix of its order that the
    /// policy leaves, each position by one rank, in batches of equal number.
    #[test]
    fn any_worlds_continue_the_order_of_one_reader(
        (total, start) in (0usize..200).prop_flat_map(|total| (Just(total), 0..=total)),
        world in 1usize..9, batch_size in 1usize..20, seed: Option<u64>, epoch: u32,
        tail in prop::sample::select(vec![Tail::Short, Tail::Even, Tail::Drop, Tail::Pad]),
    ) {
        let whole = indices(total, ALL, seed, epoch);
        let shares: Vec<_> = (0..world)
            .map(|rank| Share { start, batch_size, tail, ..whole_epoch(total, CheckedRank::new(rank, world).unwrap()) })
            .collect();
        let orders: Vec<_> = shares.iter().map(|share| EpochOrder::new(*share, seed, epoch)).collect();
        let mut read: Vec<_> = orders
            .iter()
            .flat_map(|order| (0..order.len()).map(|nth| order.sample(nth)))
            .collect();
        read.sort_by_key(|sample| sample.position);
        let (kept, padding) = read.split_at(read.iter().filter(|sample| !sample.is_padding).count());
        let expected = whole[start..].iter().take(kept.len());
        prop_assert!(kept.iter().map(|sample| &sample.index).eq(expected));
        prop_assert!(padding.iter().all(|sample| sample.is_padding && sample.index < total));
        prop_assert!(read.iter().zip(start..).all(|(sample, position)| sample.position == position as u64));

        let counts = shares[0].tail_counts();
        prop_assert_eq!(counts, TailCounts { dropped: total - start - kept.len(), repeated: padding.len() });
        let lengths: Vec<_> = orders.iter().map(EpochOrder::len).collect();
        prop_assert!(tail == Tail::Short || lengths.iter().all(|len| *len == lengths[0]));
        let is_full = lengths[0] % batch_size == 0;
        let holds = match tail {
            Tail::Short => counts == TailCounts::default(),
            Tail::Even => counts.repeated == 0 && counts.dropped < world,
            Tail::Drop => counts.repeated == 0 && counts.dropped < world * batch_size && is_full,
            Tail::Pad => counts.dropped == 0 && counts.repeated < world * batch_size && is_full,
        };
        prop_assert!(holds, "{tail:?}: {counts:?}, {lengths:?}");
    }

    /// The same holds for the order of shards.
    #[test]
    fn any_worlds_continue_the_order_of_shards(
        (shards, start) in prop::collection::vec(0usize..9, 0..200)
            .prop_flat_map(|shards| { let total = shards.len(); (Just(shards), 0..=total) }),
        world in 1usize..9, buffer in 0usize..50, seed: Option<u64>, epoch: u32,
    ) {
        let by_shards = |share| EpochOrder::by_shards(shards.iter().copied(), buffer, share, seed, epoch);
        let samples = |order: &EpochOrder| -> Vec<_> { (0..order.len()).map(|nth| order.sample(nth)).collect() };
        let total = shards.len();
        let whole = samples(&by_shards(whole_epoch(total, ALL)));
        let shares = (0..world).map(|rank| Share { start, ..whole_epoch(total, CheckedRank::new(rank, world).unwrap()) });
        let mut read: Vec<_> = shares.flat_map(|share| samples(&by_shards(share))).collect();
        read.sort_by_key(|sample| sample.position);
        prop_assert_eq!(read, &whole[start..]);
    }
}
