//! What the reader counts.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{Batch, Credentials, Mode, OnError, Split, Stats, Store};

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, photos, run};

fn read(world: &World, mode: Mode, split: Split) -> (Stats, f64) {
    run(async {
        let reader = world
            .reader("decode | to_float")
            .mode(mode)
            .split(split)
            .on_error(OnError::SkipAndReport);
        let mut reader = reader.build().await.unwrap();
        let sent = || world.gateway.metric("pushdown_client_sent_bytes_total").unwrap();
        let before = sent();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(batches.iter().map(Batch::len).sum::<usize>(), world.objects.len());
        (reader.stats(), sent() - before)
    })
}

fn within(share: f64, a: f64, b: f64) -> bool {
    (a - b).abs() <= share * b
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "compared within 2 %")]
fn they_agree_with_the_gateways_metrics() {
    // Large ones, so that heads of answers, which the gateway does not count, hardly matter.
    let mut photos: Vec<_> = photos().into_iter().collect();
    photos.sort_by_key(|(_, object)| std::cmp::Reverse(object.len()));
    let world = World::with(photos.into_iter().take(12).collect());
    let stored: u64 = world.objects.values().map(|object| object.len() as u64).sum();

    let (stats, sent) = read(&world, Mode::Pushdown, Split::At(1));
    assert!(
        within(0.02, stats.wire_bytes_down as f64, sent),
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
        within(0.02, stats.wire_bytes_down as f64, sent),
        "{stats:?}, the gateway sent {sent}"
    );
    assert_eq!((stats.value_bytes, stats.stored_bytes), (stored, stored));
}

#[test]
fn a_batch_asks_for_less_than_single_requests_do() {
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
fn what_is_passed_over_is_counted() {
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

/// No plan may take a link for open because every object is short.
#[test]
fn short_objects_tell_together_how_fast_the_link_is() {
    let short = photos()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && (8_000..60_000).contains(&bytes.len()));
    let short: Vec<_> = short.collect();
    let objects = (0..12).map(|index| (format!("{index:02}.jpg"), short[index % short.len()].1.clone()));
    let world = World::with(objects.collect());
    run(async {
        let store = Store::builder()
            .endpoint(world.endpoint())
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
        let store = store.build().await.unwrap();
        let objects = store.list(BUCKET, "").await.unwrap();
        let pipeline = store.pipeline("decode | resize(8, 8)").await.unwrap();
        let link = async |objects| {
            let profile = store.profile(BUCKET, objects, &pipeline, None, 0).await.unwrap();
            assert_eq!(profile.failed, []);
            profile.link_bytes
        };
        assert!(link(&objects).await.is_some_and(|rate| rate > 10_000.0));
        assert_eq!(link(&objects[..1]).await, None, "too few bytes to tell");
    });
}
