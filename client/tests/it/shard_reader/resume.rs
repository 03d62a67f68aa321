//! States: exact in the same world, each sample once in others.

use futures::StreamExt as _;
use pushdown::shard::Compression;
use pushdown_client::{
    ErrorKind,
    reader::{OnError, PushdownReaderBuilder, Rank, Row, Worker},
    shards::ShardsRead,
};

use super::{
    BUFFER, COMPRESSIONS, PIPELINE, World, all_names, assert_same, by_shards, read, run, shards,
    sorted_names, world,
};

/// The rows of the first batches, and the state after them, which went through JSON.
fn read_some(builder: PushdownReaderBuilder, batches: usize) -> (Vec<Row>, ShardsRead) {
    run(async {
        let mut reader = builder.build_shards().await.unwrap();
        let mut rows = Vec::new();
        for number in 0..batches {
            let Some(batch) = reader.next().await else { break };
            let batch = batch.unwrap();
            assert_eq!(batch.number(), number);
            rows.extend(batch.into_rows());
        }
        let state = serde_json::to_string(&reader.shards_read()).unwrap();
        assert!(state.len() < 200 + 20 * BUFFER + 100 * BUFFER, "{state}");
        (rows, serde_json::from_str(&state).unwrap())
    })
}

fn reader(world: &World) -> PushdownReaderBuilder {
    by_shards(world.reader(PIPELINE)).batch_size(4)
}

#[test]
fn a_reader_goes_on_after_every_batch() {
    for compression in COMPRESSIONS {
        let world = world(&shards(), compression);
        let rank = || reader(&world).rank(Rank { index: 1, world: 2 });
        let (whole, _) = read(rank());
        for batches in 0..=whole.len().div_ceil(4) {
            let (first, state) = read_some(rank(), batches);
            let (rest, stats) = read(rank().shards_read(vec![state]));
            assert_eq!(stats.samples, rest.len() as u64);
            let positions = rest.iter().map(|row| row.position);
            assert!(positions.eq(first.len() as u64..whole.len() as u64));
            assert_same(&[first, rest].concat(), &whole);
        }
    }
}

/// Nothing is left after the last batch, before the reader is asked for another one.
#[test]
fn the_state_after_the_last_batch_is_complete() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    let count = all_names(&shards).len();
    for batch_size in [1, 4, count, count + 1] {
        for builder in [reader(&world), reader(&world).shuffle(false)] {
            let builder = || builder.clone().batch_size(batch_size);
            let last = count.div_ceil(batch_size);
            for batches in [0, 1, last.saturating_sub(1), last] {
                let (rows, state) = read_some(builder(), batches);
                assert_eq!(
                    state.is_complete(),
                    rows.len() == count,
                    "{batches} batches of {batch_size}"
                );
                let (rest, _) = read(builder().shards_read(vec![state]));
                assert_eq!(
                    rows.len() + rest.len(),
                    count,
                    "{batches} batches of {batch_size}"
                );
            }
        }
    }
}

/// Two ranks stop after different numbers of batches, three readers of one rank go on, and one reads the rest.
#[test]
fn other_worlds_read_each_sample_once() {
    let shards = shards();
    for (first, second) in [([2, 1], [1, 0, 1]), ([0, 4], [2, 1, 1]), ([1, 1], [0, 0, 0])] {
        let world = world(&shards, Compression::Gzip);
        let mut rows = Vec::new();
        let mut states = Vec::new();
        for (rank, batches) in first.into_iter().enumerate() {
            let (read, state) = read_some(
                reader(&world).rank(Rank {
                    index: rank,
                    world: 2,
                }),
                batches,
            );
            rows.extend(read);
            states.push(state);
        }
        let mut next = Vec::new();
        for (worker, batches) in second.into_iter().enumerate() {
            let builder = reader(&world)
                .worker(Worker {
                    index: worker,
                    count: 3,
                })
                .batch_size(3);
            let (read, state) = read_some(builder.shards_read(states.clone()), batches);
            rows.extend(read);
            next.push(state);
        }
        let (rest, _) = read(reader(&world).shards_read(next));
        rows.extend(rest);
        // The key of a compressed shard has another extension.
        let names: Vec<String> = sorted_names(&rows);
        let names: Vec<String> = names.iter().map(|name| name.replace(".tar.gz", ".tar")).collect();
        assert_eq!(names, all_names(&shards));
    }
}

#[test]
fn a_state_is_of_one_epoch() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    let (_, state) = read_some(reader(&world), 3);
    run(async {
        let resumed = reader(&world).shards_read(vec![state.clone()]);
        let mut resumed = resumed.build_shards().await.unwrap();
        assert_eq!(resumed.shards_read(), state);
        resumed.set_epoch(1);
        let mut rows = Vec::new();
        while let Some(batch) = resumed.next().await {
            rows.extend(batch.unwrap().into_rows());
        }
        assert_eq!(sorted_names(&rows), all_names(&shards));
        let end = resumed.shards_read();
        let ended = reader(&world).epoch(1).shards_read(vec![end]);
        assert!(ended.build_shards().await.unwrap().next().await.is_none());
    });
}

#[test]
fn states_of_other_shards_are_refused() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    let (_, state) = read_some(reader(&world).rank(Rank { index: 0, world: 2 }), 1);
    let refused = |builder: PushdownReaderBuilder| {
        let error = run(builder.build_shards()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    let missing = refused(
        reader(&world)
            .rank(Rank { index: 0, world: 3 })
            .shards_read(vec![state.clone()]),
    );
    assert!(
        missing.contains("the state of rank 1 of 2 is missing"),
        "{missing}"
    );
    let fewer = reader(&world)
        .keys(["train-000000.tar"])
        .rank(Rank { index: 0, world: 2 });
    let fewer = refused(fewer.shards_read(vec![state.clone()]));
    assert!(fewer.contains("is it a state of the same data set?"), "{fewer}");
    let objects = run(reader(&world).shards_read(vec![state]).build()).unwrap_err();
    assert!(
        objects
            .to_string()
            .contains("shards_read does not apply to objects: expected none")
    );
}

/// Its samples may be others now.
#[test]
fn a_shard_that_was_replaced_meanwhile_is_an_error_by_name() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    let builder = || reader(&world).on_error(OnError::Report);
    let (first, state) = read_some(builder(), 1);
    let key = first[0].key.to_string();
    let mut other = shards
        .iter()
        .find(|shard| shard.key == key)
        .unwrap()
        .bytes
        .clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    world.put(&key, &other);
    let (rest, stats) = read(builder().shards_read(vec![state]));
    let failed: Vec<&Row> = rest.iter().filter(|row| row.value.is_err()).collect();
    assert!(!failed.is_empty() && stats.retries == 0);
    for row in failed {
        let error = row.value.as_ref().unwrap_err();
        assert_eq!(
            (&*row.key, &row.member, &*error.code),
            (&*key, &None, "ShardReplaced")
        );
    }
    let others = |rows: &[Row]| rows.iter().filter(|row| *row.key != key).count();
    let all: usize = shards
        .iter()
        .filter(|shard| shard.key != key)
        .map(|shard| shard.photos.len())
        .sum();
    assert_eq!(others(&first) + others(&rest), all);
}
