//! Values, order and columns: those of indexed reading.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::shard::Compression;
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, OnError, Rank, Row, SampleOrder, Worker},
    shards::ColumnSelection,
};
use pushdown_testkit::recording_relay;

use super::{
    super::{
        shards::{ShardWorld, pack},
        world::{BUCKET, into_rows, photos, read_rows, reader, run},
    },
    BUFFER, COMPRESSIONS, GROUPS, PIPELINE, all_names, assert_same, by_shards, read, shards, sorted_names,
    world,
};

const RANDOM: &str = "decode | random_resized_crop(24) | flip_h | to_float";

/// The rows of an indexed reader in the same order.
fn indexed(pipeline: &str, epoch: u32) -> Vec<Row> {
    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    let shards = ShardWorld::new(&photos, GROUPS);
    let builder = shards
        .reader(pipeline)
        .objects(shards.samples(&["cls", "json"]))
        .order(SampleOrder::Shards { buffer: BUFFER });
    read_rows(builder.mode(Mode::Plain).seed(11).epoch(epoch))
}

#[test]
fn a_single_reader_equals_an_indexed_one() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    for epoch in [0, 3] {
        let expected = indexed(RANDOM, epoch);
        let (rows, stats) = read(by_shards(world.reader(RANDOM)).epoch(epoch));
        assert_same(&rows, &expected);
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!((row.position, row.stage), (expected.position, 0));
            assert_eq!(*row.key, *shards[row.index].key);
        }
        let stored: usize = photos().values().map(Vec::len).sum();
        assert_eq!((stats.samples, stats.errors), (rows.len() as u64, 0));
        assert_eq!(
            (stats.value_bytes, stats.stored_bytes),
            (stored as u64, stored as u64)
        );
    }
}

#[test]
fn compressed_shards_have_the_same_samples() {
    let shards = shards();
    let expected = indexed(PIPELINE, 0);
    for compression in COMPRESSIONS {
        let world = world(&shards, compression);
        let (rows, _) = read(by_shards(world.reader(PIPELINE)));
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row.member, expected.member, "{compression:?}");
            assert!(row.value == expected.value && row.columns == expected.columns);
        }
    }
}

#[test]
fn readers_share_the_shards() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    for (ranks, workers) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] {
        let mut names = Vec::new();
        let mut keys = BTreeSet::new();
        for (rank, worker) in (0..ranks).flat_map(|rank| (0..workers).map(move |worker| (rank, worker))) {
            let builder = by_shards(world.reader(PIPELINE));
            let (rows, _) = read(
                builder
                    .rank(Rank {
                        index: rank,
                        world: ranks,
                    })
                    .worker(Worker {
                        index: worker,
                        count: workers,
                    }),
            );
            let own: BTreeSet<_> = rows.iter().map(|row| Arc::clone(&row.key)).collect();
            assert!(
                own.into_iter().all(|key| keys.insert(key)),
                "each shard by one reader"
            );
            names.extend(sorted_names(&rows));
        }
        names.sort_unstable();
        assert_eq!(names, all_names(&shards), "{ranks} ranks of {workers} workers");
    }
}

#[test]
fn without_a_seed_the_order_is_that_of_the_shards() {
    let shards = shards();
    let world = world(&shards, Compression::Zstd);
    let (rows, _) = read(world.reader(PIPELINE).batch_size(7));
    let members = shards.iter().flat_map(|shard| &shard.photos);
    assert!(
        members
            .map(|member| Some(&*member.name))
            .eq(rows.iter().map(|row| row.member.as_deref()))
    );
    assert!(rows.iter().map(|row| row.position).eq(0..rows.len() as u64));
    let (first, _) = read(world.reader(PIPELINE).batch_size(7).limit(9));
    assert_same(&first, &rows[..9]);
}

