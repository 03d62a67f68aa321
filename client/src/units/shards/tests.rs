//! Every sample once in any sequence of worlds, and the same order after a resume in the same world.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{
    shuffle::ShuffleBuffer,
    state::{Progress, SampleId, ShardTask},
    *,
};
use crate::epoch::{
    Rank, Worker,
    order::{BufferDraws, CheckedRank, EpochOrder, Share, Tail, shard_order},
};

/// An epoch of shards with these numbers of samples.
#[derive(Debug, Clone)]
struct EpochOfShards {
    counts: Vec<u32>,
    seed: Option<u64>,
    epoch: u32,
}

/// What a reader does: its place, its buffer, and the samples after which it stops.
#[derive(Debug, Clone, Copy)]
struct Run {
    place: ReaderPlace,
    buffer: usize,
    samples: usize,
}

impl EpochOfShards {
    fn shards(&self) -> u32 {
        u32::try_from(self.counts.len()).unwrap()
    }

    /// Reads from states, as readers do. Returns shard and number of each sample, and the state.
    fn read(&self, states: &[ShardsRead], run: Run) -> (Vec<(u32, u32)>, ShardsRead) {
        let order = shard_order(self.shards(), self.seed, self.epoch);
        let mut checkpoint = Checkpoint::resume(states, run.place, run.buffer, self.shards()).unwrap();
        let progress = checkpoint.progress.clone();
        let reader = u32::try_from(run.place.number()).unwrap();
        let draws = BufferDraws::new(self.seed, self.epoch, reader, progress.words);
        let mut buffer = ShuffleBuffer::new(run.buffer, draws, progress);
        let tasks: Vec<ShardTask> = checkpoint.tasks(run.place).collect();
        // `None` at the end of a shard.
        let mut next = tasks.iter().flat_map(|ShardTask { number: task, shard }| {
            let count = self.counts[order[shard.position as usize] as usize];
            let samples = (0..count).filter(move |number| shard.samples.contains(*number));
            let samples = samples.map(move |number| (*task, Some(SampleId::from((shard.position, number)))));
            samples.chain([(*task, None)])
        });
        let mut read = Vec::new();
        while read.len() < run.samples {
            while buffer.has_room()
                && let Some((task, sample)) = next.next()
            {
                match sample {
                    Some(id) => buffer.add(task, id, 1, id),
                    None => buffer.end_shard(task),
                }
            }
            assert!(!buffer.is_missing_samples());
            let Some((id, sample)) = buffer.draw() else { break };
            assert_eq!(id, sample);
            read.push((order[id.position as usize], id.number));
        }
        checkpoint.progress = buffer.progress();
        let state = ShardsRead::new(run.place, run.buffer, checkpoint);
        let text = serde_json::to_string(&state).unwrap();
        (read, serde_json::from_str(&text).unwrap())
    }

    fn samples(&self) -> usize {
        self.counts.iter().sum::<u32>() as usize
    }
}

fn place(number: usize, world: usize, workers: usize) -> ReaderPlace {
    let rank = Rank {
        index: number / workers,
        world,
    };
    let worker = Worker {
        index: number % workers,
        count: workers,
    };
    ReaderPlace::new(rank, worker).unwrap()
}

fn epochs() -> impl Strategy<Value = EpochOfShards> {
    let counts = prop::collection::vec(prop_oneof![Just(0_u32), 0_u32..4, 0_u32..30], 0..12);
    (counts, any::<Option<u64>>(), any::<u32>()).prop_map(|(counts, seed, epoch)| EpochOfShards {
        counts,
        seed,
        epoch,
    })
}

/// Workers of a rank, ranks, the buffer, and the samples after which each reader stops.
type World = (usize, usize, usize, Vec<usize>);

fn worlds() -> impl Strategy<Value = Vec<World>> {
    let stops = prop::collection::vec(0_usize..40, 12);
    prop::collection::vec((1_usize..4, 1_usize..5, 0_usize..9, stops), 0..5)
}

