//! `pushdown read --index`: members of shards as samples.

use std::process::Output;

use pushdown::shard::TarWriter;
use pushdown_testkit::{Objects, World, photos};

use super::cli::pushdown;

const SHORT: &str = "decode | resize(short=40) | center_crop(32)";
/// Groups of members in each of the three shards.
const GROUPS: usize = 4;

/// A gateway with three shards. The last member of the last shard is no photo.
fn world() -> World {
    let photos: Vec<_> = photos().unwrap().into_values().take(3 * GROUPS).collect();
    let shards = photos.chunks(GROUPS).enumerate().map(|(number, photos)| {
        let mut tar = TarWriter::new(Vec::new());
        for (nth, photo) in photos.iter().enumerate() {
            tar.append(&format!("{number}{nth}.cls"), b"7").unwrap();
            let is_text = (number, nth) == (2, GROUPS - 1);
            let content = if is_text { &b"text"[..] } else { photo };
            tar.append(&format!("{number}{nth}.jpg"), content).unwrap();
        }
        (format!("train-{number:06}.tar"), tar.finish().unwrap())
    });
    World::with_objects(shards.collect::<Objects>()).unwrap()
}

fn run_command(world: &World, arguments: &[&str]) -> Output {
    pushdown(arguments)
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap()
}

#[test]
fn members_of_the_named_shards_are_read() {
    let world = world();
    let list = world.folder().join("list.parquet");
    let list = list.to_str().unwrap();
    let indexed = run_command(
        &world,
        &["index", "s3://photos/train-{000000..000002}.tar", "-o", list],
    );
    assert!(indexed.status.success(), "{indexed:?}");
    for (shards, order, mode, samples, code) in [
        ("train-{000000..000001}.tar", "global", "--auto", 8, 0),
        ("train-000001.tar", "shards", "--plain", 4, 0),
        ("train-{000002,000000}.tar", "shards", "--auto", 7, 1),
        ("", "global", "--plain", 11, 1),
    ] {
        let location = format!("s3://photos/{shards}");
        let arguments = [
            "read",
            &location,
            "-p",
            SHORT,
            "--index",
            list,
            "--columns",
            "cls",
            "--seed",
            "7",
            "--order",
            order,
            "--buffer",
            "3",
            "--json",
            mode,
        ];
        let output = run_command(&world, &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{location}: {stderr}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["samples"], samples, "{location}");
        let failed = "train-000002.tar member 23.jpg: UndecodableObject: ";
        assert_eq!(stderr.starts_with(failed), code == 1, "{stderr}");
    }
}

#[test]
fn shards_without_an_index_are_refused_with_a_command() {
    let world = world();
    let list = world.folder().join("list.parquet");
    let list = list.to_str().unwrap();
    let output = run_command(&world, &["read", "s3://photos/", "-p", SHORT, "--seed", "7"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("run `pushdown index 's3://photos/train-000000.tar' -o list.parquet`"),
        "{stderr}"
    );
    run_command(&world, &["index", "s3://photos/train-000000.tar", "-o", list]);
    for (location, expected) in [
        (
            "s3://photos/train-{000000..000001}.tar",
            "s3://photos/train-000001.tar",
        ),
        ("s3://other/train-000000.tar", "has shards of the bucket photos"),
    ] {
        let output = run_command(&world, &["read", location, "-p", SHORT, "--index", list]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let output = run_command(&world, &["read", "s3://photos/", "-p", SHORT, "--columns", "cls"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
