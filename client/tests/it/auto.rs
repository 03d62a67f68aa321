//! Mode `auto`: plans that adapt to observations.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, PushdownReaderBuilder},
    store::{Object, Objects as ObjectList, RetryPolicy},
};
use pushdown_testkit::{Parquet, RelayAction, Throttle, faulty_relay, overloaded_relay};

use super::world::{BUCKET, Objects, World, assert_same_rows, into_rows, photos, read_rows, reader, run};

const PIPELINE: &str = "decode | resize(32, 32) | to_tensor";
pub(super) const KEY: &str = "large.bmp";

/// A BMP image of 256 x 256 pixels: 197 KB stored, 3 KB after the pipeline.
pub(super) fn bitmap() -> Objects {
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

/// The bitmap `count` times, as objects of a listing.
fn listed_bitmaps(count: usize) -> ObjectList {
    let bitmap = Object {
        key: KEY,
        bytes: Some(bitmap()[KEY].len() as u64),
        etag: None,
        member: None,
    };
    ObjectList::from_objects(BUCKET, vec![bitmap; count])
}

fn reader_of_bitmaps(address: SocketAddr) -> PushdownReaderBuilder {
    reader(&format!("http://{address}"), PIPELINE)
        .mode(Mode::Auto)
        .batch_size(32)
        .requests(2)
        .prefetch_bytes(0)
}

/// The link becomes slow in the middle of an epoch: samples read plainly before are pushed down afterwards. Every sample is read
/// once and has the value of plain reading, on either route.
#[test]
fn a_plan_adapts_to_the_link_rate() {
    let world = World::with_objects(bitmap());
    let expected = read_rows(world.reader(PIPELINE).keys([KEY]).mode(Mode::Plain));
    let (throttle, address) = Throttle::start(world.gateway.listen()).unwrap();
    run(async {
        let builder = reader_of_bitmaps(address).keys(vec![KEY; 800]);
        let mut reader = builder.build().await.unwrap();
        assert!(
            reader.plan().is_none(),
            "there is no plan before the first sample"
        );
        let mut batches: Vec<Batch> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
            if batches.len() == 10 {
                assert!(reader.plan().is_some());
                throttle.set_rate(4 << 20);
            }
        }
        let planned = reader.plan().unwrap();
        let decision = &planned.decision;
        // Buffered bytes arrive in a burst: on a busy machine the measured rate can be several times the real rate.
        assert!(decision.tiers.link_bytes_per_second < 32e6, "{planned}");
        assert!(decision.plan.fractions[0][0] < 0.05, "{planned}");
        assert!(
            planned.samples_per_second() > planned.plain_samples_per_second(),
            "{planned}"
        );
        assert!(planned.to_string().contains("% up to `"), "{planned}");
        let last = batches.last().unwrap().rows().iter();
        let plainly = last.filter(|row| row.stage == 0).count();
        assert!(plainly <= 2, "{plainly} of 32");
        let rows = into_rows(batches);
        assert_eq!(rows.len(), 800);
        for (position, row) in rows.iter().enumerate() {
            assert_eq!((row.index, row.position), (position, position as u64));
            assert!(
                row.value == expected[0].value,
                "values differ at stage {}",
                row.stage
            );
        }
        // At most the stored bytes are transferred, even before there is a plan.
        assert!(reader.stats().value_bytes <= 800 * 197_000);

        let known = reader.monitor().observations().unwrap();
        reader.close().await;
        let builder = || {
            reader_of_bitmaps(address)
                .keys(vec![KEY; 64])
                .observations(known.clone())
        };
        let mut next = builder().build().await.unwrap();
        assert_eq!(next.plan().map(|plan| plan.decision), Some(planned.decision));
        let rows = into_rows(next.by_ref().try_collect().await.unwrap());
        let plainly = rows.iter().filter(|row| row.stage == 0).count();
        assert!(
            plainly <= 4,
            "{plainly} of 64, but the plan was known before the first sample"
        );
        // The costs of another pipeline are not those.
        let other = builder().pipeline("decode | resize(8, 8)").build().await;
        assert!(other.unwrap().plan().is_none());
    });
}

