//! Each sample once, in an order fixed by seed and epoch.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Mode, PushdownReader, Rank};
use pushdown_testkit::Throttle;

use super::world::{World, assert_same_rows, into_rows, keys, photos, read_batches, read_rows, reader, run};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";

#[test]
fn an_epoch_has_each_sample_once_in_the_seeded_order() {
    let world = World::with_photos(23);
    let listed: Vec<_> = world.objects.keys().map(String::as_str).collect();
    let unseeded = read_rows(world.reader(PIPELINE));
    assert_eq!(
        keys(&unseeded),
        listed,
        "without a seed the order is that of the listing"
    );

    let first = read_rows(world.reader(PIPELINE).seed(7));
    let again = read_rows(world.reader(PIPELINE).seed(7).batch_size(9));
    let next = read_rows(world.reader(PIPELINE).seed(7).epoch(1));
    // The order does not depend on the batch size.
    assert_same_rows(&first, &again);
    assert_ne!(keys(&first), listed);
    assert_ne!(keys(&first), keys(&next));
    for rows in [&first, &next] {
        let mut sorted = keys(rows);
        sorted.sort_unstable();
        assert_eq!(sorted, listed);
        assert!(
            rows.iter()
                .enumerate()
                .all(|(nth, row)| row.position == nth as u64 && listed[row.index] == &*row.key)
        );
    }
    assert_eq!(
        keys(&read_rows(world.reader(PIPELINE).seed(7).shuffle(false))),
        listed
    );
}

#[test]
fn shards_share_one_order() {
    let world = World::with_photos(11);
    let whole = read_rows(world.reader(PIPELINE).seed(3));
    let mut shards: Vec<_> = (0..3)
        .flat_map(|rank| {
            read_rows(world.reader(PIPELINE).seed(3).rank(Rank {
                index: rank,
                world: 3,
            }))
        })
        .collect();
    shards.sort_by_key(|row| row.position);
    assert_same_rows(&shards, &whole);
}

#[test]
fn a_reader_resumes_at_a_batch() {
    let world = World::with_photos(18);
    let whole = read_batches(world.reader(PIPELINE).seed(5)).unwrap();
    assert_eq!(
        whole
            .iter()
            .map(|batch| (batch.number(), batch.len()))
            .collect::<Vec<_>>(),
        [(0, 4), (1, 4), (2, 4), (3, 4), (4, 2)]
    );
    assert_same_rows(
        &read_rows(world.reader(PIPELINE).seed(5).start_at(2)),
        &into_rows(whole)[8..],
    );
    assert_eq!(
        read_batches(world.reader(PIPELINE).seed(5).start_at(5)).unwrap(),
        []
    );
    assert_eq!(
        read_batches(world.reader(PIPELINE).seed(5).start_at(usize::MAX)).unwrap(),
        []
    );
}

#[test]
fn lengths_are_known_and_a_reader_starts_another_epoch() {
    let world = World::with_photos(10);
    let second = read_rows(world.reader(PIPELINE).seed(1).epoch(1));
    run(async {
        let mut reader = world.reader(PIPELINE).seed(1).build().await.unwrap();
        assert_eq!(
            (
                reader.len(),
                reader.batches(),
                reader.is_empty(),
                reader.objects().len()
            ),
            (10, 3, false, 10)
        );
        // The epoch is abandoned while batches are in flight.
        reader.next().await.unwrap().unwrap();
        reader.set_epoch(1);
        let batches: Vec<_> = reader.by_ref().try_collect().await.unwrap();
        assert_same_rows(&into_rows(batches), &second);
        assert!(reader.next().await.is_none(), "the stream has ended");
    });
}

#[test]
fn take_returns_samples_by_index_in_the_requested_order() {
    let world = World::with_photos(8);
    let whole = read_rows(world.reader(PIPELINE));
    run(async {
        let reader = world.reader(PIPELINE).seed(1).build().await.unwrap();
        let batch = PushdownReader::take(&reader, &[6, 0, 6]).await.unwrap();
        assert_eq!(
            batch
                .rows()
                .iter()
                .map(|row| (row.position, row.index))
                .collect::<Vec<_>>(),
            [(0, 6), (1, 0), (2, 6)]
        );
        assert!(
            batch
                .rows()
                .iter()
                .all(|row| row.value == whole[row.index].value && row.key == whole[row.index].key)
        );
        let error = PushdownReader::take(&reader, &[8]).await.unwrap_err();
        assert_eq!(error.kind(), pushdown_client::ErrorKind::Config, "{error}");
        let stacked = batch.stack().unwrap().unwrap();
        assert_eq!(stacked.tensor.shape(), [3, 32, 32, 3]);
        assert!(PushdownReader::take(&reader, &[]).await.unwrap().is_empty());
    });
}

