//! The members of shards are found, by few range reads of one version of each shard.

use std::{net::SocketAddr, ops::Range};

use pushdown::shard::TarWriter;
use pushdown_client::{
    ErrorKind,
    shards::{ColumnSelection, IndexProgress, ShardIndex},
    store::{Credentials, Objects, Store},
};
use pushdown_exec::sync::Mutex;
use pushdown_testkit::{ScriptedOrigin, ranged};

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, run};

/// Name and content of a member.
type File = (String, Vec<u8>);

/// Groups of an image and a class. Some names need an extension header.
fn files(start: usize, count: usize) -> Vec<File> {
    let folder = "f".repeat(120);
    let numbers = start..start + count;
    let groups = numbers.flat_map(|number| {
        let name = if number.is_multiple_of(3) {
            format!("{folder}/{number:04}")
        } else {
            format!("{number:04}")
        };
        let content = vec![b'j'; 1000 + 37 * number];
        [
            (format!("{name}.jpg"), content),
            (format!("{name}.cls"), number.to_string().into_bytes()),
        ]
    });
    groups.collect()
}

fn tar(files: &[File]) -> Vec<u8> {
    let mut writer = TarWriter::new(Vec::new());
    for (name, content) in files {
        writer.append(name, content).unwrap();
    }
    writer.finish().unwrap()
}

