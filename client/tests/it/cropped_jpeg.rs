//! Photos that a thin link delays, and of which the pipeline reads a part: they arrive as cropped JPEGs.

use std::net::SocketAddr;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Batch, Mode, PushdownReaderBuilder, Row, Stats};
use pushdown_testkit::{RelayAction, Throttle, faulty_relay};

use super::{
    shards::ShardWorld,
    world::{World, assert_same_values, into_rows, large_photos, read_rows, reader, run},
};

/// Pixels of more bytes than a photo has.
const PIPELINE: &str = "decode | random_resized_crop(224) | flip_h | to_float";
/// Bytes per second of a link of 20 Mbit/s.
const LINK: u64 = 2_500_000;
const SAMPLES: usize = 160;

/// A thin link to the gateway, and the address of its near end.
fn thin_link(world: &World) -> (Throttle, SocketAddr) {
    let (link, address) = Throttle::start(world.gateway.listen()).unwrap();
    link.set_rate(LINK);
    (link, address)
}

/// Reads an epoch with the gateway at `address`.
fn read_auto(
    address: SocketAddr,
    builder: impl FnOnce(&str) -> PushdownReaderBuilder,
) -> (Vec<Row>, Stats, Mode) {
    let builder = builder(&format!("http://{address}"));
    run(async {
        let mut reader = builder
            .seed(7)
            .mode(Mode::Auto)
            .batch_size(16)
            .build()
            .await
            .unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats(), reader.mode())
    })
}

/// Reads an epoch over a thin link.
fn read_over_link(
    world: &World,
    builder: impl FnOnce(&str) -> PushdownReaderBuilder,
) -> (Vec<Row>, Stats, Mode) {
    let (_link, address) = thin_link(world);
    read_auto(address, builder)
}

/// Reads an epoch over a thin link, with what `action` gives for each request.
fn read_over_faulty_link(
    world: &World,
    action: impl Fn(usize) -> RelayAction + Send + Sync + 'static,
    builder: impl FnOnce(&str) -> PushdownReaderBuilder,
) -> (Vec<Row>, Stats, Mode) {
    let (_link, address) = thin_link(world);
    let relay = faulty_relay(address, action).unwrap();
    read_auto(relay.address(), builder)
}

#[test]
fn auto_reads_parts_of_photos_over_a_thin_link() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let (rows, stats, _) = read_over_link(&world, |endpoint| reader(endpoint, PIPELINE));
    assert_same_values(&rows, &expected);
    assert!(
        rows.iter().all(|row| row.stage == 0),
        "pixels are larger than photos"
    );
    assert!(stats.cropped_samples > SAMPLES as u64 / 2, "{stats:?}");
    assert!(10 * stats.value_bytes < 9 * stats.stored_bytes, "{stats:?}");
}

#[test]
fn members_of_shards_are_cropped() {
    let photos: Vec<Vec<u8>> = large_photos(SAMPLES).into_values().collect();
    let shards = ShardWorld::new(&photos, 40);
    let samples = shards.samples(&["cls"]);
    let expected = shards.reader(PIPELINE).objects(samples.clone()).mode(Mode::Plain);
    let expected = read_rows(expected.seed(7).batch_size(16));
    let (rows, stats, _) = read_over_link(&shards.world, |endpoint| {
        reader(endpoint, PIPELINE).objects(samples.clone())
    });
    assert_same_values(&rows, &expected);
    for (row, expected) in rows.iter().zip(&expected) {
        assert_eq!(row.columns, expected.columns);
    }
    assert!(stats.cropped_samples > 0, "{stats:?}");
}

/// The value that would be cached is the whole image, which a part does not give.
#[test]
fn a_value_cache_gets_whole_objects() {
    let world = World::with_objects(large_photos(SAMPLES));
    let folder = tempfile::tempdir().unwrap();
    let pipeline = "decode | random_resized_crop(224)";
    let expected = read_rows(world.reader(pipeline).mode(Mode::Plain).seed(7).batch_size(16));
    let (rows, stats, _) = read_over_link(&world, |endpoint| {
        reader(endpoint, pipeline).value_cache(folder.path())
    });
    assert_same_values(&rows, &expected);
    assert_eq!(stats.cropped_samples, 0, "{stats:?}");
    assert_eq!(
        stats.not_cached.random, SAMPLES as u64,
        "the image is decoded whole"
    );
}

/// Another version of the draws could read another region.
#[test]
fn parts_are_asked_for_only_if_the_families_of_the_region_agree() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    for family in ["random", "resample", "decode"] {
        let action = move |_| RelayAction::OlderFamily(family);
        let (rows, stats, _) = read_over_faulty_link(&world, action, |endpoint| reader(endpoint, PIPELINE));
        assert_same_values(&rows, &expected);
        assert_eq!(stats.cropped_samples, 0, "{family}");
    }
}

/// Rows that are missing are requested again, in the same form or as the object.
#[test]
fn answers_that_are_cut_short_lose_no_sample() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let action = |request| {
        if request % 3 == 2 {
            RelayAction::Truncate(60)
        } else {
            RelayAction::Forward
        }
    };
    let (rows, stats, _) = read_over_faulty_link(&world, action, |endpoint| reader(endpoint, PIPELINE));
    assert_same_values(&rows, &expected);
    assert!(stats.cropped_samples > 0, "{stats:?}");
}

/// An older gateway replaces it. That one computes values, and the reader goes on using it.
#[test]
fn a_gateway_that_no_longer_crops_gets_no_such_requests() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let action = |request| {
        if request < 2 {
            RelayAction::Forward
        } else {
            RelayAction::OtherFeatures("families, members")
        }
    };
    let (rows, stats, mode) =
        read_over_faulty_link(&world, action, |endpoint| reader(endpoint, PIPELINE).requests(1));
    assert_same_values(&rows, &expected);
    let cropped = stats.cropped_samples;
    assert!(cropped > 0 && cropped < SAMPLES as u64 / 2, "{cropped}");
    assert_eq!(mode, Mode::Auto);
}
