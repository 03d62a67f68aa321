//! A gateway on the embedded store with objects, and helpers to read them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use futures::TryStreamExt as _;
use pushdown::{Context, Pipeline, Sample};
use pushdown_client::{Batch, Credentials, PushdownReader, PushdownReaderBuilder, Result, Row, RowError};
use pushdown_testkit::{Gateway, Keys, Payload, Request, find_gateway};
use tempfile::TempDir;

pub(super) const BUCKET: &str = "photos";
pub(super) const ACCESS_KEY: &str = "pushdowntestkey";
pub(super) const SECRET_KEY: &str = "pushdowntestsecret";

/// Objects by key.
pub(super) type Objects = BTreeMap<String, Vec<u8>>;

/// A gateway whose store folder survives a restart of the gateway.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) objects: Objects,
    #[cfg_attr(
        not(all(feature = "models", feature = "tables")),
        expect(
            dead_code,
            reason = "read by tests of other features; the folder lives as long as the gateway"
        )
    )]
    folder: TempDir,
}

/// Photos in many formats and sizes, some of them broken.
static FIXTURES: LazyLock<Objects> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension != "md"))
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read(path).unwrap(),
            )
        })
        .collect()
});

/// Valid photos with at least 40 pixels on each side, so that they can be cropped.
pub(super) fn photos() -> Objects {
    let pipeline = Pipeline::parse("decode").unwrap();
    let decodes =
        |bytes: &Vec<u8>| match pipeline.run(0..1, Sample::Bytes(bytes.clone().into()), &Context::new(b"")) {
            Ok(Sample::Image(image)) => image.width().min(image.height()) >= 40,
            _ => false,
        };
    let photos: Objects = FIXTURES
        .iter()
        .filter(|(_, bytes)| decodes(bytes))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    assert!(photos.len() >= 20, "{}", photos.len());
    photos
}

impl World {
    /// Launches a gateway whose bucket has these objects.
    pub(super) fn with_objects(objects: Objects) -> Self {
        Self::with_flags(objects, &[])
    }

    /// Launches a gateway with additional flags.
    pub(super) fn with_flags(objects: Objects, flags: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let gateway = launch(&folder.path().join("store"), listen, flags);
        let world = Self {
            gateway,
            objects,
            folder,
        };
        world.put("", &[]);
        for (key, bytes) in &world.objects {
            world.put(key, bytes);
        }
        world
    }

    /// Launches a gateway with the first `count` photos.
    pub(super) fn with_photos(count: usize) -> Self {
        Self::with_objects(photos().into_iter().take(count).collect())
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.gateway.listen())
    }

    /// A reader of the whole bucket.
    pub(super) fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        reader(&self.endpoint(), pipeline)
    }

    /// Runs the pipeline on an object in this process and returns the value.
    pub(super) fn expected(
        &self,
        pipeline: &str,
        key: &str,
        seed: Option<u64>,
        epoch: u32,
    ) -> Result<Sample, RowError> {
        let pipeline = Pipeline::parse(pipeline).map_err(|error| RowError::from(&error))?;
        let mut context = Context::new(key.as_bytes());
        context.seed = seed;
        context.epoch = Some(epoch);
        let object = Sample::Bytes(self.objects[key].clone().into());
        pipeline
            .run(0..pipeline.len(), object, &context)
            .map_err(|error| RowError::from(&error))
    }

    pub(super) fn put(&self, key: &str, body: &[u8]) {
        let path = key
            .replace(' ', "%20")
            .replace('+', "%2B")
            .replace('\u{e9}', "%C3%A9");
        let target = format!("/{BUCKET}{}{path}", if key.is_empty() { "" } else { "/" });
        let request = Request::new("PUT", &target)
            .header("Host", &self.gateway.listen().to_string())
            .body(body);
        let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
        let answer = keys
            .sign(request, Payload::Signed)
            .unwrap()
            .send(self.gateway.listen())
            .unwrap();
        assert_eq!(answer.status, 200, "{key}: {}", answer.text());
    }
}

#[cfg(all(feature = "models", feature = "tables"))]
impl World {
    /// A folder for the files of a test.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the gateway, waits for `pause`, and starts it again at the same address.
    pub(super) fn restart(self, pause: std::time::Duration) -> Self {
        let Self {
            gateway,
            objects,
            folder,
        } = self;
        let listen = gateway.listen();
        drop(gateway);
        std::thread::sleep(pause);
        Self {
            gateway: launch(&folder.path().join("store"), listen, &[]),
            objects,
            folder,
        }
    }
}

fn launch(store: &Path, listen: SocketAddr, extra_flags: &[String]) -> Gateway {
    let binary: PathBuf = find_gateway().unwrap();
    let flags = [
        format!("--store={}", store.display()),
        format!("--access-key={ACCESS_KEY}"),
        format!("--secret-key={SECRET_KEY}"),
        format!("--listen={listen}"),
    ];
    Gateway::launch(&binary, flags.iter().chain(extra_flags)).unwrap()
}

/// A reader of the whole bucket at an endpoint.
pub(super) fn reader(endpoint: &str, pipeline: &str) -> PushdownReaderBuilder {
    PushdownReader::builder()
        .endpoint(endpoint)
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .bucket(BUCKET)
        .pipeline(pipeline)
        .batch_size(4)
}

/// Runs a future on its own runtime, since the test kit blocks.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Reads all batches of an epoch.
pub(super) fn read_batches(builder: PushdownReaderBuilder) -> Result<Vec<Batch>> {
    run(async { builder.build().await?.try_collect().await })
}

/// Reads all rows of an epoch.
pub(super) fn read_rows(builder: PushdownReaderBuilder) -> Vec<Row> {
    into_rows(read_batches(builder).unwrap())
}

/// The keys of rows.
pub(super) fn keys(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_ref()).collect()
}

/// Fails at the first row that differs and names its key. Values are too long to print.
pub(super) fn assert_same_rows(rows: &[Row], expected: &[Row]) {
    assert_eq!(keys(rows), keys(expected));
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(
            (row.position, row.index, row.stage),
            (expected.position, expected.index, expected.stage),
            "{}",
            row.key
        );
        assert!(row.value == expected.value, "the values of {} differ", row.key);
    }
}

/// The rows of batches.
pub(super) fn into_rows(batches: Vec<Batch>) -> Vec<Row> {
    batches.into_iter().flat_map(Batch::into_rows).collect()
}