/// A zip of stored entries.
fn zip(files: &[File]) -> Vec<u8> {
    let le16 = |value: usize| u16::try_from(value).unwrap().to_le_bytes();
    let le32 = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let offset = zip.len();
        let mut entry = Vec::new();
        // Version, flags, method, time and date, checksum, sizes, length of the name, no extra field.
        entry.extend([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
        entry.extend(crc32fast::hash(content).to_le_bytes());
        entry.extend(le32(content.len()));
        entry.extend(le32(content.len()));
        entry.extend(le16(name.len()));
        entry.extend([0, 0]);
        zip.extend(*b"PK\x03\x04");
        zip.extend(&entry);
        zip.extend(name.as_bytes());
        zip.extend(content);
        directory.extend(*b"PK\x01\x02\x14\0");
        directory.extend(&entry);
        // No comment, disk 0, no attributes.
        directory.extend([0; 10]);
        directory.extend(le32(offset));
        directory.extend(name.as_bytes());
    }
    let start = zip.len();
    zip.extend(&directory);
    zip.extend(*b"PK\x05\x06\0\0\0\0");
    zip.extend(le16(files.len()));
    zip.extend(le16(files.len()));
    zip.extend(le32(directory.len()));
    zip.extend(le32(start));
    zip.extend([0, 0]);
    zip
}

fn store(address: SocketAddr) -> Store {
    let store = Store::builder()
        .endpoint(format!("http://{address}"))
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
    run(store.build()).unwrap()
}

fn index(store: &Store, keys: &[&str]) -> pushdown_client::Result<ShardIndex> {
    run(store.index_shards(&Objects::from_keys(BUCKET, keys), |_| ()))
}

/// An origin that serves one object to all requests.
fn origin(object: Vec<u8>) -> ScriptedOrigin {
    ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one")).unwrap()
}

/// The ranges requested from an origin, after the first request for the end of the object.
fn requested(origin: &ScriptedOrigin) -> Vec<Range<u64>> {
    let range = |head: &String| {
        let (_, range) = head.split_once("bytes=")?;
        let (first, last) = range.lines().next()?.split_once('-')?;
        Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
    };
    origin.requests().iter().filter_map(range).collect()
}

#[test]
fn an_index_has_the_members_of_all_shards() {
    let shards = [
        ("a.tar", files(0, 30)),
        ("b.zip", files(30, 20)),
        ("c.tar", files(50, 1)),
    ];
    let packed = |key: &str, files: &[File]| if key == "b.zip" { zip(files) } else { tar(files) };
    let objects = shards
        .iter()
        .map(|(key, files)| ((*key).to_owned(), packed(key, files)));
    let world = World::with_objects(objects.collect());
    let store = store(world.gateway.listen());
    let steps = Mutex::new(Vec::new());
    let listed = run(store.list_objects(BUCKET, "")).unwrap();
    let index = run(store.index_shards(&listed, |step| steps.lock().push(step))).unwrap();

    let expected: Vec<(&str, &String, &Vec<u8>)> = shards
        .iter()
        .flat_map(|(key, files)| files.iter().map(move |(name, content)| (*key, name, content)))
        .collect();
    assert_eq!(index.len(), expected.len());
    for (object, (key, name, content)) in index.members().iter().zip(expected) {
        let member = object.member.unwrap();
        assert_eq!((object.key, member.name), (key, name.as_str()));
        let found = member.range.content();
        let found = usize::try_from(found.start).unwrap()..usize::try_from(found.end).unwrap();
        assert!(world.objects[key][found] == content[..], "{key} {name}");
    }
    let keys: Vec<_> = index.shards().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a.tar", "b.zip", "c.tar"]);
    assert!(
        index
            .shards()
            .all(|(_, etag)| etag.starts_with('"') && etag.len() > 2)
    );

    let steps = steps.into_inner();
    let last = IndexProgress {
        shards: 3,
        members: 102,
    };
    assert_eq!(steps.last(), Some(&last));
    assert!(steps.is_sorted_by_key(|step| (step.shards, step.members)));

    let selection = ColumnSelection {
        value: None,
        further: vec!["cls".to_owned()],
    };
    let samples = index.samples(&selection).unwrap();
    assert_eq!(samples.len(), 51);
    assert_eq!(samples.column_member(40, 0).unwrap().name, "0040.cls");
    let one = run(store.shard_members(BUCKET, "c.tar")).unwrap();
    assert_eq!(one, index.select_shards(&["c.tar"]).unwrap());
}

/// Of long contents only the headers are read; short ones are streamed by few reads.
#[test]
fn long_contents_are_skipped() {
    let long = (0..4).map(|number| (format!("{number}.bin"), vec![1; 1 << 20]));
    let short = (0..300).map(|number| (format!("{number}.cls"), vec![2; 100]));
    let origin = origin(tar(&long.chain(short).collect::<Vec<_>>()));
    assert_eq!(index(&store(origin.address()), &["a.tar"]).unwrap().len(), 304);
    let ranges = requested(&origin);
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!(ranges.len() <= 10 && bytes < 1 << 20, "{ranges:?}");
    let conditions = origin.requests();
    let is_conditional = |head: &String| head.to_lowercase().contains("if-match: \"one\"");
    assert!(conditions[1..].iter().all(is_conditional), "{conditions:?}");
}

#[test]
fn a_small_shard_is_read_at_once() {
    for object in [tar(&files(0, 5)), zip(&files(0, 5))] {
        let key = if object.starts_with(b"PK") {
            "a.zip"
        } else {
            "a.tar"
        };
        let origin = origin(object);
        assert_eq!(index(&store(origin.address()), &[key]).unwrap().len(), 10);
        assert_eq!(origin.requests().len(), 1);
    }
}

#[test]
fn a_replaced_shard_is_an_error_by_name() {
    let object = tar(&[("a.bin".to_owned(), vec![1; 1 << 20])]);
    let origin = ScriptedOrigin::start(move |exchange| {
        let etag = if exchange.earlier_requests == 0 {
            "one"
        } else {
            "two"
        };
        ranged(exchange, &object, etag)
    });
    let origin = origin.unwrap();
    let error = index(&store(origin.address()), &["train/a.tar"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sample);
    assert_eq!(
        error.to_string(),
        format!("s3://{BUCKET}/train/a.tar was replaced while it was read: read it again")
    );
}

#[test]
fn damaged_and_missing_shards_are_errors_by_name() {
    let whole = tar(&files(0, 3));
    let objects = [
        ("empty.tar", Vec::new()),
        ("text.tar", vec![b'x'; 2048]),
        ("text.zip", vec![b'x'; 2048]),
        ("truncated.tar", whole[..1600].to_vec()),
    ];
    let world = World::with_objects(objects.map(|(key, object)| (key.to_owned(), object)).into());
    let store = store(world.gateway.listen());
    for key in world.objects.keys() {
        let error = index(&store, &[key]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample, "{error}");
        let expected = format!("cannot index s3://{BUCKET}/{key}: ");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    let error = index(&store, &["missing.tar"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        error.to_string().contains("missing.tar: 404 NoSuchKey"),
        "{error}"
    );
}

#[test]
fn other_objects_are_refused_before_any_request() {
    let origin = origin(Vec::new());
    let store = store(origin.address());
    let refused = |keys: &[&str]| {
        let error = index(&store, keys).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    for key in ["a.tar.gz", "a.tgz", "a.tar.zst"] {
        let error = refused(&["b.tar", key]);
        assert!(
            error.starts_with(&format!("cannot index s3://{BUCKET}/{key}: "))
                && error.contains("a compressed tar, whose members cannot be read by ranges"),
            "{error}"
        );
    }
    assert_eq!(
        refused(&["a.jpg"]),
        format!(
            "cannot index s3://{BUCKET}/a.jpg: expected a key that ends in .tar or .zip, found another object"
        )
    );
    assert_eq!(
        refused(&["a.tar", "a.tar"]),
        format!("s3://{BUCKET}/a.tar is named twice, expected each shard once")
    );
    assert!(origin.requests().is_empty());
}

/// Without ranges no member could be read later.
#[test]
fn a_store_without_ranges_is_refused() {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "a tar")).unwrap();
    let error = index(&store(origin.address()), &["a.tar"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(
        error.to_string().contains("does not support range requests"),
        "{error}"
    );
}
