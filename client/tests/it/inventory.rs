//! S3 Inventories in place of listings.

use std::{fs, io::Write as _, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use csv::{QuoteStyle, WriterBuilder};
use flate2::{Compression, write::GzEncoder};
use md5::{Digest as _, Md5};
use parquet::arrow::ArrowWriter;
use pushdown_client::{
    ErrorKind, Result,
    store::{Credentials, HiddenObjects, Object, Objects, Store},
};
use pushdown_exec::sync::Mutex;
use pushdown_s3::escapes::{encode_component, encode_path};
use pushdown_testkit::{Backend, Payload, Request, find_gateway};
use serde_json::{Value, json};

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, run};

/// The bucket of inventories.
const LISTS: &str = "lists";
/// Those of the fixture, as in the documentation of AWS.
const EXAMPLE_BUCKET: &str = "example-source-bucket";
const EXAMPLE_LISTS: &str = "example-inventory-destination-bucket";

/// A store with these buckets, and a client of it.
struct World {
    origin: pushdown_testkit::Store,
    store: Store,
}

impl World {
    fn start(backend: Backend, buckets: &[&str]) -> Self {
        let origin = backend.start(&find_gateway().unwrap()).unwrap();
        let store = Store::builder()
            .endpoint(format!("http://{}", origin.gateway.listen()))
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
        let world = Self {
            origin,
            store: run(store.build()).unwrap(),
        };
        for bucket in buckets {
            world.send("PUT", &format!("/{bucket}"), &[]);
        }
        world
    }

    fn put(&self, bucket: &str, key: &str, body: &[u8]) {
        let target = format!("/{bucket}/{}", encode_path(key.as_bytes()));
        self.send("PUT", &target, body);
    }

    /// Sends a request to the store itself.
    fn send(&self, method: &str, target: &str, body: &[u8]) {
        let address = self.origin.address;
        let request = Request::new(method, target)
            .header("Host", &address.to_string())
            .body(body);
        let request = self.origin.keys.sign(request, Payload::Signed).unwrap();
        let answer = request.send(address).unwrap();
        assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
    }

    /// Writes the manifest of these data files, and returns its URL.
    fn put_inventory(&self, format: &str, schema: &str, files: &[Vec<u8>]) -> String {
        let files = files.iter().enumerate().map(|(number, bytes)| {
            let key = format!("data/{format} {number}");
            self.put(LISTS, &key, bytes);
            json!({ "key": key, "size": bytes.len(), "MD5checksum": hex::encode(Md5::digest(bytes)) })
        });
        let manifest = json!({
            "sourceBucket": BUCKET,
            "destinationBucket": format!("arn:aws:s3:::{LISTS}"),
            "fileFormat": format,
            "fileSchema": schema,
            "files": files.collect::<Vec<Value>>(),
        });
        self.put_manifest(&manifest)
    }

    fn put_manifest(&self, manifest: &Value) -> String {
        self.put(LISTS, "manifest.json", &serde_json::to_vec(manifest).unwrap());
        format!("s3://{LISTS}/manifest.json")
    }

    fn read(&self, manifest: &str, prefix: &str, hidden: HiddenObjects) -> Result<Objects> {
        run(self
            .store
            .read_inventory(manifest, BUCKET, prefix, hidden, |_| ()))
    }

    /// The error of an inventory.
    fn error(&self, manifest: &str) -> (ErrorKind, String) {
        let error = self.read(manifest, "", HiddenObjects::Listed).unwrap_err();
        (error.kind(), error.to_string())
    }
}

/// The schema of `csv_file`.
const CSV_SCHEMA: &str = "Bucket, Key, Size, ETag";

/// As AWS writes it.
fn csv_file(objects: &Objects) -> Vec<u8> {
    let gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Always)
        .from_writer(gzip);
    for object in objects.iter() {
        let key = encode_component(object.key.as_bytes()).replace("%20", "+");
        let size = object.bytes.unwrap().to_string();
        let etag = object.etag.unwrap().trim_matches('"');
        writer.write_record([BUCKET, &key, &size, etag]).unwrap();
    }
    let mut gzip = writer.into_inner().unwrap();
    gzip.flush().unwrap();
    gzip.finish().unwrap()
}

