//! `pushdown read --order shards` without an index: whole shards, also compressed ones.

use std::{io::Write as _, process::Output};

use flate2::{Compression, write::GzEncoder};
use pushdown::shard::TarWriter;
use pushdown_testkit::{Objects, World, photos};

use super::cli::pushdown;

const SHORT: &str = "decode | resize(short=40) | center_crop(32)";
/// Groups of members in each of the three shards.
const GROUPS: usize = 4;

/// A gateway with three shards, of which the last one is compressed and ends with a member that is no photo.
fn world() -> World {
    let photos: Vec<_> = photos().unwrap().into_values().take(3 * GROUPS).collect();
    let shards = photos.chunks(GROUPS).enumerate().map(|(number, photos)| {
        let mut tar = TarWriter::new(Vec::new());
        for (nth, photo) in photos.iter().enumerate() {
            let is_text = (number, nth) == (2, GROUPS - 1);
            let content = if is_text { &b"text"[..] } else { photo };
            tar.append(&format!("{number}{nth}.jpg"), content).unwrap();
        }
        let tar = tar.finish().unwrap();
        if number < 2 {
            return (format!("train-{number}.tar"), tar);
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&tar).unwrap();
        (format!("train-{number}.tar.gz"), gzip.finish().unwrap())
    });
    World::with_objects(shards.collect::<Objects>()).unwrap()
}

fn read(world: &World, location: &str, arguments: &[&str]) -> Output {
    pushdown(&["read", location, "-p", SHORT])
        .args(arguments)
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap()
}

#[test]
fn shards_are_read_without_an_index() {
    let world = world();
    for (location, samples, code) in [
        ("s3://photos/train-{0..1}.tar", 8, 0),
        ("s3://photos/train-2.tar.gz", 3, 1),
        ("s3://photos/", 11, 1),
    ] {
        let arguments = ["--order", "shards", "--buffer", "3", "--seed", "7", "--json"];
        let output = read(&world, location, &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{location}: {stderr}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["samples"], samples, "{location}");
        assert_eq!(report["mode"], "plain");
        let failed = "train-2.tar.gz member 23.jpg: UndecodableObject: ";
        assert_eq!(stderr.starts_with(failed), code == 1, "{stderr}");
    }
}

#[test]
fn what_cannot_be_streamed_is_refused_with_what_to_do() {
    let world = world();
    let by_shards = &["--order", "shards"][..];
    for (location, arguments, code, expected) in [
        ("s3://photos/train-2.tar.gz", &[][..], 2, "`--order shards`"),
        (
            "s3://photos/train-0.tar",
            &["--order", "shards", "--auto"],
            2,
            "--auto requires --index",
        ),
        (
            "s3://photos/photo.jpg",
            by_shards,
            2,
            "found s3://photos/photo.jpg",
        ),
        (
            "s3://photos/other/",
            by_shards,
            2,
            "found no shards in s3://photos",
        ),
        (
            "s3://photos/train-0.tar",
            &["--order", "shards", "--column", "gif"],
            1,
            "found jpg",
        ),
    ] {
        let output = read(&world, location, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{location}: {stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
