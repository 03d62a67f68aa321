//! The value cache: cached values are not fetched again, and results do not change.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    reader::{Batch, Mode, PushdownReaderBuilder, Row, Split, Stats},
    store::Object,
};
use pushdown_testkit::model_folder;

use super::world::{BUCKET, Objects, World, into_rows, photos, run};

const DETERMINISTIC: &str = "decode | resize(short=40) | center_crop(16) | to_float | cast(f16)";
/// The lease of a claim.
const LEASE: Duration = Duration::from_secs(30);
const MODES: [Mode; 3] = [Mode::Pushdown, Mode::Auto, Mode::Plain];

/// Enough photos for a plan. They have more bytes than the value of the pipeline and fewer than their pixels.
fn world() -> World {
    world_with_flags(&[])
}

fn world_with_flags(flags: &[String]) -> World {
    let large: Vec<_> = photos()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && bytes.len() > 5_000)
        .collect();
    let objects: Objects = (0..60)
        .map(|index| {
            let (name, bytes) = &large[index % large.len()];
            (format!("{index:03}-{name}"), bytes.clone())
        })
        .collect();
    World::with_flags(objects, flags)
}

fn read(builder: PushdownReaderBuilder) -> (Vec<Row>, Stats) {
    run(async {
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats())
    })
}

fn assert_same(found: &[Row], expected: &[Row], how: &str) {
    assert_eq!(found.len(), expected.len(), "{how}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(
            (found.position, &found.key),
            (expected.position, &expected.key),
            "{how}"
        );
        assert!(
            found.value == expected.value,
            "{how}: the values of {} differ",
            found.key
        );
    }
}

/// The files in the subfolders of a value cache.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| -> Vec<_> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    entries(folder)
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|folder| entries(folder))
        .collect()
}

#[test]
fn every_mode_returns_the_same_values_and_fetches_them_once() {
    let world = world();
    let count = world.objects.len() as u64;
    let reader = |mode| world.reader(DETERMINISTIC).mode(mode).seed(3).batch_size(16);
    for mode in MODES {
        let folder = world.folder().join(format!("kept-{mode:?}"));
        let (expected, _) = read(reader(mode));
        let (first, stats) = read(reader(mode).value_cache(&folder));
        assert_same(&first, &expected, "first");
        assert_eq!((stats.cache_hits, stats.samples), (0, count));
        assert_eq!(files(&folder).len() as u64, count);
        // The next reader fetches no value, in any mode.
        for next_mode in MODES {
            let (rows, stats) = read(reader(next_mode).value_cache(&folder));
            assert_same(&rows, &expected, "again");
            assert_eq!(
                (stats.cache_hits, stats.value_bytes),
                (count, 0),
                "{mode:?}, {next_mode:?}"
            );
            assert_eq!(
                (stats.wire_bytes_down, stats.wire_bytes_up),
                (0, 0),
                "{mode:?}, {next_mode:?}"
            );
        }
    }
}

#[test]
fn the_next_epoch_of_a_reader_fetches_nothing() {
    let world = world();
    let folder = world.folder().join("kept");
    run(async {
        let mut reader = world
            .reader(DETERMINISTIC)
            .seed(3)
            .value_cache(&folder)
            .build()
            .await
            .unwrap();
        let first: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let before = reader.stats();
        reader.set_epoch(1);
        let second: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let after = reader.stats();
        assert_eq!(after.cache_hits, world.objects.len() as u64);
        assert_eq!(after.wire_bytes_down, before.wire_bytes_down);
        let sorted = |batches: Vec<Batch>| {
            let mut rows = into_rows(batches);
            rows.sort_by_key(|row| row.index);
            rows.into_iter().map(|row| row.value).collect::<Vec<_>>()
        };
        assert!(sorted(first) == sorted(second));
    });
}

