//! Every row once in any sequence of worlds, and row groups by few ranks.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::once,
};

use proptest::prelude::*;

use super::{
    order::{RowGroupSlice, RowOrder},
    row_groups::{RowGroup, SampleRows},
    *,
};
use crate::epoch::{
    Worker,
    order::{CheckedRank, SampleOrder, Tail},
};

/// Rows of a data set in the order of an epoch.
#[derive(Debug)]
struct Epoch {
    samples: SampleRows,
    order: RowOrder,
}

impl Epoch {
    fn new(objects: &[Vec<u64>], seed: Option<u64>, epoch: u32) -> Self {
        let groups = objects.iter().enumerate();
        let groups = groups.flat_map(|(object, row_counts)| RowGroup::of_object(object, row_counts));
        Self {
            samples: SampleRows::new(groups.collect()),
            order: RowOrder::new(seed, epoch),
        }
    }

    /// The rows of a rank by row groups, in order.
    fn read(&self, left: &RowsLeft, plan: &ReadPlan) -> Vec<(usize, Vec<RowId>)> {
        let positions = left.positions(once(left.stretch(plan)));
        let slices = self.order.slices(&self.samples, &positions);
        let rows = |slice: &RowGroupSlice| {
            let group = &self.samples.groups()[slice.group];
            group.ids(&self.order.rows_of(slice, group.count()))
        };
        slices.iter().map(|slice| (slice.group, rows(slice))).collect()
    }
}

fn plan((rank, world): (usize, usize), batch_size: usize, tail: Tail) -> ReadPlan {
    ReadPlan {
        batch_size,
        rank: CheckedRank::new(rank, world).unwrap(),
        shuffle_seed: None,
        order: SampleOrder::Global,
        epoch: 0,
        start_position: 0,
        tail,
        start: 0,
        worker: Worker::default(),
        limit: None,
        prefetch_bytes: 1,
        requests: 1,
    }
}

fn ids(read: &[(usize, Vec<RowId>)]) -> Vec<RowId> {
    read.iter().flat_map(|(_, rows)| rows.clone()).collect()
}

/// Row counts of row groups, by object; none is empty.
fn objects() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let object = prop::collection::vec(prop_oneof![1u64..4, 1u64..60], 0..8);
    prop::collection::vec(object, 0..4)
}

fn rows_read() -> impl Strategy<Value = Vec<RowsRead>> {
    let read = (1usize..9, 0u64..20);
    let read = read.prop_map(|(world, rows_per_rank)| RowsRead { world, rows_per_rank });
    prop::collection::vec(read, 0..6)
}

#[test]
fn the_rows_left_never_change_for_a_state() {
    let read = [(2, 2), (3, 1)].map(|(world, rows_per_rank)| RowsRead { world, rows_per_rank });
    let positions = |read: &[RowsRead]| {
        let left = RowsLeft::new(10, read);
        left.positions(once(0..left.len()))
    };
    assert_eq!(positions(&read[..1]), [2..5, 7..10]);
    assert_eq!(positions(&read), [3..4, 7..8, 9..10]);
}

