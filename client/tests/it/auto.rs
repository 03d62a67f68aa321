//! Plans that follow what happens.

use std::num::NonZeroUsize;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{Batch, Mode, Object};
use pushdown_testkit::Parquet;

use super::{
    relay::{Deed, relay},
    throttle::Throttle,
    world::{Objects, World, assert_same, flat, photos, reader, rows, run},
};

const PIPELINE: &str = "decode | resize(32, 32) | to_tensor";
const KEY: &str = "large.bmp";

/// A bitmap of 256 x 256 pixels: 197 KB, of which the pipeline leaves 3.
fn bitmap() -> Objects {
    let pixels = 256 * 256 * 3_u32;
    let mut file = b"BM".to_vec();
    for word in [54 + pixels, 0, 54, 40, 256, 256] {
        file.extend(word.to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    for word in [0, pixels, 2835, 2835, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend((0..pixels).map(|byte| u8::try_from(byte.wrapping_mul(2_654_435_761) >> 24).unwrap()));
    Objects::from([(KEY.to_owned(), file)])
}

/// The bitmap so many times, as a listing has it.
fn listed(count: usize) -> Vec<Object> {
    let bitmap = Object {
        key: KEY.into(),
        bytes: Some(bitmap()[KEY].len() as u64),
        etag: None,
    };
    vec![bitmap; count]
}

/// The link becomes thin in the middle of an epoch: what was read as it is before is pushed down then. Every sample comes
/// once, with the value of plain reading, whichever way.
#[test]
fn a_plan_follows_the_link() {
    let world = World::with(bitmap());
    let expected = rows(world.reader(PIPELINE).keys([KEY]).mode(Mode::Plain));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    run(async {
        let builder = reader(&format!("http://{address}"), PIPELINE)
            .keys(vec![KEY; 800])
            .mode(Mode::Auto)
            .batch_size(32)
            .requests(2)
            .prefetch_bytes(0);
        let mut reader = builder.build().await.unwrap();
        assert!(
            reader.plan().is_none(),
            "nothing is known before anything was read"
        );
        let mut batches: Vec<Batch> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
            if batches.len() == 10 {
                assert!(reader.plan().is_some());
                throttle.set(4 << 20);
            }
        }
        let planned = reader.plan().unwrap();
        let decision = &planned.decision;
        // What waited in buffers passes at once: on a busy machine the link seems some times as fast as it is, and no more.
        assert!(decision.tiers.link_bytes < 32e6, "{planned}");
        assert!(decision.plan.shares[0][0] < 0.05, "{planned}");
        assert!(planned.samples_per_second() > planned.plainly(), "{planned}");
        assert!(planned.to_string().contains("% up to `"), "{planned}");
        let last = batches.last().unwrap().rows().iter();
        let plainly = last.filter(|row| row.stage == 0).count();
        assert!(plainly <= 2, "{plainly} of 32");
        let rows = flat(batches);
        assert_eq!(rows.len(), 800);
        for (position, row) in rows.iter().enumerate() {
            assert_eq!((row.index, row.position), (position, position as u64));
            assert!(
                row.value == expected[0].value,
                "bit for bit at stage {}",
                row.stage
            );
        }
        // No more values than are stored, even while nothing was known.
        assert!(reader.stats().value_bytes <= 800 * 197_000);
    });
}

/// While nothing is known half of the objects are asked for each way, but what a thin link has not begun to bring by the time
/// that the gateway is done comes from there.
#[test]
fn a_thin_link_holds_up_few_objects() {
    let world = World::with(bitmap());
    let expected = rows(world.reader(PIPELINE).keys([KEY]).mode(Mode::Plain));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    throttle.set(1 << 20);
    run(async {
        let builder = reader(&format!("http://{address}"), PIPELINE)
            .objects(listed(128))
            .mode(Mode::Auto)
            .batch_size(64);
        let mut reader = builder.build().await.unwrap();
        let rows = flat(reader.by_ref().try_collect().await.unwrap());
        assert_eq!(rows.len(), 128);
        assert!(rows.iter().all(|row| row.value == expected[0].value));
        let plainly = rows.iter().filter(|row| row.stage == 0).count();
        assert!((2..=24).contains(&plainly), "{plainly} of 64 came as they are");
    });
}

/// An encoder's answer is planned with once some have come, and never larger than what it is made of.
#[test]
fn what_an_encoder_makes_is_pushed_down_where_it_is_smaller() {
    for (pipeline, smaller) in [
        ("decode | resize(32, 32) | encode(png)", true),
        ("decode | resize(512, 512) | encode(png)", false),
    ] {
        let world = World::with(bitmap());
        let expected = rows(world.reader(pipeline).keys([KEY]).mode(Mode::Plain));
        let (throttle, address) = Throttle::start(world.gateway.listen());
        throttle.set(8 << 20);
        run(async {
            let builder = reader(&format!("http://{address}"), pipeline)
                .objects(listed(160))
                .mode(Mode::Auto)
                .batch_size(32);
            let mut reader = builder.build().await.unwrap();
            let rows = flat(reader.by_ref().try_collect().await.unwrap());
            assert!(rows.iter().all(|row| row.value == expected[0].value));
            let planned = reader.plan().unwrap();
            let plainly = planned.decision.plan.shares[0][0];
            assert_eq!(plainly < 0.5, smaller, "{planned}");
            assert!(rows.iter().all(|row| smaller || row.stage == 0), "{planned}");
            assert!(
                reader.stats().value_bytes <= 160 * 197_000,
                "{:?}",
                reader.stats()
            );
        });
    }
}

/// Keys tell no sizes: a value that has more bytes than a photo may have is asked for only once photos have shown theirs.
#[test]
fn keys_without_sizes_send_no_more_than_is_stored() {
    let small = photos().into_iter().filter(|(key, _)| key.starts_with("jpeg_"));
    let small: Objects = small.collect();
    assert!(small.len() >= 6 && small.values().all(|photo| photo.len() < 30_000));
    for (objects, may_be_pushed) in [(small, false), (bitmap(), true)] {
        let world = World::with(objects);
        let keys: Vec<String> = world.objects.keys().cloned().cycle().take(64).collect();
        for (pipeline, bytes) in [
            ("decode | resize(224, 224) | to_tensor", 224 * 224 * 3),
            ("decode | resize(224, 224) | to_float", 224 * 224 * 3 * 4),
        ] {
            let reader = |mode: Mode| world.reader(pipeline).keys(keys.clone()).mode(mode).batch_size(8);
            let expected = rows(reader(Mode::Plain));
            let (found, sent) = run(async {
                let mut reader = reader(Mode::Auto)
                    .requests(1)
                    .prefetch_bytes(0)
                    .build()
                    .await
                    .unwrap();
                let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                (flat(batches), reader.stats().value_bytes)
            });
            assert_eq!(found.len(), expected.len());
            for (row, expected) in found.iter().zip(&expected) {
                let stored = world.objects[&*row.key].len();
                assert!(
                    row.stage == 0 || bytes <= stored,
                    "{} at stage {}",
                    row.key,
                    row.stage
                );
                assert_eq!(row.key, expected.key);
                assert!(row.value == expected.value, "the values of {} differ", row.key);
            }
            let stored: usize = keys.iter().map(|key| world.objects[key].len()).sum();
            assert!(sent <= stored as u64, "{sent} of {stored}");
            let pushed = found.iter().any(|row| row.stage > 0);
            assert_eq!(pushed, may_be_pushed && bytes <= 197_000, "{pipeline}");
        }
    }
}

/// A sample that is a table is an object that the gateway never holds whole: there is no plan for it.
#[test]
fn samples_that_are_tables_are_read_plainly() {
    let table = Parquet {
        rows: 100,
        noise: 1,
        row_group: 50,
    };
    let table = table.write().unwrap();
    let objects = (0..8).map(|index| (format!("{index}.parquet"), table.clone()));
    let world = World::with(objects.collect());
    let read = |mode| rows(world.reader("select(columns=[n], where='n < 50')").mode(mode));
    let found = read(Mode::Auto);
    assert!(found.iter().all(|row| row.stage == 0), "nothing is pushed down");
    assert_same(&found, &read(Mode::Plain));
}

/// A plan never does worse than plain reading, so that it takes that way when there is no other.
#[test]
fn without_a_gateway_auto_reads_plainly() {
    let world = World::with_photos(12);
    let expected = rows(world.reader(PIPELINE).mode(Mode::Plain));
    for deed in [Deed::OtherEngine, Deed::Unknown] {
        let relay = relay(world.gateway.listen(), move |_| deed);
        run(async {
            let builder = reader(&format!("http://{}", relay.address()), PIPELINE);
            let mut reader = builder.mode(Mode::Auto).batch_size(3).build().await.unwrap();
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            assert_same(&flat(batches), &expected);
            assert_eq!(reader.mode(), Mode::Plain, "{deed:?}");
            assert_eq!(reader.stats().retries, 0);
        });
    }
}

/// Gateway and reader here have the same CPUs, unless one of them is told otherwise: pushing down then saves bytes and no
/// work.
#[test]
fn tiers_on_the_same_cpus_add_up() {
    let world = World::with(bitmap());
    let shared = |threads: Option<NonZeroUsize>| {
        run(async {
            let builder = world.reader(PIPELINE).objects(listed(64)).mode(Mode::Auto);
            let builder = builder.batch_size(16);
            let builder = match threads {
                Some(threads) => builder.threads(threads),
                None => builder,
            };
            let mut reader = builder.build().await.unwrap();
            reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap();
            let planned = reader.plan().unwrap();
            let tiers = planned.decision.tiers;
            assert_eq!(
                planned.to_string().contains("the same ones"),
                tiers.shared,
                "{planned}"
            );
            tiers.shared
        })
    };
    let file = |path: &str| std::fs::read_to_string(path).unwrap();
    let status = file("/proc/self/status");
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let threads = std::thread::available_parallelism().unwrap().get();
    // Not where a quota has less than these CPUs.
    let boot_id = file("/proc/sys/kernel/random/boot_id");
    let all = pushdown::wire::cpus(&boot_id, allowed.unwrap(), threads).is_some();
    assert_eq!(shared(None), all);
    if threads > 1 {
        assert!(!shared(Some(NonZeroUsize::MIN)), "CPUs are left to the gateway");
    }
}
