//! Photos that a thin link delays, and of which the pipeline reads a part: they arrive as cropped JPEGs.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::{Context, Pipeline, Sample};
use pushdown_client::reader::{Batch, Mode, PushdownReaderBuilder, Row, Stats};
use pushdown_testkit::{RelayAction, Throttle, faulty_relay};

use super::{
    shards::ShardWorld,
    world::{Objects, World, into_rows, photos, read_rows, reader, run},
};

/// Pixels of more bytes than a photo has.
const PIPELINE: &str = "decode | random_resized_crop(224) | flip_h | to_float";
/// Bytes per second of a link of 20 Mbit/s.
const LINK: u64 = 2_500_000;
const SAMPLES: usize = 160;

/// Real photos, enlarged to the size of those in ImageNet.
fn large_photos(count: usize) -> Objects {
    let enlarge = Pipeline::parse("decode | resize(500, 375) | encode(jpeg, quality=95)").unwrap();
    let mut large = Vec::new();
    for photo in photos().into_values().filter(|photo| photo.len() > 5_000) {
        let sample = Sample::Bytes(photo.into());
        let Sample::Bytes(photo) = enlarge.run(0..enlarge.len(), sample, &Context::new(b"")).unwrap() else {
            panic!("encode gives bytes");
        };
        large.push(photo.to_vec());
    }
    let numbered = (0..count).map(|number| (format!("{number:03}.jpg"), large[number % large.len()].clone()));
    numbered.collect()
}

/// Reads an epoch over a thin link.
fn read_over_link(world: &World, builder: impl FnOnce(&str) -> PushdownReaderBuilder) -> (Vec<Row>, Stats) {
    let (link, address) = Throttle::start(world.gateway.listen()).unwrap();
    link.set_rate(LINK);
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
        (into_rows(batches), reader.stats())
    })
}

fn assert_same_values(rows: &[Row], expected: &[Row]) {
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!((&row.key, row.position), (&expected.key, expected.position));
        assert!(row.value == expected.value, "the values of {} differ", row.name());
    }
}

#[test]
fn auto_reads_parts_of_photos_over_a_thin_link() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let (rows, stats) = read_over_link(&world, |endpoint| reader(endpoint, PIPELINE));
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
    let (rows, stats) = read_over_link(&shards.world, |endpoint| {
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
    let (rows, stats) = read_over_link(&world, |endpoint| {
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
        let (link, address) = Throttle::start(world.gateway.listen()).unwrap();
        link.set_rate(LINK);
        let relay = faulty_relay(address, move |_| RelayAction::OlderFamily(family)).unwrap();
        let endpoint = format!("http://{}", relay.address());
        run(async {
            let reader = reader(&endpoint, PIPELINE)
                .seed(7)
                .mode(Mode::Auto)
                .batch_size(16);
            let mut reader = reader.build().await.unwrap();
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            assert_same_values(&into_rows(batches), &expected);
            assert_eq!(reader.stats().cropped_samples, 0, "{family}");
        });
    }
}

/// Rows that are missing are requested again, in the same form or as the object.
#[test]
fn answers_that_are_cut_short_lose_no_sample() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let (link, address) = Throttle::start(world.gateway.listen()).unwrap();
    link.set_rate(LINK);
    let relay = faulty_relay(address, |request| {
        if request % 3 == 2 {
            RelayAction::Truncate(60)
        } else {
            RelayAction::Forward
        }
    });
    let relay = relay.unwrap();
    let endpoint = format!("http://{}", relay.address());
    run(async {
        let reader = reader(&endpoint, PIPELINE)
            .seed(7)
            .mode(Mode::Auto)
            .batch_size(16);
        let mut reader = reader.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same_values(&into_rows(batches), &expected);
        assert!(reader.stats().cropped_samples > 0, "{:?}", reader.stats());
    });
}

/// It was replaced by an older one, which is none the less of use.
#[test]
fn a_gateway_that_no_longer_crops_gets_no_such_requests() {
    let world = World::with_objects(large_photos(SAMPLES));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(7).batch_size(16));
    let (link, address) = Throttle::start(world.gateway.listen()).unwrap();
    link.set_rate(LINK);
    let relay = faulty_relay(address, |request| {
        if request < 2 {
            RelayAction::Forward
        } else {
            RelayAction::OtherFeatures("families, members")
        }
    });
    let relay = relay.unwrap();
    let endpoint = format!("http://{}", relay.address());
    run(async {
        let reader = reader(&endpoint, PIPELINE)
            .seed(7)
            .mode(Mode::Auto)
            .batch_size(16);
        let mut reader = reader.requests(1).build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same_values(&into_rows(batches), &expected);
        let cropped = reader.stats().cropped_samples;
        assert!(cropped > 0 && cropped < SAMPLES as u64 / 2, "{cropped}");
        assert_eq!(reader.mode(), Mode::Auto);
    });
}