#[test]
fn epochs_have_different_orders() {
    let shards = shards();
    let world = world(&shards, Compression::Gzip);
    let (second, _) = read(by_shards(world.reader(PIPELINE)).epoch(1));
    run(async {
        let mut reader = by_shards(world.reader(PIPELINE)).build_shards().await.unwrap();
        let first: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        reader.set_epoch(1);
        let next: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(next.iter().map(Batch::number).max(), Some(next.len() - 1));
        let (first, next) = (into_rows(first), into_rows(next));
        assert_same(&next, &second);
        assert_eq!(sorted_names(&first), sorted_names(&next));
        assert!(first.iter().zip(&next).any(|(a, b)| a.member != b.member));
        reader.close().await;
    });
}

#[test]
fn each_shard_is_one_request() {
    let shards = shards();
    let world = world(&shards, Compression::None);
    let (relay, _) = recording_relay(world.gateway.listen()).unwrap();
    let keys = shards.iter().map(|shard| &shard.key);
    let builder = reader(&format!("http://{}", relay.address()), PIPELINE).keys(keys);
    let (rows, _) = read(by_shards(builder));
    assert_eq!(sorted_names(&rows), all_names(&shards));
    let requests = relay.requests();
    assert_eq!(requests.len(), shards.len());
    let is_plain = |head: &String| {
        head.starts_with(&format!("GET /{BUCKET}/train-")) && !head.contains("x-pushdown-pipeline")
    };
    assert!(requests.iter().all(is_plain), "{requests:?}");
}

#[test]
fn a_bad_member_is_a_row_by_name() {
    let mut photos: Vec<Vec<u8>> = photos().into_values().take(6).collect();
    photos[4] = b"no photo".to_vec();
    let shards = pack(&photos, 3);
    let world = world(&shards, Compression::Zstd);
    let builder = || by_shards(world.reader(PIPELINE)).batch_size(6);
    let (rows, stats) = read(builder().on_error(OnError::Report));
    assert_eq!((stats.samples, stats.errors), (5, 1));
    let failed = rows.iter().find(|row| row.value.is_err()).unwrap();
    assert_eq!(failed.name().to_string(), "train-000001.tar.zst member 1/001.jpg");
    assert_eq!(failed.columns[0].as_deref(), Some(&b"4"[..]));
    run(async {
        let mut reader = builder().build_shards().await.unwrap();
        let before = reader.shards_read();
        let error = reader.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample);
        assert!(
            error
                .to_string()
                .contains("train-000001.tar.zst member 1/001.jpg"),
            "{error}"
        );
        assert_eq!(reader.shards_read(), before, "the state is that before the batch");
        assert!(reader.next().await.is_none());
    });
}

/// It is certain at the end of an epoch that one reader has read alone.
#[test]
fn a_further_column_that_no_sample_has_is_an_error_that_lists_extensions() {
    let shards = shards();
    let world = world(&shards, Compression::Gzip);
    let builder = |further: &[&str]| {
        by_shards(world.reader(PIPELINE)).columns(ColumnSelection {
            value: None,
            further: further.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    run(async {
        let mut reader = builder(&["cls", "txt"]).build_shards().await.unwrap();
        let mut samples = 0;
        let error = loop {
            match reader.next().await.unwrap() {
                Ok(batch) => samples += batch.into_rows().len(),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (samples, error.kind()),
            (all_names(&shards).len(), ErrorKind::Config)
        );
        assert!(
            error
                .to_string()
                .ends_with("the extension txt: found cls, jpg, json"),
            "{error}"
        );
        assert!(reader.next().await.is_none());
    });
    // What others read may have it.
    for builder in [
        builder(&["txt"]).rank(Rank { index: 1, world: 2 }),
        builder(&["txt"]).limit(3),
    ] {
        let (rows, _) = read(builder);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.columns == [None]));
    }
}

#[test]
fn shards_without_a_value_are_an_error_that_lists_extensions() {
    let world = world(&shards()[..2], Compression::None);
    let columns = ColumnSelection {
        value: Some("gif".to_owned()),
        further: Vec::new(),
    };
    run(async {
        let mut reader = by_shards(world.reader(PIPELINE))
            .columns(columns)
            .build_shards()
            .await
            .unwrap();
        let error = reader.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().ends_with("found cls, jpg, json"), "{error}");
    });
}
