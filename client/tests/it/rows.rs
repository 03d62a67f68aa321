//! Rows of Parquet objects as samples: each exactly once, in an order fixed by seed and epoch, for every split.

use std::collections::BTreeMap;

use arrow_array::{Array as _, Int64Array, RecordBatch, cast::AsArray as _, types::Int64Type};
use futures::TryStreamExt as _;
use pushdown_client::{
    ErrorKind,
    reader::{Mode, PushdownReaderBuilder, Rank, Split},
    table::{RowGroupSamples, RowId, TableBatch, TableReader},
};
use pushdown_testkit::{Parquet, recording_relay};

use super::world::{Objects, World, photos};

pub(super) const PIPELINE: &str = "select(columns=[n, text], where='n % 3 = 0 and n >= 200')";

/// Three objects of 1000, 2500 and 10 rows, and three objects outside of the data set.
pub(super) fn world() -> World {
    let file = |rows, row_group| {
        let parquet = Parquet {
            rows,
            noise: 2,
            row_group,
        };
        parquet.write().unwrap()
    };
    World::with_objects(Objects::from([
        ("t/a.parquet".to_owned(), file(1000, 300)),
        ("t/b.parquet".to_owned(), file(2500, 1000)),
        ("t/c.parquet".to_owned(), file(10, 10)),
        (
            "other/d.parquet".to_owned(),
            Parquet {
                rows: 10,
                noise: 1,
                row_group: 10,
            }
            .write()
            .unwrap(),
        ),
        ("other/e.parquet".to_owned(), file(10, 10)),
        ("text/e.csv".to_owned(), b"n,text\n1,a\n".to_vec()),
    ]))
}

pub(super) fn reader(world: &World, pipeline: &str) -> PushdownReaderBuilder {
    world.reader(pipeline).prefix("t/").batch_size(64).seed(7)
}

pub(super) async fn read_all(mut reader: TableReader) -> Vec<TableBatch> {
    let mut batches = Vec::new();
    while let Some(batch) = reader.try_next().await.unwrap() {
        batches.push(batch);
    }
    let rows: u64 = batches.iter().map(|batch| batch.ids.len() as u64).sum();
    assert_eq!((rows, batches.len() as u64), (reader.len(), reader.batches()));
    assert_eq!(reader.stats().samples, rows);
    batches
}

pub(super) fn ids(batches: &[TableBatch]) -> Vec<RowId> {
    batches.iter().flat_map(|batch| batch.ids.clone()).collect()
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> &'a Int64Array {
    rows.column_by_name(name).unwrap().as_primitive::<Int64Type>()
}

/// The rows of an object with `rows` rows that match the condition.
pub(super) fn expected(object: usize, rows: u64) -> impl Iterator<Item = RowId> {
    let matching = (200..rows).filter(|row| row % 3 == 0);
    matching.map(move |row| RowId { object, row })
}

#[tokio::test]
async fn every_row_is_read_once_for_every_split() {
    let world = world();
    let mut order_by_epoch = BTreeMap::new();
    for epoch in [0, 1] {
        let builder = || reader(&world, PIPELINE).epoch(epoch);
        let splits = [
            ("gateway", builder().split(Split::Full)),
            ("host", builder().split(Split::At(0))),
            ("plain", builder().mode(Mode::Plain)),
            ("default", builder()),
        ];
        for (name, reader_builder) in splits {
            let reader = reader_builder.build_table().await.unwrap();
            assert_eq!(reader.schema().fields().len(), 2);
            let batches = read_all(reader).await;
            for batch in &batches {
                let n = column(&batch.rows, "n");
                assert_eq!(n.null_count(), 0);
                for (id, n) in batch.ids.iter().zip(n.values()) {
                    assert_eq!(id.row, u64::try_from(*n).unwrap(), "{name}");
                }
            }
            let mut found = ids(&batches);
            let order = order_by_epoch.entry(epoch).or_insert_with(|| found.clone());
            assert_eq!(&found, order, "{name}: the order differs");
            found.sort_unstable();
            let all: Vec<_> = expected(0, 1000).chain(expected(1, 2500)).collect();
            assert_eq!(found, all, "{name}: each row once");
        }
    }
    assert_ne!(order_by_epoch[&0], order_by_epoch[&1]);
    assert!(!order_by_epoch[&0].is_sorted());
}

#[tokio::test]
async fn row_groups_are_those_with_samples() {
    let world = world();
    let reader = reader(&world, PIPELINE).build_table().await.unwrap();
    let groups = |object: usize, rows: u64, step: usize| {
        let starts = (0..rows).step_by(step);
        starts.map(move |start| {
            let rows_of_group = start..(start + step as u64).min(rows);
            let matching = expected(object, rows).filter(|id| rows_of_group.contains(&id.row));
            RowGroupSamples {
                object,
                first_row: if object == 0 { 0 } else { 1000 },
                samples: matching.count() as u64,
            }
        })
    };
    let all: Vec<_> = groups(0, 1000, 300).chain(groups(1, 2500, 1000)).collect();
    assert_eq!(reader.row_groups(), all, "the third object has no sample");
    assert_eq!(all.iter().map(|group| group.samples).sum::<u64>(), reader.len());
}