#[test]
fn every_batch_is_delivered_with_any_memory_budget() {
    let world = World::with_photos(20);
    let whole = read_rows(world.reader(PIPELINE));
    for prefetch in [0, 1, 100_000] {
        let tight = world
            .reader(PIPELINE)
            .prefetch_bytes(prefetch)
            .batch_size(3)
            .requests(8);
        assert_same_rows(&read_rows(tight), &whole);
    }
}

/// Four batches are in flight. If they all started at once, the first would arrive as late as the last.
#[test]
fn the_first_batch_does_not_wait_for_later_batches() {
    const KEY: &str = "jpeg_large.jpg";
    let world = World::with_objects(photos().into_iter().filter(|(key, _)| key == KEY).collect());
    for mode in [Mode::Plain, Mode::Pushdown] {
        let (throttle, address) = Throttle::start(world.gateway.listen()).unwrap();
        throttle.set_rate(4 << 20);
        let (first, all) = run(async {
            let builder = reader(&format!("http://{address}"), "decode | resize(short=144)")
                .keys(vec![KEY; 64])
                .mode(mode)
                .batch_size(8);
            let mut reader = builder.build().await.unwrap();
            assert!(reader.try_next().await.unwrap().is_some());
            let first = throttle.bytes_passed();
            let rest: Vec<_> = reader.try_collect().await.unwrap();
            assert_eq!(rest.len(), 7);
            (first, throttle.bytes_passed())
        });
        let batch = all / 8;
        assert!(
            first < 3 * batch,
            "{mode:?}: {first} bytes were received before the first batch of {batch} bytes was complete"
        );
    }
}

/// If two batches started at once, they would arrive together, and the first of them late. When a batch is complete, about half
/// of the next one is received, plus the bytes in flight.
#[test]
fn each_batch_is_fetched_before_the_next() {
    const KEY: &str = "jpeg_large.jpg";
    const BATCHES: usize = 10;
    let world = World::with_objects(photos().into_iter().filter(|(key, _)| key == KEY).collect());
    for mode in [Mode::Plain, Mode::Pushdown] {
        let (throttle, address) = Throttle::start(world.gateway.listen()).unwrap();
        throttle.set_rate(1 << 20);
        let passed = run(async {
            let builder = reader(&format!("http://{address}"), "decode | resize(short=144)")
                .keys(vec![KEY; 8 * BATCHES])
                .mode(mode)
                .batch_size(8);
            let mut reader = builder.build().await.unwrap();
            let mut passed = Vec::new();
            while reader.try_next().await.unwrap().is_some() {
                passed.push(throttle.bytes_passed());
            }
            passed
        });
        let batch = passed.last().unwrap() / BATCHES as u64;
        let ahead = passed
            .iter()
            .zip(1..)
            .map(|(passed, batches)| passed.saturating_sub(batches * batch));
        let ahead_percent: Vec<_> = ahead.map(|bytes| 100 * bytes / batch).collect();
        assert!(
            ahead_percent.iter().sum::<u64>() < 110 * BATCHES as u64,
            "{mode:?}: percent of a batch received ahead when each batch was complete: {ahead_percent:?}"
        );
    }
}

/// A limit selects exactly the first samples of the epoch; the last batch is shorter if needed.
#[test]
fn a_limit_is_exact_to_the_sample() {
    let world = World::with_photos(23);
    let whole = read_rows(world.reader(PIPELINE).seed(7));
    for (limit, batch_size, batches) in [
        (10, 64, 1),
        (10, 4, 3),
        (8, 4, 2),
        (1, 4, 1),
        (22, 3, 8),
        (23, 4, 6),
        (100, 64, 1),
        (0, 4, 0),
    ] {
        for mode in [Mode::Pushdown, Mode::Plain] {
            let builder = || {
                world
                    .reader(PIPELINE)
                    .seed(7)
                    .batch_size(batch_size)
                    .limit(limit)
                    .mode(mode)
            };
            run(async {
                let mut reader = builder().build().await.unwrap();
                assert_eq!((reader.len(), reader.batches()), (limit.min(23), batches));
                let read: Vec<_> = reader.by_ref().try_collect().await.unwrap();
                let (found, expected) = (into_rows(read), &whole[..limit.min(23)]);
                assert_eq!(keys(&found), keys(expected), "{limit} by {batch_size}");
                assert_eq!(reader.stats().samples, limit.min(23) as u64);
                // The limit applies to the next epoch too.
                reader.set_epoch(1);
                let next: Vec<_> = reader.by_ref().try_collect().await.unwrap();
                assert_eq!(into_rows(next).len(), limit.min(23));
            });
            let resumed = keys(&read_rows(builder().start_at(1))).len();
            assert_eq!(resumed, limit.min(23).saturating_sub(batch_size));
        }
    }
    // The limit applies to each shard.
    let shard = read_rows(
        world
            .reader(PIPELINE)
            .seed(7)
            .rank(Rank { index: 1, world: 3 })
            .limit(5),
    );
    let expected: Vec<_> = whole.iter().skip(1).step_by(3).take(5).cloned().collect();
    assert_same_rows(&shard, &expected);
}
