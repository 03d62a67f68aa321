//! `pushdown warm` of the objects of an S3 Inventory.

use std::{io::Write as _, process::Output};

use flate2::{Compression, write::GzEncoder};
use md5::{Digest as _, Md5};
use pushdown_testkit::{BUCKET, World, photos};
use serde_json::{Value, json};

use super::cli::{pushdown, run_command};

const MANIFEST: &str = "s3://photos/lists/manifest.json";

/// A gateway with photos under `train/`, and with an inventory of them and of a photo that was deleted since.
fn world(deleted: &[&str]) -> World {
    let photos = photos().unwrap().into_iter().take(6);
    let photos = photos
        .map(|(name, bytes)| (format!("train/{name}"), bytes))
        .collect();
    let world = World::with_flags(photos, &["--cache-memory=64MiB".to_owned()]).unwrap();
    let listed = world
        .objects
        .keys()
        .map(String::as_str)
        .chain(deleted.iter().copied());
    let row = |key: &str| {
        format!(
            "\"{BUCKET}\",\"{}\",\"5\"\n",
            key.replace('\u{e9}', "%C3%A9").replace(' ', "+")
        )
    };
    let rows: String = listed.chain(["test/a.jpg"]).map(row).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(rows.as_bytes()).unwrap();
    let file = gzip.finish().unwrap();
    let manifest = json!({
        "sourceBucket": BUCKET,
        "destinationBucket": format!("arn:aws:s3:::{BUCKET}"),
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, Size",
        "files": [{ "key": "lists/1.csv.gz", "size": file.len(), "MD5checksum": hex::encode(Md5::digest(&file)) }],
    });
    world.put("lists/1.csv.gz", &file).unwrap();
    world
        .put("lists/manifest.json", manifest.to_string().as_bytes())
        .unwrap();
    world
}

fn warm(world: &World, prefix: &str, manifest: &str) -> (Output, String) {
    let pipeline = "decode | resize(16, 16)";
    let arguments = ["warm", prefix, "-p", pipeline, "--inventory", manifest, "--json"];
    let output = run_command(world, &arguments);
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    (output, stderr)
}

#[test]
fn the_objects_of_an_inventory_are_cached() {
    let world = world(&[]);
    let samples = world.objects.len();
    for found in [0, samples] {
        let (output, stderr) = warm(&world, "s3://photos/train/", MANIFEST);
        assert!(output.status.success(), "{stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let counts = ["samples", "cached", "found"].map(|name| report[name].clone());
        assert_eq!(counts, [samples, samples, found].map(Value::from), "{report}");
    }
}

/// An inventory may be older than the objects.
#[test]
fn objects_that_were_deleted_since_are_named() {
    let world = world(&["train/gone.jpg"]);
    let (output, stderr) = warm(&world, "s3://photos/train/", MANIFEST);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["cached"], &report["errors"]),
        (&world.objects.len().into(), &1.into())
    );
    assert!(stderr.contains("train/gone.jpg: NoSuchKey"), "{stderr}");
}

#[test]
fn inventories_that_cannot_be_used_are_named() {
    let world = world(&[]);
    for (prefix, manifest, code, expected) in [
        (
            "s3://other/",
            MANIFEST,
            2,
            "error: cannot read the inventory s3://photos/lists/manifest.json: expected an inventory of the bucket `other`, found one of `photos`",
        ),
        (
            "s3://photos/",
            "s3://photos/lists/none.json",
            1,
            "error: s3://photos/lists/none.json",
        ),
        (
            "s3://photos/none/",
            MANIFEST,
            1,
            "error: no objects found under s3://photos/none/",
        ),
        (
            "s3://photos/",
            "lists/manifest.json",
            2,
            "expected s3://bucket/key",
        ),
    ] {
        let (output, stderr) = warm(&world, prefix, manifest);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let both = [
        "warm",
        "s3://photos/",
        "-p",
        "decode",
        "--index",
        "a",
        "--inventory",
        MANIFEST,
    ];
    let output = pushdown(&both).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot be used with"), "{stderr}");
}