/// Reads in these worlds, one after the other. Returns all samples and the states of the last world.
fn read_in(epoch: &EpochOfShards, worlds: &[World]) -> (Vec<(u32, u32)>, Vec<ShardsRead>) {
    let (mut all, mut states) = (Vec::new(), Vec::new());
    for (workers, world, buffer, stops) in worlds {
        let reads = (0..workers * world).map(|number| {
            let run = Run {
                place: place(number, *world, *workers),
                buffer: *buffer,
                samples: stops[number],
            };
            epoch.read(&states, run)
        });
        let (samples, next): (Vec<_>, Vec<_>) = reads.unzip();
        all.extend(samples.concat());
        states = next;
    }
    (all, states)
}

proptest! {
    #[test]
    fn every_sample_is_read_once_in_any_worlds(epoch in epochs(), worlds in worlds(), last in (1_usize..4, 1_usize..5)) {
        let (workers, world) = last;
        let to_the_end = (workers, world, 3, vec![usize::MAX; 12]);
        let (mut all, states) = read_in(&epoch, &[worlds, vec![to_the_end]].concat());
        prop_assert_eq!(all.len(), epoch.samples(), "no sample twice");
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), epoch.samples(), "no sample left out");
        let run = Run { place: place(0, 1, 1), buffer: 7, samples: usize::MAX };
        prop_assert!(epoch.read(&states, run).0.is_empty(), "nothing is left");
    }

    /// With its own state alone.
    #[test]
    fn the_same_world_goes_on_in_the_same_order(
        epoch in epochs(), worlds in worlds(), (workers, world, buffer) in (1_usize..4, 1_usize..5, 0_usize..9),
        first in 0_usize..40, second in 0_usize..40,
    ) {
        let (_, states) = read_in(&epoch, &worlds);
        for number in 0..workers * world {
            let run = |samples| Run { place: place(number, world, workers), buffer, samples };
            let (whole, end) = epoch.read(&states, run(usize::MAX));
            let (mut parts, state) = epoch.read(&states, run(first));
            let (next, state) = epoch.read(&[state], run(second));
            parts.extend(next);
            let (rest, last) = epoch.read(&[state], run(usize::MAX));
            parts.extend(rest);
            prop_assert_eq!(parts, whole);
            for state in [last, end] {
                prop_assert!(epoch.read(&[state], run(usize::MAX)).0.is_empty(), "nothing is left");
            }
        }
    }

    #[test]
    fn a_single_reader_has_the_order_of_an_index(
        counts in prop::collection::vec(1_u32..20, 0..9), buffer in 0_usize..30, seed: u64, epoch: u32,
    ) {
        let epoch = EpochOfShards { counts, seed: Some(seed), epoch };
        let run = Run { place: place(0, 1, 1), buffer, samples: usize::MAX };
        let samples: Vec<(u32, u32)> = (0..).zip(&epoch.counts)
            .flat_map(|(shard, count)| (0..*count).map(move |number| (shard, number)))
            .collect();
        let shards: Vec<usize> = samples.iter().map(|(shard, _)| *shard as usize).collect();
        let share = Share {
            total: shards.len(), rank: CheckedRank::new(0, 1).unwrap(), start: 0, batch_size: 1, tail: Tail::Short, limit: None,
        };
        let order = EpochOrder::by_shards(shards.into_iter(), buffer, share, Some(seed), epoch.epoch);
        let expected: Vec<_> = (0..order.len()).map(|nth| samples[order.sample(nth).index]).collect();
        prop_assert_eq!(epoch.read(&[], run).0, expected);
    }
}

