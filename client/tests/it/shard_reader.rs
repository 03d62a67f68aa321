//! Whole shards in their order, without an index.

mod faults;
mod resume;
mod values;

use std::io::Write as _;

use flate2::write::GzEncoder;
use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::shard::Compression;
use pushdown_client::{
    reader::{Batch, PushdownReaderBuilder, Row, SampleOrder, Stats},
    shards::ColumnSelection,
};

use super::{
    shards::{Shard, pack},
    world::{World, into_rows, photos, run},
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";
/// Groups of members in a shard.
const GROUPS: usize = 5;
/// Samples in the shuffle buffer.
const BUFFER: usize = 6;
const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Gzip, Compression::Zstd];

/// Photos in shards of [`GROUPS`].
fn shards() -> Vec<Shard> {
    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    pack(&photos, GROUPS)
}

/// Key and bytes of a shard that is compressed.
fn compressed(shard: &Shard, compression: Compression) -> (String, Vec<u8>) {
    let (key, bytes) = (&shard.key, &shard.bytes);
    match compression {
        Compression::None => (key.clone(), bytes.clone()),
        Compression::Gzip => {
            let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            (format!("{key}.gz"), gzip.finish().unwrap())
        }
        Compression::Zstd => (format!("{key}.zst"), zstd::encode_all(&bytes[..], 1).unwrap()),
        other => panic!("{other:?}"),
    }
}

/// A gateway whose bucket has these shards.
fn world(shards: &[Shard], compression: Compression) -> World {
    let objects = shards.iter().map(|shard| compressed(shard, compression));
    World::with_objects(objects.collect())
}

/// A reader of all shards in shard order, with labels and descriptions.
fn by_shards(builder: PushdownReaderBuilder) -> PushdownReaderBuilder {
    builder
        .order(SampleOrder::Shards { buffer: BUFFER })
        .seed(11)
        .columns(ColumnSelection {
            value: None,
            further: vec!["cls".to_owned(), "json".to_owned()],
        })
}

/// The rows of an epoch.
fn read(builder: PushdownReaderBuilder) -> (Vec<Row>, Stats) {
    run(async {
        let mut reader = builder.build_shards().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats())
    })
}

/// Fails at the first row that differs, and names it. Values are too long to print.
fn assert_same(rows: &[Row], expected: &[Row]) {
    let names = |rows: &[Row]| rows.iter().map(|row| row.name().to_string()).collect::<Vec<_>>();
    assert_eq!(names(rows), names(expected));
    for (row, expected) in rows.iter().zip(expected) {
        let is_same = row.value == expected.value && row.columns == expected.columns;
        assert!(is_same, "the values of {} differ", row.name());
    }
}

/// Shard and member of each row, sorted.
fn sorted_names(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = rows.iter().map(|row| row.name().to_string()).collect();
    names.sort_unstable();
    names
}

/// The same of all photos.
fn all_names(shards: &[Shard]) -> Vec<String> {
    let names = shards.iter().flat_map(|shard| {
        let members = shard.photos.iter();
        members.map(|member| format!("{} member {}", shard.key, member.name))
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}
