//! Why values are not cached: each reason in the stats of the reader.

use std::fs;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Batch, Mode, NotCached, PushdownReaderBuilder, Split, Stats};
use pushdown_testkit::ScriptedOrigin;

use super::world::{Objects, World, photos, reader, run};

const SMALL: &str = "decode | resize(short=40) | center_crop(16)";
const COUNT: u64 = 6;

/// Photos with more bytes than a small crop and fewer bytes than their pixels.
fn photos_larger_than_crops() -> Objects {
    let large: Vec<_> = photos()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && bytes.len() > 5_000)
        .collect();
    let objects = (0..6).map(|index| {
        let (name, bytes) = &large[index % large.len()];
        (format!("{index}-{name}"), bytes.clone())
    });
    objects.collect()
}

fn stats(builder: PushdownReaderBuilder) -> Stats {
    run(async {
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(batches.iter().map(Batch::len).sum::<usize>() as u64, COUNT);
        let stats = reader.stats();
        assert_eq!(
            stats.cache_hits + stats.cache_writes + stats.not_cached.total(),
            COUNT,
            "each value is cached or has a reason: {stats:?}"
        );
        stats
    })
}

#[test]
fn each_value_that_is_not_cached_has_a_reason() {
    let world = World::with_objects(photos_larger_than_crops());
    let all = |set: fn(&mut NotCached)| {
        let mut not_kept = NotCached::default();
        set(&mut not_kept);
        not_kept
    };
    let larger = all(|not_cached| not_cached.larger = COUNT);
    let random = all(|not_cached| not_cached.random = COUNT);
    let after_random = all(|not_cached| not_cached.after_random = COUNT);
    let cropped = "decode | random_resized_crop(16) | to_float";
    for (pipeline, mode, split, expected) in [
        (SMALL, Mode::Pushdown, Split::Smallest, NotCached::default()),
        (SMALL, Mode::Plain, Split::Smallest, NotCached::default()),
        // Pixels and floats have more bytes than the object.
        ("decode | to_float", Mode::Pushdown, Split::Smallest, larger),
        ("decode | to_float", Mode::Pushdown, Split::Full, larger),
        ("decode | to_float", Mode::Auto, Split::Smallest, larger),
        ("decode | to_float", Mode::Plain, Split::Smallest, larger),
        (
            "decode | resize(1000, 1000)",
            Mode::Plain,
            Split::Smallest,
            larger,
        ),
        // Before the first random step only whole images are available.
        (cropped, Mode::Plain, Split::Smallest, random),
        (cropped, Mode::Pushdown, Split::At(0), random),
        (cropped, Mode::Pushdown, Split::At(1), random),
        (cropped, Mode::Pushdown, Split::Full, after_random),
        (cropped, Mode::Pushdown, Split::At(2), after_random),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let reader = world
            .reader(pipeline)
            .mode(mode)
            .split(split)
            .seed(1)
            .value_cache(folder.path());
        let stats = stats(reader);
        assert_eq!(stats.not_cached, expected, "{pipeline} {mode:?} {split}");
        assert_eq!(stats.cache_hits, 0);
    }
}

/// Without a listing only the gateway knows the size of an object, and it runs steps up to the smallest value.
#[test]
fn values_of_unlisted_keys_may_be_past_the_cached_stage() {
    let world = World::with_objects(photos_larger_than_crops());
    let pipeline = "decode | resize(short=40) | center_crop(32) | random_crop(24) | flip_h";
    let keys: Vec<String> = world.objects.keys().cloned().collect();
    for (listed, expected) in [(true, 0), (false, COUNT)] {
        let folder = tempfile::tempdir().unwrap();
        let reader = world.reader(pipeline).seed(1).value_cache(folder.path());
        let reader = if listed { reader } else { reader.keys(keys.clone()) };
        let stats = stats(reader);
        assert_eq!(
            (stats.not_cached.unlisted, stats.cache_writes),
            (expected, COUNT - expected)
        );
    }
}

/// A store whose answers have no ETag, to GET and to HEAD.
#[test]
fn values_of_objects_without_an_etag_are_not_cached() {
    let photo = photos_larger_than_crops().into_values().next().unwrap();
    let store = ScriptedOrigin::start(move |exchange| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            photo.len()
        ))?;
        if exchange.head.starts_with("GET") {
            exchange.send(&photo)?;
        }
        Ok(())
    });
    let store = store.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let reader = || {
        reader(&format!("http://{}", store.address()), SMALL)
            .mode(Mode::Plain)
            .keys((0..COUNT).map(|number| format!("{number}.jpg")))
            .value_cache(folder.path())
    };
    for _ in 0..2 {
        let stats = stats(reader());
        assert_eq!((stats.cache_hits, stats.not_cached.no_etag), (0, COUNT));
    }
    let asked = store
        .requests()
        .iter()
        .filter(|head| head.starts_with("HEAD"))
        .count();
    assert_eq!(asked as u64, 2 * COUNT, "each reader asks once");
}

#[test]
fn a_cache_folder_has_a_limit_and_may_be_unwritable() {
    let world = World::with_objects(photos_larger_than_crops());
    let folder = tempfile::tempdir().unwrap();
    // The limit fits three values of 16 x 16 x 3 bytes with their headers.
    let reader = || {
        world
            .reader(SMALL)
            .value_cache(folder.path())
            .batch_size(1)
            .requests(1)
    };
    let first = stats(reader().value_cache_bytes(3_500));
    assert_eq!((first.cache_writes, first.not_cached.folder_full), (3, 3));
    let again = stats(reader().value_cache_bytes(3_500));
    assert_eq!(
        (again.cache_hits, again.cache_writes, again.not_cached.folder_full),
        (3, 0, 3)
    );

    let folder = tempfile::tempdir().unwrap();
    // Files take the names of the subfolders.
    for byte in 0..=u8::MAX {
        fs::write(folder.path().join(format!("{byte:02x}")), b"").unwrap();
    }
    let stats = stats(world.reader(SMALL).value_cache(folder.path()));
    assert_eq!((stats.cache_writes, stats.not_cached.unwritable), (0, COUNT));
}

#[test]
fn tables_are_not_cached() {
    let objects = (0..COUNT).map(|index| (format!("{index}.csv"), b"n,text\n1,a\n2,b\n".to_vec()));
    let world = World::with_objects(objects.collect());
    for mode in [Mode::Pushdown, Mode::Plain] {
        let folder = tempfile::tempdir().unwrap();
        let stats = stats(
            world
                .reader("select(columns=[n], limit=1)")
                .mode(mode)
                .value_cache(folder.path()),
        );
        assert_eq!(stats.not_cached.table, COUNT, "{mode:?}: {:?}", stats.not_cached);
    }
}
