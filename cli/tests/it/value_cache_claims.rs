//! Processes that share a value cache: one of them fetches each value, and nobody waits for one that was killed.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pushdown_testkit::{Objects, RelayAction, Throttle, World, eventually, faulty_relay, photos};
use serde_json::Value;

use super::cli::pushdown;

const PIPELINE: &str = "decode | resize(short=40) | center_crop(16) | to_float | cast(f16)";
const COUNT: u64 = 60;
/// The lease of a claim.
const LEASE: Duration = Duration::from_secs(30);

/// Photos with more bytes than the value of the pipeline.
fn world() -> World {
    let large: Vec<_> = photos()
        .unwrap()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && bytes.len() > 5_000)
        .collect();
    let objects: Objects = (0..60)
        .map(|index| {
            let (name, bytes) = &large[index % large.len()];
            (format!("{index:03}-{name}"), bytes.clone())
        })
        .collect();
    World::with_objects(objects).unwrap()
}

/// `pushdown read` of all objects with a cache folder.
fn read(endpoint: SocketAddr, cache: &Path, seed: &str) -> Command {
    let arguments = [
        "read",
        "s3://photos/",
        "-p",
        PIPELINE,
        "--batch-size",
        "4",
        "--json",
        "--seed",
        seed,
        "--value-cache",
    ];
    let mut command = pushdown(&arguments);
    command
        .arg(cache)
        .env("PUSHDOWN_ENDPOINT", format!("http://{endpoint}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The report of a process that has read everything.
fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["samples"], &report["errors"]),
        (&COUNT.into(), &0.into())
    );
    report
}

/// Values that these processes have fetched.
fn fetched(reports: &[Value]) -> u64 {
    let fetched = |report: &Value| COUNT - report["cache_hits"].as_u64().unwrap();
    reports.iter().map(fetched).sum()
}

/// The numbers of values and of claims in a cache folder.
fn values_and_claims(cache: &Path) -> (u64, u64) {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let (mut values, mut claims) = (0, 0);
    for file in entries(cache).flat_map(|folder| entries(&folder.path())) {
        match file.path().extension().and_then(|extension| extension.to_str()) {
            None => values += 1,
            Some("claim") => claims += 1,
            Some(_) => {}
        }
    }
    (values, claims)
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "compared with a factor of two")]
fn four_processes_fetch_each_value_once() {
    let world = world();
    let stored: u64 = world.objects.values().map(|object| object.len() as u64).sum();
    let (throttle, link) = Throttle::start(world.gateway.listen()).unwrap();
    // The epoch takes seconds, so that the processes read at the same time.
    throttle.set_rate(60_000);
    for (order, seeds) in [("one order", ["1"; 4]), ("other orders", ["1", "2", "3", "4"])] {
        let cache = world.folder().join(order);
        let received = || {
            let name = "pushdown_store_received_bytes_total";
            world.gateway.metric(name).unwrap()
        };
        let before = received();
        let children = seeds.map(|seed| read(link, &cache, seed).spawn().unwrap());
        let reports = children.map(report);
        let fetched = fetched(&reports);
        assert!(
            (COUNT..=COUNT * 105 / 100).contains(&fetched),
            "{order}: {fetched}: {reports:?}"
        );
        for report in &reports {
            assert_eq!(report["not_cached"], serde_json::json!({}), "{order}");
        }
        // Four listings are less than the objects.
        let received = received() - before;
        assert!(received < 2.0 * stored as f64, "{order}: {received} of {stored}");
        assert_eq!(values_and_claims(&cache), (COUNT, 0), "{order}");
    }
}

#[test]
fn the_claims_of_a_killed_process_are_taken_over() {
    let world = world();
    let cache = world.folder().join("cache");
    // The first process waits for a gateway that is overloaded.
    let silent = faulty_relay(world.gateway.listen(), |_| RelayAction::SlowDown).unwrap();
    let mut holder = read(silent.address(), &cache, "1").spawn().unwrap();
    eventually("the first process holds claims", Duration::from_secs(20), || {
        Ok((values_and_claims(&cache).1 >= 4).then_some(()))
    })
    .unwrap();
    let children = ["1", "1", "2"].map(|seed| read(world.gateway.listen(), &cache, seed).spawn().unwrap());
    // All that nobody holds is fetched meanwhile.
    eventually(
        "the others wait for the first one",
        Duration::from_secs(20),
        || {
            let (values, claims) = values_and_claims(&cache);
            Ok((values > 0 && values + claims >= COUNT).then_some(()))
        },
    )
    .unwrap();
    let killed_at = Instant::now();
    holder.kill().unwrap();
    let reports = children.map(report);
    assert!(killed_at.elapsed() < LEASE / 2, "{:?}", killed_at.elapsed());
    holder.wait().unwrap();
    let fetched = fetched(&reports);
    assert!((COUNT..=COUNT * 105 / 100).contains(&fetched), "{fetched}");
    assert_eq!(values_and_claims(&cache), (COUNT, 0));
}