fn parquet_file(objects: &Objects) -> Vec<u8> {
    let keys: StringArray = objects.iter().map(|object| Some(object.key)).collect();
    let sizes = objects
        .iter()
        .map(|object| object.bytes.map(|bytes| i64::try_from(bytes).unwrap()));
    let sizes: Int64Array = sizes.collect();
    let etags = objects
        .iter()
        .map(|object| object.etag.map(|etag| etag.trim_matches('"')));
    let etags: StringArray = etags.collect();
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("key", Arc::new(keys), false),
        ("size", Arc::new(sizes), true),
        ("e_tag", Arc::new(etags), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn an_inventory_is_the_list_of_a_listing() {
    for backend in [Backend::Embedded, Backend::SeaweedFs] {
        if backend.is_enabled().unwrap() {
            compare(&World::start(backend, &[BUCKET, LISTS]));
        }
    }
}

/// Compares inventories in both formats with listings.
fn compare(world: &World) {
    for key in [
        "train/b.jpg",
        "train/a/1.jpg",
        "train/a+b.jpg",
        "train/a b.jpg",
        "train/100%.jpg",
        "train/%41.jpg",
        "train/x&<y>.jpg",
        "train/q\"uote,.jpg",
        "train/line\n.jpg",
        "train/\u{e9}\u{1f600}.jpg",
        "train/.DS_Store",
        "test/a.jpg",
    ] {
        world.put(BUCKET, key, key.as_bytes());
    }
    let list = |prefix, hidden| run(world.store.list_objects_with(BUCKET, prefix, hidden, |_| ())).unwrap();
    let all = list("", HiddenObjects::Listed);
    assert_eq!(all.len(), 12);
    // In another order, in two files.
    let halves = [all.select((4..all.len()).rev()), all.select(0..4)];
    for (format, schema, file) in [
        ("CSV", CSV_SCHEMA, csv_file as fn(&Objects) -> Vec<u8>),
        ("Parquet", "message s3.inventory { .. }", parquet_file),
    ] {
        let manifest = world.put_inventory(format, schema, &halves.each_ref().map(file));
        for prefix in ["", "train/", "train/a", "none/"] {
            for hidden in [HiddenObjects::LeftOut, HiddenObjects::Listed] {
                let listed = world.read(&manifest, prefix, hidden).unwrap();
                assert_eq!(listed, list(prefix, hidden), "{format} {prefix} {hidden:?}");
            }
        }
        let counts = Mutex::new(Vec::new());
        let progress = |count| counts.lock().push(count);
        let hidden = HiddenObjects::LeftOut;
        run(world
            .store
            .read_inventory(&manifest, BUCKET, "", hidden, progress))
        .unwrap();
        let counts = counts.into_inner();
        assert!(counts.is_sorted() && counts.last() == Some(&11), "{counts:?}");
    }
}

/// In the form of the documentation of AWS, with all columns, versions and a delete marker. The data files were written by Python's `gzip` and by
/// pyarrow 26.
#[test]
fn inventories_as_aws_documents_them_are_read() {
    let world = World::start(Backend::Embedded, &[EXAMPLE_LISTS]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/inventory");
    for format in ["csv", "parquet"] {
        let manifest = fs::read(folder.join(format!("{format}.manifest.json"))).unwrap();
        let parsed: Value = serde_json::from_slice(&manifest).unwrap();
        let key = parsed["files"][0]["key"].as_str().unwrap();
        let name = Path::new(key).file_name().unwrap();
        world.put(EXAMPLE_LISTS, key, &fs::read(folder.join(name)).unwrap());
        world.put(EXAMPLE_LISTS, "manifest.json", &manifest);
        let manifest = format!("s3://{EXAMPLE_LISTS}/manifest.json");
        let hidden = HiddenObjects::LeftOut;
        let read = world
            .store
            .read_inventory(&manifest, EXAMPLE_BUCKET, "photos/", hidden, |_| ());
        let objects = run(read).unwrap();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.key, object.bytes, object.etag))
            .collect();
        let expected = [
            (
                "photos/100%.jpg",
                Some(9),
                Some("\"4a8a08f09d37b73795649038408b5f33\""),
            ),
            (
                "photos/a.jpg",
                Some(12),
                Some("\"9b2cf535f27731c974343645a3985328-2\""),
            ),
            (
                "photos/caf\u{e9} 1+1.jpg",
                Some(5),
                Some("\"d41d8cd98f00b204e9800998ecf8427e\""),
            ),
        ];
        assert_eq!(
            (objects.bucket(), &*found),
            (EXAMPLE_BUCKET, &expected[..]),
            "{format}"
        );
    }
}

/// Files of several requests are read in their order.
#[test]
fn large_files_are_read_by_ranges() {
    let world = World::start(Backend::Embedded, &[LISTS]);
    let keys = (0..70_000).map(|number: u64| format!("{number:0128}.jpg"));
    let keys: Vec<String> = keys.collect();
    let objects = Objects::from_objects(
        BUCKET,
        keys.iter().map(|key| Object {
            key,
            bytes: Some(1),
            etag: Some("\"e\""),
            member: None,
        }),
    );
    let gzip = |text: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    };
    let rows = keys.iter().flat_map(|key| ["photos,", key.as_str(), ",1,e\n"]);
    let text: String = rows.collect();
    let file = gzip(text.as_bytes());
    assert!(
        file.len() > 9 << 20,
        "expected several ranges, found {} bytes",
        file.len()
    );
    let manifest = world.put_inventory("CSV", CSV_SCHEMA, &[file]);
    assert_eq!(
        world.read(&manifest, "", HiddenObjects::LeftOut).unwrap(),
        objects
    );
}

