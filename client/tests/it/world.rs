//! A gateway on the embedded store with objects, and helpers to read them.

use std::ops::{Deref, DerefMut};

use futures::TryStreamExt as _;
use pushdown::{Context, Pipeline, Sample};
use pushdown_client::{
    Result,
    reader::{Batch, PushdownReader, PushdownReaderBuilder, Row, RowError},
    store::Credentials,
};

pub(super) use pushdown_testkit::{ACCESS_KEY, BUCKET, Objects, SECRET_KEY};

/// A gateway with objects, and readers of them.
pub(super) struct World(pushdown_testkit::World);

/// Valid photos with at least 40 pixels on each side, so that they can be cropped.
pub(super) fn photos() -> Objects {
    pushdown_testkit::photos().unwrap()
}

/// `count` photos, each under its own key and larger than its value.
pub(super) fn many_photos(count: usize) -> Objects {
    let photos: Vec<_> = photos()
        .into_values()
        .filter(|photo| photo.len() > 5_000)
        .collect();
    let numbered =
        (0..count).map(|number| (format!("{number:04}.jpg"), photos[number % photos.len()].clone()));
    numbered.collect()
}

/// Real photos, enlarged to the size of those in ImageNet.
pub(super) fn large_photos(count: usize) -> Objects {
    let enlarge = Pipeline::parse("decode | resize(500, 375) | encode(jpeg, quality=95)").unwrap();
    let mut large = Vec::new();
    for photo in photos().into_values().filter(|photo| photo.len() > 5_000) {
        let sample = Sample::Bytes(photo.into());
        let Sample::Bytes(photo) = enlarge.run(0..enlarge.len(), sample, &Context::new(b"")).unwrap() else {
            panic!("encode gives bytes");
        };
        large.push(photo.to_vec());
    }
    let numbered = (0..count).map(|number| (format!("{number:03}.jpg"), large[number % large.len()].clone()));
    numbered.collect()
}

impl Deref for World {
    type Target = pushdown_testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl World {
    /// Launches a gateway whose bucket has these objects.
    pub(super) fn with_objects(objects: Objects) -> Self {
        Self(pushdown_testkit::World::with_objects(objects).unwrap())
    }

    /// Launches a gateway with the first `count` photos.
    pub(super) fn with_photos(count: usize) -> Self {
        Self(pushdown_testkit::World::with_photos(count).unwrap())
    }

    /// Launches a gateway with additional flags.
    pub(super) fn with_flags(objects: Objects, flags: &[String]) -> Self {
        Self(pushdown_testkit::World::with_flags(objects, flags).unwrap())
    }

    pub(super) fn put(&self, key: &str, body: &[u8]) {
        self.0.put(key, body).unwrap();
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
}

#[cfg(all(feature = "models", feature = "tables"))]
impl World {
    /// Kills the gateway, waits for `pause`, and starts it again at the same address.
    pub(super) fn restart(self, pause: std::time::Duration) -> Self {
        Self(self.0.restart(pause).unwrap())
    }
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

/// The same samples in the same order with the same values, wherever these were computed.
pub(super) fn assert_same_values(rows: &[Row], expected: &[Row]) {
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!((&row.key, row.position), (&expected.key, expected.position));
        assert!(row.value == expected.value, "the values of {} differ", row.name());
    }
}

/// The rows of batches.
pub(super) fn into_rows(batches: Vec<Batch>) -> Vec<Row> {
    batches.into_iter().flat_map(Batch::into_rows).collect()
}

/// How many of the rows came from a gateway.
pub(super) fn pushed(rows: &[Row]) -> usize {
    rows.iter().filter(|row| row.stage > 0).count()
}