#[tokio::test]
async fn ranks_share_the_rows_and_resume_at_a_batch() {
    let world = world();
    let whole = ids(&read_all(reader(&world, PIPELINE).build_table().await.unwrap()).await);
    let mut together = Vec::new();
    for rank in 0..3 {
        let shard = reader(&world, PIPELINE).rank(Rank {
            index: rank,
            world: 3,
        });
        let batches = read_all(shard.clone().build_table().await.unwrap()).await;
        let part = ids(&batches);
        assert!(part.len().abs_diff(whole.len() / 3) <= 1, "{}", part.len());
        let mut resumed = shard.clone().start_at(2).build_table().await.unwrap();
        let third = resumed.try_next().await.unwrap().unwrap();
        assert_eq!(third, batches[2]);
        assert_eq!(resumed.stats().skipped, 128);
        resumed.set_epoch(0);
        assert_eq!(resumed.try_next().await.unwrap().unwrap(), batches[0]);
        together.extend(part);
    }
    assert_eq!(together, whole);
}

#[tokio::test]
async fn without_a_seed_rows_are_in_the_order_of_the_data_set() {
    let world = world();
    let builder = world.reader("select(columns=[n])").prefix("t/").batch_size(1000);
    let batches = read_all(builder.build_table().await.unwrap()).await;
    let found = ids(&batches);
    assert!(found.is_sorted());
    assert_eq!(found.len(), 3510);
    assert_eq!(
        batches
            .iter()
            .map(|batch| batch.rows.num_rows())
            .collect::<Vec<_>>(),
        [1000, 1000, 1000, 510]
    );
}

/// A projection has fewer bytes as stored columns; a selective filter has fewer bytes as rows.
#[tokio::test]
async fn the_split_that_transfers_fewer_bytes_is_chosen() {
    let world = world();
    for (pipeline, stage) in [
        ("select(columns=[text])", 0),
        ("select(columns=[c000], where='n = 5')", 1),
    ] {
        let reader = reader(&world, pipeline).build_table().await.unwrap();
        assert_eq!(reader.stage(), stage, "{pipeline}");
    }
}

/// The texts are 200 times as long as their statistics suggest. The reader notices it from the first rows.
#[tokio::test]
async fn rows_larger_than_estimated_are_computed_locally() {
    let file = Parquet::without_text_lengths(40_000, 1000).unwrap();
    let stored = file.len() as u64;
    let world = World::with_objects(Objects::from([("t.parquet".to_owned(), file)]));
    let pipeline = "select(where='n < 0.1')";
    let read = async |split| {
        let builder = world.reader(pipeline).requests(1).prefetch_bytes(1).split(split);
        let mut reader = builder.build_table().await.unwrap();
        let (stage, mut rows) = (reader.stage(), Vec::new());
        while let Some(batch) = reader.try_next().await.unwrap() {
            rows.push(batch.rows);
        }
        (stage, rows, reader.stats().wire_bytes_down)
    };
    let (stage, rows, transferred) = read(Split::Smallest).await;
    assert_eq!(stage, 1, "the rows are estimated to be few");
    assert_eq!(rows, read(Split::At(0)).await.1);
    let all: usize = rows.iter().map(RecordBatch::get_array_memory_size).sum();
    assert!(all as u64 > 10 * stored, "{all} bytes of rows, {stored} stored");
    // Row positions, the first row groups, and footers.
    assert!(transferred < 3 * stored, "{transferred} of {stored}");
}

/// A tensor of 602 KB is not transferred for a photo of 100 KB, but a tensor of 3 KB is.
#[tokio::test]
async fn values_of_each_transfer_at_most_the_bytes_of_the_object() {
    let photos = photos();
    let photos: Vec<&[u8]> = photos.values().map(Vec::as_slice).collect();
    let file = Parquet::of_photos(&photos, 20).unwrap();
    let stored = file.len() as u64;
    let world = World::with_objects(Objects::from([("p.parquet".to_owned(), file)]));
    for (each, stage) in [
        ("decode | resize(224, 224) | to_float", 0),
        ("decode | resize(32, 32) | to_tensor", 2),
        ("decode", 0),
    ] {
        let pipeline = format!("select | each(photo: {each})");
        let reader = world.reader(&pipeline).build_table().await.unwrap();
        assert_eq!(reader.stage(), stage, "{each}");
        let mut reader = reader;
        while reader.try_next().await.unwrap().is_some() {}
        let transferred = reader.stats().wire_bytes_down;
        assert!(
            transferred * 10 < stored * 11 + 400_000,
            "{each}: {transferred} of {stored}"
        );
    }
}

