//! Members of shards as samples: `pushdown read --index` and `pushdown get --member`.

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

#[test]
fn get_reads_one_member() {
    let world = world();
    let photo = photos().unwrap().into_values().nth(1).unwrap();
    world.put("loose.jpg", &photo).unwrap();
    let list = world.folder().join("list.parquet");
    let list = list.to_str().unwrap();
    let shard = "s3://photos/train-000000.tar";
    run_command(&world, &["index", shard, "-o", list]);
    let get = |object: &str, pipeline: &str, more: &[&str]| {
        let arguments = ["get", object, "-p", pipeline, "--accept", "raw", "--seed", "7"];
        let output = run_command(&world, &[&arguments[..], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), output.stdout, stderr)
    };
    let member = ["--member", "01.jpg"];
    let ways = [&[][..], &["--index", list], &["--plain"]];
    let values = |pipeline: &str| {
        ways.map(|more| {
            let (code, value, stderr) = get(shard, pipeline, &[&member[..], more].concat());
            assert_eq!(code, Some(0), "{more:?}: {stderr}");
            value
        })
    };
    let (_, loose, _) = get("s3://photos/loose.jpg", SHORT, &[]);
    assert_eq!(loose.len(), 32 * 32 * 3);
    assert!(values(SHORT).iter().all(|value| *value == loose));
    let random = values("decode | resize(64, 64) | random_crop(32)");
    assert!(random.iter().all(|value| *value == random[0]));

    for (more, expected) in [
        (
            &["--member", "no.jpg"][..],
            "found no member `no.jpg` of s3://photos/train-000000.tar: ",
        ),
        (&["--index", list], "--member <NAME>"),
    ] {
        let (code, _, stderr) = get(shard, SHORT, more);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let (code, _, stderr) = get(shard, "select(limit=1)", &member);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--member is not for tables"), "{stderr}");
}

#[test]
fn the_name_of_a_member_may_begin_with_a_hyphen() {
    let photo = photos().unwrap().into_values().next().unwrap();
    let names = ["-1.jpg", "--plain", "-"];
    let mut tar = TarWriter::new(Vec::new());
    for name in names {
        tar.append(name, &photo).unwrap();
    }
    let shard = ("-shard.tar".to_owned(), tar.finish().unwrap());
    let world = World::with_objects(Objects::from([shard])).unwrap();
    for name in names {
        let joined = format!("--member={name}");
        for arguments in [
            &["get", "s3://photos/-shard.tar", "-p", SHORT, "--member", name][..],
            &["get", "s3://photos/-shard.tar", "-p", SHORT, &joined],
            &[
                "get",
                "--member",
                name,
                "-p",
                SHORT,
                "--",
                "s3://photos/-shard.tar",
            ],
        ] {
            let found = run_command(&world, arguments);
            assert!(found.status.success() && !found.stdout.is_empty(), "{found:?}");
        }
    }
}
