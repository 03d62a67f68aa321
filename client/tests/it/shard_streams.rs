//! Members in shard order: their shards are streamed, with the values of reads by ranges.

mod faults;

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Batch, Mode, PushdownReaderBuilder, Rank, Row, SampleOrder, Stats};
use pushdown_testkit::{ScriptedOrigin, recording_relay};

use super::{
    shards::ShardWorld,
    world::{into_rows, photos, read_rows, reader, run},
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";
/// Groups of members in a shard.
const GROUPS: usize = 7;
/// Samples in the shuffle buffer.
const BUFFER: usize = 20;

/// Photos of at most a few kilobytes.
fn small_photos() -> Vec<Vec<u8>> {
    photos()
        .into_values()
        .filter(|photo| photo.len() < 4_000)
        .collect()
}

/// A plain reader in shard order.
fn by_shards(endpoint: &str) -> PushdownReaderBuilder {
    reader(endpoint, PIPELINE)
        .mode(Mode::Plain)
        .order(SampleOrder::Shards { buffer: BUFFER })
        .seed(11)
}

fn read(builder: PushdownReaderBuilder) -> (Vec<Row>, Stats) {
    run(async {
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats())
    })
}

/// A relay in front of the gateway of these shards, and a plain reader of them with labels.
fn relayed(shards: &ShardWorld) -> (ScriptedOrigin, PushdownReaderBuilder) {
    let (relay, _) = recording_relay(shards.world.gateway.listen()).unwrap();
    let builder = by_shards(&format!("http://{}", relay.address()));
    (relay, builder.objects(shards.samples(&["cls"])))
}

/// The rows in the order of the data set, with these further columns.
fn expected(shards: &ShardWorld, further: &[&str]) -> Vec<Row> {
    read_rows(shards.reader(PIPELINE).objects(shards.samples(further)))
}

/// Fails at the first row whose value or label is another.
fn assert_values(rows: &[Row], expected: &[Row]) {
    for row in rows {
        let expected = &expected[row.index];
        assert_eq!(row.name().to_string(), expected.name().to_string());
        let is_same = row.value == expected.value && row.columns == expected.columns;
        assert!(
            row.value.is_ok() && is_same,
            "the values of {} differ",
            row.name()
        );
    }
}

fn indices(rows: &[Row]) -> Vec<usize> {
    rows.iter().map(|row| row.index).collect()
}

fn keys(rows: &[Row]) -> BTreeSet<&str> {
    rows.iter().map(|row| &*row.key).collect()
}

#[test]
fn each_shard_is_one_get() {
    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    let shards = ShardWorld::new(&photos, GROUPS);
    let expected = expected(&shards, &["cls"]);
    for epoch in 0..3 {
        let (relay, builder) = relayed(&shards);
        let (rows, stats) = read(builder.epoch(epoch));
        assert_values(&rows, &expected);
        let mut all = indices(&rows);
        assert!(!all.is_sorted());
        all.sort_unstable();
        assert!(all.into_iter().eq(0..photos.len()), "each sample once");
        assert_eq!(
            relay.requests().len(),
            shards.shards.len(),
            "{:?}",
            relay.requests()
        );
        assert_eq!(stats.retries, 0);
        let stored: u64 = photos.iter().map(|photo| photo.len() as u64).sum();
        assert_eq!(
            stats.value_bytes, stored,
            "what passes between entries does not count"
        );
    }
}

#[test]
fn the_order_is_the_same_in_every_mode() {
    let shards = ShardWorld::new(&small_photos(), GROUPS);
    let expected = expected(&shards, &["cls"]);
    let orders = [Mode::Pushdown, Mode::Plain, Mode::Auto].map(|mode| {
        let builder = by_shards(&shards.world.endpoint()).mode(mode);
        let (rows, _) = read(builder.objects(shards.samples(&["cls"])));
        assert_values(&rows, &expected);
        indices(&rows)
    });
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
}

#[test]
fn without_room_for_members_ranges_are_read() {
    let shards = ShardWorld::new(&small_photos(), GROUPS);
    let expected = expected(&shards, &["cls"]);
    let (_relay, builder) = relayed(&shards);
    let (streamed, _) = read(builder);
    let mut requests = Vec::new();
    // Room for none, for a few, and for many members.
    for prefetch_bytes in [0, 2 << 10, 4 << 10, 64 << 10] {
        let (relay, builder) = relayed(&shards);
        let (rows, stats) = read(builder.prefetch_bytes(prefetch_bytes));
        assert_values(&rows, &expected);
        assert_eq!(indices(&rows), indices(&streamed), "{prefetch_bytes}");
        assert_eq!((stats.samples, stats.retries), (rows.len() as u64, 0));
        requests.push(relay.requests().len());
    }
    assert!(requests[0] > shards.shards.len(), "{requests:?}");
}

#[test]
fn each_rank_reads_each_shard_by_one_get() {
    let shards = ShardWorld::new(&small_photos(), GROUPS);
    let expected = expected(&shards, &["cls"]);
    let mut all = Vec::new();
    for rank in 0..2 {
        let (relay, builder) = relayed(&shards);
        let (rows, _) = read(builder.rank(Rank {
            index: rank,
            world: 2,
        }));
        assert_values(&rows, &expected);
        assert_eq!(
            relay.requests().len(),
            keys(&rows).len(),
            "{:?}",
            relay.requests()
        );
        all.extend(indices(&rows));
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..expected.len()), "each sample once");
}

#[test]
fn a_resumed_reader_begins_at_the_first_entry_that_it_needs() {
    let shards = ShardWorld::new(&small_photos(), GROUPS);
    let expected = expected(&shards, &[]);
    let objects = || shards.samples(&[]);
    let (whole, _) = read(by_shards(&shards.world.endpoint()).objects(objects()));
    for batch in 1..4 {
        let (relay, first_bytes) = recording_relay(shards.world.gateway.listen()).unwrap();
        let builder = by_shards(&format!("http://{}", relay.address())).objects(objects());
        let (rows, stats) = read(builder.start_at(batch));
        assert_eq!(indices(&rows), indices(&whole[4 * batch..]));
        assert_values(&rows, &expected);
        assert_eq!(stats.skipped, 4 * batch as u64);
        let needed = keys(&rows).into_iter().map(|key| {
            let shard = shards.shards.iter().find(|shard| shard.key == key).unwrap();
            let of_shard = rows.iter().filter(|row| &*row.key == key);
            let photos = of_shard.map(|row| &shard.photos[row.index % GROUPS]);
            photos.map(|photo| photo.range.offset()).min().unwrap()
        });
        let mut needed: Vec<u64> = needed.collect();
        let mut begun: Vec<u64> = first_bytes.lock().iter().map(|first| *first as u64).collect();
        needed.sort_unstable();
        begun.sort_unstable();
        assert_eq!(begun, needed, "after {batch} batches");
    }
}