#[test]
fn a_corrupt_cache_file_is_fetched_again() {
    let world = world();
    let folder = world.folder().join("kept");
    let reader = || world.reader(DETERMINISTIC).value_cache(&folder);
    let (expected, _) = read(reader());
    let files = files(&folder);
    for (index, file) in files.iter().take(4).enumerate() {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        match index {
            0 => bytes.truncate(middle),
            1 => bytes.clear(),
            2 => bytes[middle] ^= 1,
            _ => bytes.push(0),
        }
        fs::write(file, bytes).unwrap();
    }
    let (rows, stats) = read(reader());
    assert_same(&rows, &expected, "broken");
    assert_eq!(stats.cache_hits, files.len() as u64 - 4);
    let (rows, stats) = read(reader());
    assert_same(&rows, &expected, "repaired");
    assert_eq!(stats.cache_hits, files.len() as u64);
}

#[test]
fn a_replaced_object_is_fetched_again() {
    let mut world = world();
    let folder = world.folder().join("kept");
    let count = world.objects.len() as u64;
    read(world.reader(DETERMINISTIC).value_cache(&folder));
    let mut keys = world.objects.keys().cloned();
    let (key, other) = (keys.next().unwrap(), keys.next().unwrap());
    let bytes = world.objects[&other].clone();
    world.put(&key, &bytes);
    world.objects.insert(key, bytes);
    let (expected, _) = read(world.reader(DETERMINISTIC));
    let (rows, stats) = read(world.reader(DETERMINISTIC).value_cache(&folder));
    assert_same(&rows, &expected, "replaced");
    assert_eq!(stats.cache_hits, count - 1);
}

/// The value before the first random step is cached if it is smaller than the object. No later value is cached.
#[test]
fn the_deterministic_prefix_of_an_augmented_pipeline_is_cached() {
    let world = world();
    let count = world.objects.len() as u64;
    let kept = "decode | resize(short=40) | center_crop(32) | random_crop(24) | flip_h | to_float";
    let nothing = "decode | random_resized_crop(24) | to_float";
    for (name, pipeline, kept) in [("kept", kept, count), ("nothing", nothing, 0)] {
        for mode in MODES {
            let folder = world.folder().join(format!("{name}-{mode:?}"));
            let reader = |epoch| world.reader(pipeline).mode(mode).seed(3).epoch(epoch);
            for epoch in 0..3 {
                let (expected, _) = read(reader(epoch));
                let (rows, stats) = read(reader(epoch).value_cache(&folder));
                assert_same(&rows, &expected, name);
                let from_cache = if epoch == 0 { 0 } else { kept };
                assert_eq!(stats.cache_hits, from_cache, "{name}, {mode:?}, {epoch}");
            }
            assert_eq!(files(&folder).len() as u64, kept);
        }
    }
}

/// A split may end before the cached stage: the host runs the remaining steps and caches the value.
#[test]
fn every_split_fills_the_cache() {
    let world = world();
    let (expected, _) = read(world.reader(DETERMINISTIC));
    for stage in 0..=5 {
        let folder = world.folder().join(format!("kept-{stage}"));
        let reader = || {
            world
                .reader(DETERMINISTIC)
                .split(Split::At(stage))
                .value_cache(&folder)
        };
        let (rows, _) = read(reader());
        assert_same(&rows, &expected, "first");
        assert!(rows.iter().all(|row| row.stage == stage));
        let (rows, stats) = read(reader());
        assert_same(&rows, &expected, "again");
        assert_eq!(stats.cache_hits, world.objects.len() as u64);
    }
}