/// Before there is a plan, half of the objects are requested on each route. If a slow link has not started to deliver an object
/// when the gateway is done, the value of the gateway is used.
#[test]
fn a_slow_link_delays_few_objects() {
    let world = World::with_objects(bitmap());
    let expected = read_rows(world.reader(PIPELINE).keys([KEY]).mode(Mode::Plain));
    let (throttle, address) = Throttle::start(world.gateway.listen()).unwrap();
    throttle.set_rate(1 << 20);
    run(async {
        let builder = reader(&format!("http://{address}"), PIPELINE)
            .objects(listed_bitmaps(128))
            .mode(Mode::Auto)
            .batch_size(64);
        let mut reader = builder.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_eq!(rows.len(), 128);
        assert!(rows.iter().all(|row| row.value == expected[0].value));
        let plainly = rows.iter().filter(|row| row.stage == 0).count();
        assert!((2..=24).contains(&plainly), "{plainly} of 64 were read plainly");
    });
}

/// The size of encoded values is planned after the first ones are received. They never have more bytes than their objects.
#[test]
fn encoded_values_are_pushed_down_if_they_are_smaller() {
    for (pipeline, smaller) in [
        ("decode | resize(32, 32) | encode(png)", true),
        ("decode | resize(512, 512) | encode(png)", false),
    ] {
        let world = World::with_objects(bitmap());
        let expected = read_rows(world.reader(pipeline).keys([KEY]).mode(Mode::Plain));
        let (throttle, address) = Throttle::start(world.gateway.listen()).unwrap();
        throttle.set_rate(8 << 20);
        run(async {
            let builder = reader(&format!("http://{address}"), pipeline)
                .objects(listed_bitmaps(160))
                .mode(Mode::Auto)
                .batch_size(32);
            let mut reader = builder.build().await.unwrap();
            let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
            assert!(rows.iter().all(|row| row.value == expected[0].value));
            let planned = reader.plan().unwrap();
            let plainly = planned.decision.plan.fractions[0][0];
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

/// Keys have no sizes: a value that may be larger than its photo is requested only after sizes of photos are known.
#[test]
fn keys_without_sizes_transfer_at_most_the_stored_bytes() {
    let small = photos().into_iter().filter(|(key, _)| key.starts_with("jpeg_"));
    let small: Objects = small.collect();
    assert!(small.len() >= 6 && small.values().all(|photo| photo.len() < 30_000));
    for (objects, may_be_pushed) in [(small, false), (bitmap(), true)] {
        let world = World::with_objects(objects);
        let keys: Vec<String> = world.objects.keys().cloned().cycle().take(64).collect();
        // The bitmap is larger than the pixels, and smaller than the floats.
        let pixels = 224 * 224 * 3;
        for (pipeline, last_bytes) in [
            ("decode | resize(224, 224) | to_tensor", pixels),
            ("decode | resize(224, 224) | to_float", 4 * pixels),
        ] {
            let reader = |mode: Mode| world.reader(pipeline).keys(keys.clone()).mode(mode).batch_size(8);
            let expected = read_rows(reader(Mode::Plain));
            let (found, sent) = run(async {
                let mut reader = reader(Mode::Auto)
                    .requests(1)
                    .prefetch_bytes(0)
                    .build()
                    .await
                    .unwrap();
                let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                (into_rows(batches), reader.stats().value_bytes)
            });
            assert_eq!(found.len(), expected.len());
            for (row, expected) in found.iter().zip(&expected) {
                let stored = world.objects[&*row.key].len();
                let bytes = if row.stage == 3 { last_bytes } else { pixels };
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
            assert_eq!(pushed, may_be_pushed, "{pipeline}");
        }
    }
}

/// The gateway never has a whole table in memory, so there is no plan for samples that are tables.
#[test]
fn tables_as_samples_are_read_plainly() {
    let table = Parquet {
        rows: 100,
        noise: 1,
        row_group: 50,
    };
    let table = table.write().unwrap();
    let objects = (0..8).map(|index| (format!("{index}.parquet"), table.clone()));
    let world = World::with_objects(objects.collect());
    let read = |mode| read_rows(world.reader("select(columns=[n], where='n < 50')").mode(mode));
    let found = read(Mode::Auto);
    assert!(found.iter().all(|row| row.stage == 0), "nothing is pushed down");
    assert_same_rows(&found, &read(Mode::Plain));
}

/// A plan is never worse than plain reading, so `auto` falls back to it.
#[test]
fn auto_reads_plainly_without_a_compatible_gateway() {
    let world = World::with_photos(12);
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    for action in [RelayAction::OtherEngine, RelayAction::NotFound] {
        let relay = faulty_relay(world.gateway.listen(), move |_| action).unwrap();
        run(async {
            let builder = reader(&format!("http://{}", relay.address()), PIPELINE);
            let mut reader = builder.mode(Mode::Auto).batch_size(3).build().await.unwrap();
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            assert_same_rows(&into_rows(batches), &expected);
            assert_eq!(reader.mode(), Mode::Plain, "{action:?}");
            assert_eq!(reader.stats().retries, 0);
        });
    }
}

/// A gateway that has no time delays a reader once, and is asked again by each batch.
#[test]
fn auto_reads_plainly_while_the_gateway_has_no_time() {
    let world = World::with_objects(bitmap());
    let expected = read_rows(world.reader(PIPELINE).keys([KEY; 320]).mode(Mode::Plain));
    let is_overloaded = Arc::new(AtomicBool::new(true));
    let relay = overloaded_relay(world.gateway.listen(), Arc::clone(&is_overloaded)).unwrap();
    let retry = RetryPolicy {
        attempts: 3,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
    };
    run(async {
        let builder = reader_of_bitmaps(relay.address()).objects(listed_bitmaps(320));
        let mut reader = builder.retry(retry).build().await.unwrap();
        let mut batches: Vec<Batch> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            assert!(batches.len() >= 4 || batch.rows().iter().all(|row| row.stage == 0));
            batches.push(batch);
            if batches.len() == 4 {
                is_overloaded.store(false, SeqCst);
            }
        }
        assert_eq!(reader.mode(), Mode::Auto);
        assert!(reader.stats().retries <= 4, "{:?}", reader.stats());
        let rows = into_rows(batches);
        assert!(rows.iter().any(|row| row.stage > 0), "it computes again");
        assert!(
            rows.iter()
                .map(|row| &row.value)
                .eq(expected.iter().map(|row| &row.value))
        );
    });
    // Without a plan it is an error.
    is_overloaded.store(true, SeqCst);
    let error = run(async {
        let builder = reader_of_bitmaps(relay.address())
            .mode(Mode::Pushdown)
            .objects(listed_bitmaps(32));
        builder
            .retry(retry)
            .build()
            .await
            .unwrap()
            .try_next()
            .await
            .unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// Gateway and reader of the test share all CPUs unless a flag limits them: pushing down then saves bytes but no work.
#[test]
fn tiers_on_the_same_cpus_are_planned_as_shared() {
    let world = World::with_objects(bitmap());
    let shared = |threads: Option<NonZeroUsize>| {
        run(async {
            let builder = world
                .reader(PIPELINE)
                .objects(listed_bitmaps(64))
                .mode(Mode::Auto);
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
    // False if a quota permits less than these CPUs.
    let boot_id = file("/proc/sys/kernel/random/boot_id");
    let all = pushdown::wire::cpu_fingerprint(&boot_id, allowed.unwrap(), threads).is_some();
    assert_eq!(shared(None), all);
    if threads > 1 {
        assert!(
            !shared(Some(NonZeroUsize::MIN)),
            "a reader with one thread leaves CPUs to the gateway"
        );
    }
}
