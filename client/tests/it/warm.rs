//! Values that the gateway computes and caches, and does not deliver.

use std::num::NonZeroU32;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, OnError, PushdownReaderBuilder, Split, Stats, WarmUp},
};

use super::world::{Objects, World, into_rows, photos, read_rows, run};

const PIPELINE: &str = "decode | resize(32, 32) | random_crop(24, 24) | to_tensor";

fn world(objects: Objects) -> World {
    World::with_flags(objects, &["--cache-memory=64MiB".to_owned()])
}

fn warm_up(world: &World) -> PushdownReaderBuilder {
    world.reader(PIPELINE).on_error(OnError::Report).warm(WarmUp {
        keep_seconds: NonZeroU32::new(3_600),
    })
}

/// What a warm-up counted; it delivers nothing.
fn warm(reader: PushdownReaderBuilder) -> Stats {
    run(async {
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        let mut values = rows.iter().filter_map(|row| row.value.as_ref().ok());
        assert!(values.all(|value| value.bytes() == 0));
        reader.stats()
    })
}

/// The second one computes nothing, and neither does a reader after it.
#[test]
fn a_data_set_is_computed_once() {
    let world = world(photos());
    let samples = photos().len() as u64;
    let first = warm(warm_up(&world));
    assert_eq!((first.warmed, first.not_warmed, first.errors), (samples, 0, 0));
    assert_eq!((first.gateway_cache_hits, first.value_bytes), (0, 0));
    let again = warm(warm_up(&world));
    assert_eq!((again.warmed, again.gateway_cache_hits), (samples, samples));
    run(async {
        // The random step is the host's, which begins with the cached values.
        let reader = world.reader(PIPELINE).split(Split::At(2)).seed(7);
        let mut reader = reader.build().await.unwrap();
        reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap();
        assert_eq!(reader.stats().gateway_cache_hits, samples);
    });
}

/// Samples that fail are named, and the others are cached.
#[test]
fn a_bad_sample_does_not_end_a_warm_up() {
    let mut objects = photos();
    let samples = objects.len() as u64;
    objects.insert("broken.jpg".to_owned(), b"no photo".to_vec());
    let world = world(objects);
    let stats = warm(warm_up(&world));
    assert_eq!((stats.warmed, stats.errors), (samples, 1));
    let rows = read_rows(world.reader(PIPELINE).on_error(OnError::Report).seed(7));
    assert_eq!(rows.iter().filter(|row| row.value.is_err()).count(), 1);
}

#[test]
fn a_warm_up_needs_a_cache_and_delivers_nothing() {
    let world = World::with_objects(photos());
    let error = run(async {
        let reader = warm_up(&world).build().await.unwrap();
        reader.try_collect::<Vec<Batch>>().await.unwrap_err()
    });
    assert!(error.to_string().contains("--cache-memory"), "{error}");
    for mode in [Mode::Auto, Mode::Plain] {
        let error = run(warm_up(&world).mode(mode).build()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
}