/// Keys alone, and lists of stores that list no ETags. An overwrite has the size of the object before.
#[test]
fn objects_without_a_listed_etag_are_cached_by_that_of_the_store() {
    let world = world();
    let mut photos: Vec<(String, Vec<u8>)> = world.objects.clone().into_iter().take(5).collect();
    let bytes = photos[0].1.len().max(photos[1].1.len());
    photos[0].1.resize(bytes, 0);
    photos[1].1.resize(bytes, 0);
    let keys_alone = pushdown_client::store::Objects::from_keys(BUCKET, photos.iter().map(|(key, _)| key));
    let sized = photos.iter().map(|(key, photo)| Object {
        key,
        bytes: Some(photo.len() as u64),
        etag: None,
        member: None,
    });
    let sized = pushdown_client::store::Objects::from_objects(BUCKET, sized);
    for (number, (objects, mode)) in [
        (&keys_alone, Mode::Pushdown),
        (&keys_alone, Mode::Auto),
        (&sized, Mode::Plain),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = world.folder().join(format!("kept-{number}"));
        let reader = || world.reader(DETERMINISTIC).mode(mode).objects(objects.clone());
        world.put(&photos[0].0, &photos[0].1);
        world.put(&photos[1].0, &photos[1].1);
        let (expected, _) = read(reader());
        for hits in [0, 5] {
            let (rows, stats) = read(reader().value_cache(&folder));
            assert_same(&rows, &expected, "the same objects");
            assert_eq!(stats.cache_hits, hits, "{number}");
        }
        world.put(&photos[0].0, &photos[1].1);
        let (expected, _) = read(reader());
        let (rows, stats) = read(reader().value_cache(&folder));
        assert_same(&rows, &expected, "replaced");
        assert_eq!(stats.cache_hits, 4, "{number}");
    }
}

#[test]
fn a_full_cache_accepts_no_more_values() {
    let world = world();
    let folder = world.folder().join("kept");
    let size = |file: &PathBuf| fs::metadata(file).unwrap().len();
    let reader = || {
        world
            .reader(DETERMINISTIC)
            .value_cache(&folder)
            .value_cache_bytes(20_000)
    };
    let (expected, _) = read(reader());
    let kept = files(&folder);
    assert!(!kept.is_empty() && kept.iter().map(size).sum::<u64>() <= 20_000);
    let (rows, stats) = read(reader());
    assert_same(&rows, &expected, "full");
    assert_eq!(stats.cache_hits, kept.len() as u64);
    assert_eq!(files(&folder).len(), kept.len());
}

/// Readers of one process share a folder as processes do.
#[test]
fn concurrent_readers_fetch_each_value_once() {
    let world = world();
    let count = world.objects.len() as u64;
    for mode in MODES {
        let (expected, _) = read(world.reader(DETERMINISTIC).mode(mode).seed(3));
        let folder = world.folder().join(format!("kept-{mode:?}"));
        let reads = (0..4).map(|_| {
            let reader = world.reader(DETERMINISTIC).mode(mode).seed(3);
            let reader = reader.batch_size(8).value_cache(&folder);
            async move {
                let mut reader = reader.build().await.unwrap();
                let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                (into_rows(batches), reader.stats())
            }
        });
        let reads = run(futures::future::join_all(reads));
        let mut fetched = 0;
        for (rows, stats) in &reads {
            assert_same(rows, &expected, "concurrent");
            fetched += count - stats.cache_hits;
        }
        assert_eq!(fetched, count, "{mode:?}");
        assert_eq!(files(&folder).len() as u64, count, "{mode:?}: no claim is left");
    }
}

/// Fails if readers that began at a time, which share values, waited for a lease to end. `alone` is what one of them takes: the limit
/// follows the speed of the machine.
fn assert_no_lease_ended(began: Instant, alone: Duration) {
    let taken = began.elapsed();
    let limit = (LEASE / 2).max(alone * 10);
    assert!(
        taken < limit,
        "{taken:?}, alone {alone:?}: nobody waits for a lease"
    );
}