#[test]
fn inventories_that_cannot_be_read_say_why() {
    let world = World::start(Backend::Embedded, &[BUCKET, LISTS]);
    world.put(BUCKET, "a.jpg", b"a");
    let objects = run(world.store.list_objects(BUCKET, "")).unwrap();
    let twice = objects.select([0, 0]);
    for (format, schema, file) in [
        ("CSV", CSV_SCHEMA, csv_file(&twice)),
        ("Parquet", "", parquet_file(&twice)),
    ] {
        let manifest = world.put_inventory(format, schema, &[file]);
        let text =
            format!("cannot read the inventory {manifest}: expected each key once, found `a.jpg` twice");
        assert_eq!(world.error(&manifest), (ErrorKind::Protocol, text));
    }
    let file = csv_file(&objects);
    let manifest = world.put_inventory("ORC", "struct<key:string>", &[]);
    let (kind, text) = world.error(&manifest);
    assert_eq!(kind, ErrorKind::Config);
    assert!(
        text.contains("expected the format CSV or Parquet, found ORC"),
        "{text}"
    );
    let manifest = world.put_inventory("CSV", "Bucket, Key, ETag", std::slice::from_ref(&file));
    let (kind, text) = world.error(&manifest);
    assert_eq!(kind, ErrorKind::Config);
    assert!(
        text.contains("expected the column Size, found Bucket, Key, ETag"),
        "{text}"
    );
    let read = world
        .store
        .read_inventory(&manifest, "other", "", HiddenObjects::Listed, |_| ());
    let error = run(read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let expected = format!("expected an inventory of the bucket `other`, found one of `{BUCKET}`");
    assert!(error.to_string().contains(&expected), "{error}");
    // The data file is another one by now.
    let manifest = world.put_inventory("CSV", CSV_SCHEMA, std::slice::from_ref(&file));
    for (body, expected) in [
        (
            &file[1..],
            format!("expected {} bytes, as in the manifest, found ", file.len()),
        ),
        (&vec![0; file.len()], "expected the MD5 sum ".to_owned()),
    ] {
        world.put(LISTS, "data/CSV 0", body);
        let (kind, text) = world.error(&manifest);
        assert_eq!(kind, ErrorKind::Protocol);
        let expected = format!("cannot read the inventory {manifest}: s3://{LISTS}/data/CSV 0: {expected}");
        assert!(text.starts_with(&expected), "{text}");
    }
    let files = json!([{ "key": "data/none", "size": 1, "MD5checksum": "0".repeat(32) }]);
    let manifest = world.put_manifest(&json!({
        "sourceBucket": BUCKET, "destinationBucket": format!("arn:aws:s3:::{LISTS}"), "fileFormat": "Parquet", "files": files,
    }));
    let (kind, text) = world.error(&manifest);
    assert_eq!(kind, ErrorKind::Refused);
    assert!(text.contains(&format!("s3://{LISTS}/data/none")), "{text}");
    for url in [
        "",
        "manifest.json",
        "s3://lists",
        "s3://lists/",
        "s3:///manifest.json",
        "http://a/b",
    ] {
        let (kind, text) = world.error(url);
        assert_eq!(kind, ErrorKind::Config);
        let expected = "expected the URL of its manifest, such as s3://bucket/path/manifest.json";
        assert!(text.ends_with(expected), "{text}");
    }
    assert_eq!(world.error("s3://lists/none.json").0, ErrorKind::Refused);
}
