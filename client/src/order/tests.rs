use proptest::prelude::*;

use super::*;

const ALL: Shard = Shard { rank: 0, world: 1 };

fn whole_epoch(shard: Shard) -> Share {
    Share {
        shard,
        start: 0,
        batch_size: 1,
        tail: Tail::Short,
    }
}

fn indices(total: usize, shard: Shard, seed: Option<u64>, epoch: u32) -> Vec<usize> {
    let order = EpochOrder::new(total, whole_epoch(shard), seed, epoch);
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
            let order = EpochOrder::new(len, whole_epoch(Shard::new(rank, world).unwrap()), seed, epoch);
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
            .map(|rank| Share { shard: Shard::new(rank, world).unwrap(), start, batch_size, tail })
            .collect();
        let orders: Vec<_> = shares.iter().map(|share| EpochOrder::new(total, *share, seed, epoch)).collect();
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

        let counts = shares[0].tail_counts(total);
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
        let whole = samples(&by_shards(whole_epoch(ALL)));
        let shares = (0..world).map(|rank| Share { start, ..whole_epoch(Shard::new(rank, world).unwrap()) });
        let mut read: Vec<_> = shares.flat_map(|share| samples(&by_shards(share))).collect();
        read.sort_by_key(|sample| sample.position);
        prop_assert_eq!(read, &whole[start..]);
    }
}