/// Each reader holds claims of values that the others need first.
#[test]
fn readers_with_other_orders_do_not_wait_for_each_other_in_a_circle() {
    let world = world();
    let count = world.objects.len() as u64;
    let began = Instant::now();
    let _read = read(
        world
            .reader(DETERMINISTIC)
            .seed(0)
            .batch_size(4)
            .prefetch_bytes(1),
    );
    let alone = began.elapsed();
    for prefetch_bytes in [1, 20_000, 1 << 30] {
        let began = Instant::now();
        let folder = world.folder().join(format!("kept-{prefetch_bytes}"));
        let reads = (0..4).map(|seed| {
            let reader = world.reader(DETERMINISTIC).seed(seed).batch_size(4);
            let reader = reader.prefetch_bytes(prefetch_bytes).value_cache(&folder);
            async move {
                let mut reader = reader.build().await.unwrap();
                let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                assert_eq!(batches.iter().map(Batch::len).sum::<usize>() as u64, count);
                count - reader.stats().cache_hits
            }
        });
        let fetched: u64 = run(futures::future::join_all(reads)).iter().sum();
        assert!(fetched <= count * 3 / 2, "{prefetch_bytes}: {fetched}");
        assert_no_lease_ended(began, alone);
    }
}

#[test]
fn values_that_do_not_fit_are_not_waited_for() {
    let world = world();
    for (pipeline, mode) in [
        ("decode", Mode::Pushdown),
        ("decode | to_float", Mode::Plain),
        ("decode | random_resized_crop(24)", Mode::Auto),
    ] {
        let folder = world.folder().join(format!("kept-{mode:?}"));
        let began = Instant::now();
        let (expected, _) = read(world.reader(pipeline).mode(mode).seed(3));
        let alone = began.elapsed();
        let began = Instant::now();
        let reads = (0..3).map(|_| {
            let reader = world.reader(pipeline).mode(mode).seed(3).value_cache(&folder);
            async move { into_rows(reader.build().await.unwrap().try_collect().await.unwrap()) }
        });
        for rows in run(futures::future::join_all(reads)) {
            assert_same(&rows, &expected, pipeline);
        }
        assert!(files(&folder).is_empty(), "no claim is left");
        assert_no_lease_ended(began, alone);
    }
}

/// Processes that hold claims and whose state is unknown, for instance in another container.
#[test]
fn a_claim_is_waited_for_until_its_lease_is_over() {
    let world = world();
    let folder = world.folder().join("kept");
    let reader = || world.reader(DETERMINISTIC).seed(3).value_cache(&folder);
    let (expected, _) = read(reader());
    let made_at = SystemTime::now() - LEASE + Duration::from_secs(1);
    for file in files(&folder) {
        let claim = file.with_extension("claim");
        fs::rename(file, &claim).unwrap();
        fs::write(&claim, b"").unwrap();
        let claim = fs::File::options().write(true).open(&claim).unwrap();
        claim.set_modified(made_at).unwrap();
    }
    let (rows, stats) = read(reader());
    assert!(made_at.elapsed().unwrap() >= LEASE);
    assert_same(&rows, &expected, "after the lease");
    assert_eq!(stats.cache_hits, 0);
    assert_eq!(files(&folder).len(), world.objects.len(), "no claim is left");
}

#[test]
fn an_unusable_cache_folder_is_refused() {
    let world = World::with_photos(1);
    let file = world.folder().join("file");
    fs::write(&file, b"").unwrap();
    let error = run(world.reader("decode").value_cache(&file).build()).unwrap_err();
    assert!(error.to_string().contains("as a value cache"), "{error}");
}

/// Plans split models; the cached values are the same.
#[test]
fn cached_features_do_not_depend_on_the_plan() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world_with_flags(&[format!("--models={}", models.path().display())]);
    let pipeline =
        "decode | resize(224, 224) | to_float | normalize(imagenet) | model(squeezenet) | cast(f16)";
    let reader = |mode| {
        let weights = world.folder().join("weights");
        world
            .reader(pipeline)
            .model_cache(weights)
            .mode(mode)
            .value_cache(world.folder().join("kept"))
    };
    let (expected, _) = read(reader(Mode::Auto));
    for mode in MODES {
        let (rows, stats) = read(reader(mode));
        assert_same(&rows, &expected, "again");
        assert_eq!((stats.cache_hits, stats.value_bytes), (60, 0));
    }
}