/// All row groups share the footer that was read first.
#[tokio::test]
async fn a_long_footer_is_read_once() {
    let file = Parquet {
        rows: 400,
        noise: 600,
        row_group: 50,
    };
    let file = file.write().unwrap();
    let length = file[file.len() - 8..][..4].try_into().unwrap();
    let footer = file.len() - 8 - u32::from_le_bytes(length) as usize;
    assert!(
        file.len() - footer > 100_000,
        "expected a footer longer than the first read"
    );
    let world = World::with_objects(Objects::from([("t.parquet".to_owned(), file)]));
    let (relay, first_bytes) = recording_relay(world.gateway.listen()).unwrap();
    let builder = super::world::reader(&format!("http://{}", relay.address()), "select(columns=[n])");
    let reader = builder.split(Split::At(0)).build_table().await.unwrap();
    assert_eq!(read_all(reader).await.len(), 100);
    let first_bytes = first_bytes.lock();
    let footers = first_bytes.iter().filter(|first| **first == footer).count();
    assert_eq!(footers, 1, "{first_bytes:?}");
    assert!(first_bytes.len() >= 8, "{first_bytes:?}");
}

#[tokio::test]
async fn each_runs_its_pipeline_over_a_column_of_photos() {
    let photos: Vec<_> = photos().into_values().take(12).collect();
    let mut photos: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    photos[3] = b"no photo";
    let file = Parquet::of_photos(&photos, 5).unwrap();
    let world = World::with_objects(Objects::from([("p.parquet".to_owned(), file)]));
    let pipeline = "select(row_number=at) | each(photo: decode | random_resized_crop(32) | flip_h)";
    let mut splits = Vec::new();
    for split in [Split::At(0), Split::At(1), Split::Full] {
        let builder = world.reader(pipeline).seed(3).batch_size(5).split(split);
        let batches = read_all(builder.build_table().await.unwrap()).await;
        splits.push(batches);
    }
    assert_eq!(splits[0], splits[1]);
    assert_eq!(splits[0], splits[2]);
    let failed = |batch: &TableBatch| {
        let errors = batch
            .rows
            .column_by_name("photo_error")
            .unwrap()
            .as_string::<i32>();
        let row_and_is_null = |row: usize| (batch.ids[row].row, batch.rows["photo"].is_null(row));
        (0..errors.len())
            .filter(|row| errors.is_valid(*row))
            .map(row_and_is_null)
            .collect::<Vec<_>>()
    };
    assert_eq!(splits[0].iter().flat_map(failed).collect::<Vec<_>>(), [(3, true)]);
}

#[tokio::test]
async fn unsuitable_pipelines_are_refused_with_the_reason() {
    let world = world();
    let mut texts = Vec::new();
    for (pipeline, prefix) in [
        ("select(limit=5)", "t/"),
        ("select(rows=[0, 5])", "t/"),
        ("select | sample(0.5, 1)", "t/"),
        ("sql('select n from object')", "t/"),
        ("decode", "t/"),
        ("select(columns=[m])", "t/"),
        ("select", "none/"),
        ("select", "other/"),
        ("select", ""),
        ("select", "text/"),
    ] {
        let error = world
            .reader(pipeline)
            .prefix(prefix)
            .build_table()
            .await
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Config | ErrorKind::Sample),
            "{error}"
        );
        texts.push(error.to_string());
    }
    insta::assert_snapshot!(texts.join("\n"));
}

#[tokio::test]
async fn a_replaced_object_ends_the_stream() {
    for split in [Split::At(0), Split::Full] {
        let world = world();
        let mut reader = reader(&world, PIPELINE)
            .split(split)
            .prefetch_bytes(1)
            .requests(1)
            .build_table()
            .await
            .unwrap();
        assert!(reader.try_next().await.unwrap().is_some());
        for key in ["t/a.parquet", "t/b.parquet"] {
            world.put(
                key,
                &Parquet {
                    rows: 2500,
                    noise: 3,
                    row_group: 500,
                }
                .write()
                .unwrap(),
            );
        }
        let error = loop {
            match reader.try_next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without an error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Sample, "{error}");
        assert!(
            error.to_string().contains("was replaced while it was read"),
            "{error}"
        );
        assert!(reader.try_next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_limit_is_exact_to_the_row() {
    let world = world();
    let builder = || reader(&world, PIPELINE);
    let whole = ids(&read_all(builder().build_table().await.unwrap()).await);
    for limit in [1, 63, 64, 65, 100, 1_000_000] {
        let limited = read_all(builder().limit(limit).build_table().await.unwrap()).await;
        assert_eq!(ids(&limited), whole[..limit.min(whole.len())], "{limit}");
    }
    let second = builder()
        .limit(100)
        .rank(Rank { index: 1, world: 2 })
        .build_table()
        .await
        .unwrap();
    assert_eq!(ids(&read_all(second).await), whole[whole.len() / 2..][..100]);
}
