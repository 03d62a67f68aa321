//! Counters of the reader.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::{Context, Pipeline, Sample};
use pushdown_client::{
    reader::{Batch, Mode, OnError, Split, Stats},
    store::{Credentials, Objects, Store},
};
use pushdown_testkit::model_folder;

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, photos, run};

fn read(world: &World, mode: Mode, split: Split) -> (Stats, f64) {
    run(async {
        let reader = world
            .reader("decode | to_float")
            .mode(mode)
            .split(split)
            .on_error(OnError::Report);
        let mut reader = reader.build().await.unwrap();
        let sent = || world.gateway.metric("pushdown_client_sent_bytes_total").unwrap();
        let before = sent();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(batches.iter().map(Batch::len).sum::<usize>(), world.objects.len());
        (reader.stats(), sent() - before)
    })
}

fn is_within(fraction: f64, a: f64, b: f64) -> bool {
    (a - b).abs() <= fraction * b
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "compared within 2 %")]
fn reader_stats_agree_with_the_metrics_of_the_gateway() {
    // Large photos: the gateway does not count the heads of answers, and their fraction must be small.
    let mut photos: Vec<_> = photos().into_iter().collect();
    photos.sort_by_key(|(_, object)| std::cmp::Reverse(object.len()));
    let world = World::with_objects(photos.into_iter().take(12).collect());
    let stored: u64 = world.objects.values().map(|object| object.len() as u64).sum();

    let (stats, sent) = read(&world, Mode::Pushdown, Split::At(1));
    assert!(
        is_within(0.02, stats.wire_bytes_down as f64, sent),
        "{stats:?}, the gateway sent {sent}"
    );
    assert!(
        (stats.value_bytes as f64) < sent,
        "{stats:?}, the gateway sent {sent}"
    );
    assert_eq!(
        (stats.samples, stats.errors, stats.skipped, stats.retries),
        (12, 0, 0, 0)
    );
    assert_eq!(stats.stored_bytes, stored);
    assert!(!stats.waiting.is_zero());

    let (stats, sent) = read(&world, Mode::Plain, Split::Full);
    assert!(
        is_within(0.02, stats.wire_bytes_down as f64, sent),
        "{stats:?}, the gateway sent {sent}"
    );
    assert_eq!((stats.value_bytes, stats.stored_bytes), (stored, stored));
}

#[test]
fn a_batch_request_uploads_fewer_bytes_than_single_requests() {
    let world = World::with_photos(20);
    let read = |mode| {
        run(async {
            let mut reader = world
                .reader("decode | resize(32, 32)")
                .mode(mode)
                .batch_size(20)
                .build()
                .await
                .unwrap();
            reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap();
            reader.stats().wire_bytes_up
        })
    };
    let (pushed, plain) = (read(Mode::Pushdown), read(Mode::Plain));
    assert!(
        pushed * 2 < plain,
        "{pushed} bytes for one request, {plain} for 20"
    );
}

#[test]
fn skipped_samples_are_counted() {
    let world = World::with_photos(10);
    run(async {
        let mut reader = world
            .reader("decode | resize(8, 8)")
            .start_at(1)
            .build()
            .await
            .unwrap();
        reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap();
        let stats = reader.stats();
        assert_eq!((stats.skipped, stats.samples), (4, 6));
    });
}

/// The objects have at most 107 KB, the average size of a photo in ImageNet.
#[test]
fn features_transfer_a_fifteenth_of_the_bytes() {
    let models = model_folder(&["efficientnet_lite0"]).unwrap();
    let enlarge = Pipeline::parse("decode | resize(500, 375) | encode(jpeg, quality=97)").unwrap();
    let photo = Sample::Bytes(photos().remove("jpeg_large.jpg").unwrap().into());
    let Sample::Bytes(photo) = enlarge.run(0..3, photo, &Context::new(b"")).unwrap() else {
        panic!("an encoded photo is bytes")
    };
    assert!((50_000..107_000).contains(&photo.len()), "{} bytes", photo.len());
    let objects = (0..64).map(|index| (format!("{index:02}.jpg"), photo.to_vec()));
    let world = World::with_flags(
        objects.collect(),
        &[format!("--models={}", models.path().display())],
    );
    let wire = |mode, pipeline: &str| {
        run(async {
            let reader = world.reader(pipeline).mode(mode).batch_size(64);
            let mut reader = reader.build().await.unwrap();
            reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap();
            let stats = reader.stats();
            assert_eq!(stats.samples, 64);
            stats.wire_bytes_down + stats.wire_bytes_up
        })
    };
    let features = "decode | resize(short=256) | center_crop(224) | to_float | \
                    normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
    // A plain GET transfers the object, independent of the pipeline.
    let (pushed, plain) = (wire(Mode::Pushdown, features), wire(Mode::Plain, "decode"));
    assert!(pushed * 15 <= plain, "{pushed} of {plain} bytes");
}

/// A plan must not assume a fast link because every object is short.
#[test]
fn the_link_rate_is_measured_over_several_short_objects() {
    let short = photos()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && (8_000..60_000).contains(&bytes.len()));
    let short: Vec<_> = short.collect();
    let objects = (0..12).map(|index| (format!("{index:02}.jpg"), short[index % short.len()].1.clone()));
    let world = World::with_objects(objects.collect());
    run(async {
        let store = Store::builder()
            .endpoint(world.endpoint())
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
        let store = store.build().await.unwrap();
        let objects = store.list_objects(BUCKET, "").await.unwrap();
        let pipeline = store.pipeline("decode | resize(8, 8)").await.unwrap();
        let link_rate = async |objects: &Objects| {
            let profile = store.profile(objects, &pipeline, None, 0).await.unwrap();
            assert_eq!(profile.failed, []);
            profile.link_bytes_per_second
        };
        assert!(link_rate(&objects).await.is_some_and(|rate| rate > 10_000.0));
        assert_eq!(
            link_rate(&objects.select([0])).await,
            None,
            "too few bytes to measure the rate"
        );
    });
}