proptest! {
    /// Worlds that change after any number of batches. Stretches differ by at most one row. A row group with at most one row
    /// more than the shortest stretch is read by at most two ranks. Between the first and the last rank that read a longer
    /// one, it contains whole stretches.
    #[test]
    fn every_row_is_read_once_in_any_worlds(
        objects in objects(), seed: Option<u64>, epoch: u32,
        worlds in prop::collection::vec((1usize..9, 1usize..20, 0u64..5), 0..5),
        (last_world, last_batch_size) in (1usize..9, 1usize..20),
    ) {
        let epoch = Epoch::new(&objects, seed, epoch);
        let (mut seen, mut state) = (BTreeSet::new(), Vec::new());
        for (world, batch_size, batches) in worlds.into_iter().chain([(last_world, last_batch_size, u64::MAX)]) {
            let left = RowsLeft::new(epoch.samples.len(), &state);
            let shortest = left.len() / world as u64;
            let mut group_readers = BTreeMap::<usize, (u64, u64)>::new();
            let mut states = BTreeSet::new();
            for rank in 0..world {
                let plan = plan((rank, world), batch_size, Tail::Short);
                let read = epoch.read(&left, &plan);
                for (group, rows) in &read {
                    let (readers, group_rows) = group_readers.entry(*group).or_default();
                    *readers += 1;
                    *group_rows += rows.len() as u64;
                }
                let groups: BTreeSet<_> = read.iter().map(|(group, _)| group).collect();
                prop_assert_eq!(groups.len(), read.len(), "a rank reads a row group once");
                let rows = ids(&read);
                prop_assert!((shortest..=shortest + 1).contains(&(rows.len() as u64)));
                let consumed = batches.saturating_mul(batch_size as u64).min(left.most_rows(&plan));
                for row in rows.into_iter().take(usize::try_from(consumed).unwrap()) {
                    prop_assert!(seen.insert(row), "no row twice");
                }
                states.insert(consumed);
            }
            for (readers, rows) in group_readers.into_values() {
                prop_assert!(readers <= 2 || (readers - 2) * shortest + 2 <= rows, "{readers} ranks read {rows} rows");
            }
            prop_assert_eq!(states.len(), 1, "all ranks have one state");
            for rows_per_rank in states {
                RowsRead { world, rows_per_rank }.append_to(&mut state);
            }
        }
        prop_assert_eq!(seen.len() as u64, epoch.samples.len(), "no row left out");
    }

    #[test]
    fn merged_entries_leave_the_same_rows(total in 0u64..300, read in rows_read()) {
        let merged = RowsRead::merge(&read).unwrap();
        prop_assert_eq!(RowsLeft::new(total, &read), RowsLeft::new(total, &merged));
    }

    /// After a resume in the same world, a rank reads what it would have read without.
    #[test]
    fn the_same_world_continues_its_stretches(
        objects in objects(), seed: Option<u64>, read in rows_read(), world in 1usize..9, rows_per_rank in 0u64..20,
    ) {
        let epoch = Epoch::new(&objects, seed, 0);
        let state = [&read[..], &[RowsRead { world, rows_per_rank }]].concat();
        let before = RowsLeft::new(epoch.samples.len(), &read);
        let after = RowsLeft::new(epoch.samples.len(), &state);
        for rank in 0..world {
            let plan = plan((rank, world), 4, Tail::Short);
            let whole = ids(&epoch.read(&before, &plan));
            let rest = whole.get(usize::try_from(rows_per_rank).unwrap()..).unwrap_or_default();
            prop_assert_eq!(ids(&epoch.read(&after, &plan)), rest);
        }
    }

    #[test]
    fn tail_policies_make_ranks_equal(
        objects in objects(), seed: Option<u64>, read in rows_read(), world in 1usize..9, batch_size in 1usize..20,
        tail in prop::sample::select(vec![Tail::Even, Tail::Drop]),
    ) {
        let epoch = Epoch::new(&objects, seed, 0);
        let left = RowsLeft::new(epoch.samples.len(), &read);
        let mut seen = BTreeSet::new();
        let mut counts = None;
        for rank in 0..world {
            let plan = plan((rank, world), batch_size, tail);
            let rows = ids(&epoch.read(&left, &plan));
            prop_assert_eq!(rows.len() as u64, left.most_rows(&plan));
            prop_assert!(tail == Tail::Even || rows.len().is_multiple_of(batch_size));
            let stretch = ReadPlan { tail: Tail::Short, ..plan };
            prop_assert!(ids(&epoch.read(&left, &stretch)).starts_with(&rows));
            seen.extend(rows);
            counts = Some(left.tail_counts(&plan));
        }
        let dropped = usize::try_from(left.len()).unwrap() - seen.len();
        prop_assert_eq!(counts, Some(TailCounts { dropped, repeated: 0 }));
        let bound = if tail == Tail::Even { world } else { world * batch_size };
        prop_assert!(dropped < bound);
    }
}
