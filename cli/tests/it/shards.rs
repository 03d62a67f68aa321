//! `pushdown ls`, `pack` and `index`.

use std::{
    fs, iter,
    path::{Path, PathBuf},
};

use pushdown::{
    Limits,
    shard::{EntryCursor, ShardLimits, TarWriter},
};
use pushdown_client::{
    shards::ShardIndex,
    store::{Credentials, Store},
};
use pushdown_testkit::{ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World};
use serde_json::{Value, json};

use super::cli::run_command;

/// Archives that Python's tarfile and zipfile, GNU tar and Info-ZIP wrote, with the members that Python finds in them.
fn golden() -> Vec<(String, Vec<u8>, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pushdown/shard/tests/golden");
    let cases = fs::read(folder.join("members.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&cases).unwrap();
    let readable = cases.into_iter().filter(|case| case["members"].is_array());
    let golden = readable.map(|case| {
        let file = case["file"].as_str().unwrap().to_owned();
        let shard = fs::read(folder.join(&file)).unwrap();
        (file, shard, case["members"].clone())
    });
    golden.collect()
}

/// The output of a command that succeeds.
fn stdout(world: &World, arguments: &[&str]) -> String {
    let output = run_command(world, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(world: &World, arguments: &[&str]) -> Value {
    let output = stdout(world, &[arguments, &["--json"]].concat());
    serde_json::from_str(&output).unwrap()
}

/// The exit code and the error of a command that fails.
fn failure(world: &World, arguments: &[&str]) -> (i32, String) {
    let output = run_command(world, arguments);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// The objects of the bucket under a prefix.
fn stored(world: &World, prefix: &str) -> Objects {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let store = Store::builder()
            .endpoint(world.endpoint())
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
        let store = store.build().await.unwrap();
        let mut objects = Objects::new();
        for object in store.list_objects(BUCKET, prefix).await.unwrap().iter() {
            let bytes = store.get(BUCKET, object.key, &Limits::default()).await.unwrap();
            objects.insert(object.key.to_owned(), bytes.to_vec());
        }
        objects
    })
}

/// A folder with samples of an image and a class, and a file without extension.
fn write_samples(folder: &Path) {
    for class in ["cats", "dogs"] {
        fs::create_dir_all(folder.join(class)).unwrap();
        for number in 0..5 {
            let path = folder.join(class).join(format!("{number:03}"));
            fs::write(path.with_extension("jpg"), vec![b'j'; 3000 + 700 * number]).unwrap();
            fs::write(path.with_extension("cls"), class).unwrap();
        }
    }
    fs::write(folder.join("LICENSE"), b"").unwrap();
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn member_names(shard: &[u8]) -> Vec<String> {
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(shard.to_vec().into());
    let members = iter::from_fn(|| cursor.next_member().unwrap());
    let names = members.map(|member| member.name).collect();
    cursor.finish(shard.len() as u64).unwrap();
    names
}

#[test]
fn members_are_those_that_python_finds() {
    let golden = golden();
    let objects = golden
        .iter()
        .map(|(file, shard, _)| (file.clone(), shard.clone()));
    let world = World::with_objects(objects.collect()).unwrap();
    let mut count = 0;
    for (file, _, expected) in &golden {
        let members = json_of(&world, &["ls", "--members", &format!("s3://photos/{file}")]);
        let members: Value = members
            .as_array()
            .unwrap()
            .iter()
            .map(|member| {
                json!([
                    member["name"],
                    member["offset"],
                    member["header_bytes"],
                    member["size"]
                ])
            })
            .collect();
        assert_eq!(&members, expected, "{file}");
        count += expected.as_array().unwrap().len();
    }
    let list = world.folder().join("list.parquet");
    let report = json_of(&world, &["index", "s3://photos/", "-o", list.to_str().unwrap()]);
    assert_eq!(
        (&report["shards"], &report["members"]),
        (&golden.len().into(), &count.into())
    );
    let index = ShardIndex::load(&list).unwrap();
    assert_eq!((index.len(), index.bucket()), (count, "photos"));
    // The links, devices and pipes.
    assert_eq!((&report["left_out"], index.left_out()), (&5.into(), 5));
}

#[test]
fn index_names_what_is_left_out() {
    let mut writer = TarWriter::new(Vec::new());
    writer.append("a\tb.jpg", b"1").unwrap();
    writer.append("c.jpg", b"2").unwrap();
    let mut shard = writer.finish().unwrap();
    // A letter of Latin-1, and the checksum for it.
    shard[2] = 0xe4;
    let sum: u32 = shard[..148]
        .iter()
        .chain(&shard[156..512])
        .map(|byte| u32::from(*byte))
        .sum();
    shard[148..154].copy_from_slice(format!("{:06o}", sum + 8 * 32).as_bytes());
    let gzip = [&b"\x1f\x8b\x08\0"[..], &[7; 2000]].concat();
    let objects = [("a.tar", shard), ("b.tar", gzip)].map(|(key, object)| (key.to_owned(), object));
    let world = World::with_objects(objects.into()).unwrap();
    let list = world.folder().join("list.parquet");
    let list = list.to_str().unwrap();
    let output = run_command(&world, &["index", "s3://photos/a.tar", "-o", list]);
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        stdout.contains("1 member in 1 shard") && stdout.contains("1 member left out"),
        "{stdout}"
    );
    let expected =
        "left out of the shards of s3://photos: 1 member: a.tar `a\\t\\xe4.jpg` (a name that is not UTF-8)";
    assert_eq!(stderr.matches(expected).count(), 1, "{stderr}");
    let (code, error) = failure(&world, &["index", "s3://photos/b.tar", "-o", list]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("the object is compressed by gzip"), "{error}");
}

#[test]
fn ls_prints_a_line_for_each_object_or_member() {
    let mut writer = TarWriter::new(Vec::new());
    writer.append("a.cls", b"7").unwrap();
    writer.append("a.jpg", &[0; 600]).unwrap();
    let shard = writer.finish().unwrap();
    let bytes = shard.len();
    let objects = [("x/a.tar", shard), ("x/b.txt", b"text".to_vec())];
    let objects = objects.map(|(key, object)| (key.to_owned(), object));
    let world = World::with_objects(objects.into()).unwrap();
    assert_eq!(
        stdout(&world, &["ls", "s3://photos/x/"]),
        format!("{bytes}  x/a.tar\n   4  x/b.txt\n")
    );
    let listed = json_of(&world, &["ls", "s3://photos/x/b"]);
    assert_eq!(
        (&listed[0]["key"], &listed[0]["bytes"]),
        (&json!("x/b.txt"), &json!(4))
    );
    assert_eq!(
        stdout(&world, &["ls", "--members", "s3://photos/x/a.tar"]),
        "offset  header_bytes  size  name\n     0           512     1  a.cls\n  1024           512   600  a.jpg\n"
    );
    let (code, error) = failure(&world, &["ls", "--members", "s3://photos/x/"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("found the prefix s3://photos/x/, expected a shard"),
        "{error}"
    );
    let (code, error) = failure(&world, &["ls", "--members", "s3://photos/x/b.txt"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("expected a key that ends in .tar or .zip"),
        "{error}"
    );
}

#[test]
fn packed_shards_are_equal_for_every_source_and_target() {
    let world = World::with_objects(Objects::new()).unwrap();
    let source = world.folder().join("source");
    write_samples(&source);
    for path in ["LICENSE", "cats/000.cls", "cats/000.jpg", "dogs/004.jpg"] {
        world
            .put(&format!("loose/{path}"), &fs::read(source.join(path)).unwrap())
            .unwrap();
    }
    let source = source.to_str().unwrap();
    let folder = |name: &str| world.folder().join(name);
    let pack = |source: &str, output: &str| {
        let arguments = [
            "pack",
            source,
            "-o",
            output,
            "--shard-samples",
            "4",
            "--shard-bytes",
            "30000",
        ];
        json_of(&world, &arguments)
    };
    let local = |name: &str| format!("{}/train-%03d.tar", folder(name).display());

    let report = pack(source, &local("first"));
    let shards = files_in(&folder("first"));
    assert_eq!(report["samples"], 11);
    assert_eq!(report["files"], 21);
    assert_eq!(report["shards"], shards.len());
    let sizes = shards.iter().map(|shard| fs::metadata(shard).unwrap().len());
    assert_eq!(report["bytes"], sizes.clone().sum::<u64>());
    assert!(
        sizes.clone().all(|bytes| bytes <= 30_000),
        "{:?}",
        sizes.collect::<Vec<_>>()
    );
    assert!(shards[0].ends_with("train-000.tar"), "{shards:?}");

    let packed: Vec<_> = shards
        .iter()
        .map(|shard| member_names(&fs::read(shard).unwrap()))
        .collect();
    assert_eq!(
        packed[0],
        [
            "LICENSE",
            "cats/000.cls",
            "cats/000.jpg",
            "cats/001.cls",
            "cats/001.jpg",
            "cats/002.cls",
            "cats/002.jpg"
        ]
    );
    assert!(packed.concat().is_sorted());

    pack(source, &local("second"));
    pack(source, "s3://photos/shards/train-%03d.tar");
    let objects = stored(&world, "shards/");
    assert_eq!(objects.len(), shards.len());
    for (shard, other) in shards.iter().zip(files_in(&folder("second"))) {
        let bytes = fs::read(shard).unwrap();
        assert!(bytes == fs::read(other).unwrap(), "{}", shard.display());
        let key = format!("shards/{}", shard.file_name().unwrap().to_str().unwrap());
        assert!(bytes == objects[&key], "{key}");
    }

    let report = pack("s3://photos/loose/", &local("loose"));
    assert_eq!((&report["samples"], &report["files"]), (&json!(3), &json!(4)));
    let shard = fs::read(folder("loose").join("train-000.tar")).unwrap();
    assert_eq!(
        member_names(&shard),
        ["LICENSE", "cats/000.cls", "cats/000.jpg", "dogs/004.jpg"]
    );
    let list = folder("list.parquet");
    let pattern = format!("s3://photos/shards/train-{{000..{:03}}}.tar", shards.len() - 1);
    let report = json_of(&world, &["index", &pattern, "-o", list.to_str().unwrap()]);
    assert_eq!(
        (&report["shards"], &report["members"]),
        (&json!(shards.len()), &json!(21))
    );
}

#[test]
fn pack_and_index_refuse_what_would_be_wrong() {
    let world = World::with_objects([("a.tar.gz".to_owned(), b"x".to_vec())].into()).unwrap();
    let (source, target) = (world.folder().join("source"), world.folder().join("target"));
    write_samples(&source);
    let source = source.to_str().unwrap();
    let output = format!("{}/%d.tar", target.display());
    stdout(&world, &["pack", source, "-o", &output]);
    fs::create_dir(world.folder().join("empty")).unwrap();
    let empty = world.folder().join("empty");
    let list = world.folder().join("list.parquet");
    let list = list.to_str().unwrap();
    for (arguments, code, expected) in [
        (
            &["pack", source, "-o", &output][..],
            2,
            "0.tar, expected no shard ",
        ),
        (
            &["pack", source, "-o", "s3://photos/train.tar"],
            2,
            "expected `%06d`",
        ),
        (
            &["pack", "s3://photos/a", "-o", "x-%d.tar"],
            2,
            "expected one that ends in `/`",
        ),
        (
            &["pack", empty.to_str().unwrap(), "-o", "x-%d.tar"],
            1,
            "no files found in ",
        ),
        (
            &["index", "s3://photos/a.tar.gz", "-o", list],
            2,
            "a compressed tar",
        ),
        (
            &["index", "s3://photos/a.tar.xz", "-o", list],
            2,
            "compressed by bzip2 or xz, which is not supported",
        ),
        (
            &["index", "s3://photos/none/", "-o", list],
            1,
            "no shards found under s3://photos/none/",
        ),
        (&["index", "s3://photos/{a", "-o", list], 2, "invalid braces"),
        (
            &["index", "s3://photos/a.tar", "-o", "no/such/folder/x.parquet"],
            2,
            "there is no folder no/such/folder",
        ),
        (
            &["index", "s3://photos/missing.tar", "-o", list],
            1,
            "missing.tar: 404 NoSuchKey",
        ),
    ] {
        let (found, error) = failure(&world, arguments);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(expected), "{error}");
    }
    assert!(!Path::new(list).exists());
    assert!(
        files_in(&target)
            .iter()
            .all(|path| path.extension().is_some_and(|end| end == "tar"))
    );
}
