//! `pushdown read` says how many values came from the result cache of the gateway.

use pushdown_testkit::{Objects, World, photos};
use serde_json::Value;

use super::cli::pushdown;

/// So many steps that a hit is cheaper than computing also where tests run slowly.
const PIPELINE: &str = "decode | resize(800, 800) | resize(16, 16)";
const COUNT: u64 = 63;

fn world() -> World {
    let photos = photos().unwrap();
    let mut photos = photos.into_iter().filter(|(name, _)| name == "jpeg_large.jpg");
    let (_, bytes) = photos.next().unwrap();
    let objects: Objects = (0..COUNT)
        .map(|index| (format!("{index:03}.jpg"), bytes.clone()))
        .collect();
    World::with_flags(objects, &["--cache-memory=64MiB".to_owned()]).unwrap()
}

/// The output of `pushdown read` of all objects.
fn read(world: &World, arguments: &[&str]) -> String {
    let all = ["read", "s3://photos/", "-p", PIPELINE, "--seed", "1"];
    let mut command = pushdown(&[&all, arguments].concat());
    command.env("PUSHDOWN_ENDPOINT", world.endpoint());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn report(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&read(world, &[&["--json"], arguments].concat())).unwrap()
}

#[test]
fn later_jobs_have_hits_alone_and_say_so() {
    let world = world();
    let first = report(&world, &[]);
    assert_eq!(
        (&first["samples"], &first["gateway_cache_hits"]),
        (&COUNT.into(), &0.into())
    );
    for _ in 0..3 {
        let later = report(&world, &[]);
        assert_eq!(later["gateway_cache_hits"], COUNT, "{later}");
        assert_eq!(later["last_epoch"]["gateway_cache_hits"], COUNT, "{later}");
    }
    let text = read(&world, &[]);
    assert!(
        text.contains("result cache of the gateway: 63 values cached"),
        "{text}"
    );
}

/// Of all epochs and of the last one, by cache.
#[test]
fn each_epoch_has_its_counts() {
    let world = world();
    let two = report(&world, &["--epochs", "2"]);
    assert_eq!(two["gateway_cache_hits"], COUNT, "{two}");
    assert_eq!(two["last_epoch"]["gateway_cache_hits"], COUNT, "{two}");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display().to_string();
    let two = report(&world, &["--epochs", "2", "--value-cache", &folder]);
    let last = &two["last_epoch"];
    assert_eq!(two["gateway_cache_hits"], COUNT, "{two}");
    assert_eq!(
        (&last["cache_hits"], &last["gateway_cache_hits"]),
        (&COUNT.into(), &0.into())
    );
}