#[test]
fn ranks_read_whole_shards_and_all_of_them() {
    let epoch = EpochOfShards {
        counts: vec![5; 8],
        seed: Some(3),
        epoch: 1,
    };
    let mut seen = BTreeSet::new();
    for rank in 0..3 {
        let run = Run {
            place: place(rank, 3, 1),
            buffer: 6,
            samples: usize::MAX,
        };
        let (read, _) = epoch.read(&[], run);
        let shards: BTreeSet<u32> = read.iter().map(|(shard, _)| *shard).collect();
        assert_eq!(read.len(), 5 * shards.len());
        assert!(shards.into_iter().all(|shard| seen.insert(shard)));
    }
    assert_eq!(seen.len(), 8);
}

#[test]
fn the_state_never_changes_its_form() {
    let epoch = EpochOfShards {
        counts: vec![4; 6],
        seed: Some(7),
        epoch: 0,
    };
    let run = Run {
        place: place(1, 2, 1),
        buffer: 3,
        samples: 5,
    };
    let (_, state) = epoch.read(&[], run);
    let json: serde_json::Value = serde_json::to_value(&state).unwrap();
    assert_eq!(
        json["place"],
        serde_json::json!({"world": 2, "rank": 1, "every": 1, "turn": 0})
    );
    assert_eq!(json["buffer"], 3);
    assert_eq!(
        json["checkpoint"]["begin"],
        serde_json::json!({"whole": [[0, 6]]})
    );
    let progress = &json["checkpoint"]["progress"];
    assert_eq!((&progress["samples"], &progress["begun"]), (&5.into(), &2.into()));
    // Seven samples have entered: four of the first shard of this rank, at position 1, and three of the second, at position 3.
    assert_eq!(progress["next"], serde_json::json!([3, 3]));
    assert_eq!(progress["held"].as_array().map(Vec::len), Some(2));
    // Two words for each draw.
    assert_eq!(progress["words"], 10);
}

#[test]
fn states_that_cannot_be_are_refused() {
    let epoch = EpochOfShards {
        counts: vec![4; 6],
        seed: Some(7),
        epoch: 0,
    };
    let states: Vec<ShardsRead> = (0..2)
        .map(|rank| {
            let place = place(rank, 2, 1);
            let run = Run {
                place,
                buffer: 3,
                samples: 5,
            };
            epoch.read(&[], run).1
        })
        .collect();
    let refused = |states: &[ShardsRead], world, shards| {
        let resumed = Checkpoint::resume(states, place(0, world, 1), 3, shards);
        resumed.unwrap_err().to_string()
    };
    assert!(refused(&states[1..], 2, 6).contains("the state of rank 0 of 2 is missing"));
    assert!(refused(&states[..1], 3, 6).contains("the state of rank 1 of 2 is missing"));
    assert!(refused(&[states[0].clone(), states[0].clone()], 3, 6).contains("each once"));
    assert!(refused(&states, 2, 5).contains("samples of 5 shards"));
    let changed = |member: &str, value: serde_json::Value| {
        let mut json = serde_json::to_value(&states[0]).unwrap();
        json["checkpoint"]["progress"][member] = value;
        refused(&[serde_json::from_value(json).unwrap()], 2, 6)
    };
    for (member, value, expected) in [
        ("begun", serde_json::json!(4), "at most 3 shards"),
        ("begun", serde_json::json!(0), "at most 3 shards"),
        ("next", serde_json::json!([4, 3]), "at most 3 shards"),
        ("held", serde_json::json!([[1, 0]]), "a buffer of samples"),
        ("held", serde_json::json!([[2, 3]]), "a buffer of samples"),
        ("held", serde_json::json!([[0, 0], [0, 0]]), "a buffer of samples"),
        (
            "held",
            serde_json::json!([[0, 0], [0, 1], [0, 2], [0, 3]]),
            "a buffer of samples",
        ),
        ("free", serde_json::json!(9), "a free place"),
    ] {
        let refused = changed(member, value);
        assert!(refused.contains(expected), "{member}: {refused}");
    }
    let start = Checkpoint::of_epoch(6);
    assert_eq!(start.progress, Progress::default());
    assert_eq!(Checkpoint::resume(&[], place(0, 2, 1), 3, 6).unwrap(), start);
}
