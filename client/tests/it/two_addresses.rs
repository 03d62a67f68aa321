//! Two addresses: the reader signs for the store, in path style and for virtual hosts, and a gateway fetches what was signed.

#[cfg(all(feature = "models", feature = "tables"))]
mod models;
mod regions;
mod seaweedfs;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::{Context, Limits, Pipeline, Sample};
use pushdown_client::{
    ErrorKind, Result,
    reader::{Batch, Mode, PushdownReader, PushdownReaderBuilder, Rank, Row, Split, Stats},
    store::{Credentials, Object, RetryPolicy, Store, StoreBuilder, ValueRequest},
};
use pushdown_testkit::{AwsFront, Gateway, features_relay, find_gateway};
use serde_json::Value;

use super::{
    aws::{front_of, store_of},
    shards::ShardWorld,
    world::{
        ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, assert_same_rows, assert_same_values, into_rows,
        photos, read_rows, run,
    },
};

const RANDOM: &str = "decode | random_resized_crop(24) | flip_h | to_float";
const MODES: [Mode; 3] = [Mode::Pushdown, Mode::Auto, Mode::Plain];

/// A store, and a gateway without an upstream.
pub(super) struct Lab {
    pub(super) gateway: Gateway,
    /// In front of the store, if the host names the bucket.
    front: Option<AwsFront>,
    /// The URL of the store in path style.
    store: String,
}

impl Lab {
    pub(super) fn path_style(world: &World) -> Self {
        let store = format!("http://{}", world.gateway.store().unwrap());
        Self::launch(None, store, &[])
    }

    fn virtual_hosts(world: &World, flags: &[&str]) -> Self {
        let front = front_of(world);
        Self::launch(Some(front), String::new(), flags)
    }

    fn launch(front: Option<AwsFront>, store: String, flags: &[&str]) -> Self {
        let allowed = match &front {
            Some(front) => {
                let port = front.address().port();
                let of_region = |region| format!("--allow-store=http://*.s3.{region}.localhost:{port}");
                let mut allowed: Vec<_> = ["us-east-1", "eu-central-1"].map(of_region).into();
                allowed.push("--allow-store-network=127.0.0.0/8".to_owned());
                allowed
            }
            None => vec![format!("--allow-store={store}")],
        };
        let flags = allowed.iter().map(String::as_str).chain(flags.iter().copied());
        let gateway = Gateway::launch(&find_gateway().unwrap(), flags).unwrap();
        Self {
            gateway,
            front,
            store,
        }
    }

    fn gateway_url(&self) -> String {
        format!("http://{}", self.gateway.listen())
    }

    /// The store at a gateway with this URL.
    fn store_through(&self, gateway: &str) -> StoreBuilder {
        let store = match &self.front {
            Some(front) => store_of(front),
            None => Store::builder()
                .endpoint(&self.store)
                .region("us-east-1")
                .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
                .retry(RetryPolicy::NEVER),
        };
        store.gateway(gateway)
    }

    pub(super) fn reader_through(&self, gateway: &str, pipeline: &str) -> PushdownReaderBuilder {
        PushdownReader::builder()
            .store(self.store_through(gateway))
            .bucket(BUCKET)
            .pipeline(pipeline)
            .batch_size(4)
    }

    fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        self.reader_through(&self.gateway_url(), pipeline)
    }

    async fn store(&self) -> Store {
        self.store_through(&self.gateway_url()).build().await.unwrap()
    }
}

fn both_styles(world: &World) -> [Lab; 2] {
    [Lab::path_style(world), Lab::virtual_hosts(world, &[])]
}

fn read(builder: PushdownReaderBuilder) -> Result<(Vec<Row>, Stats, Mode)> {
    run(async {
        let mut reader = builder.build().await?;
        let batches: Vec<Batch> = reader.by_ref().try_collect().await?;
        Ok((into_rows(batches), reader.stats(), reader.mode()))
    })
}

/// Rows whose values are the same, whatever the stage at which they arrived.
/// Photos under keys with and without slashes. The first part of a key may have the name of the bucket.
fn nested_photos() -> Objects {
    let folders = ["", "train/", "photos/train/", "a b+/"];
    let photos = photos().into_iter().enumerate();
    photos
        .map(|(index, (key, body))| (format!("{}{key}", folders[index % folders.len()]), body))
        .collect()
}

/// Law 1: random steps draw by the key alone, wherever they run and however the bucket is named.
#[test]
fn values_do_not_depend_on_addresses_styles_and_modes() {
    let world = World::with_objects(nested_photos());
    let expected = read_rows(world.reader(RANDOM).mode(Mode::Plain).seed(7).epoch(3));
    assert!(expected.iter().all(|row| row.value.is_ok()));
    for lab in both_styles(&world) {
        for mode in MODES {
            let reader = lab.reader(RANDOM).split(Split::Full).mode(mode).seed(7).epoch(3);
            let (rows, stats, found) = read(reader).unwrap();
            assert_same_values(&rows, &expected);
            assert_eq!(found, mode);
            assert_eq!(stats.errors, 0);
            let is_pushed = rows.iter().all(|row| row.stage > 0);
            assert_eq!(
                is_pushed,
                mode == Mode::Pushdown || is_pushed && mode == Mode::Auto
            );
        }
    }
}

#[test]
fn members_and_values_do_not_depend_on_addresses_either() {
    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    let shards = ShardWorld::new(&photos, 7);
    let samples = shards.samples(&["cls"]);
    let expected = shards
        .reader(RANDOM)
        .objects(samples.clone())
        .mode(Mode::Plain)
        .seed(5);
    let expected = read_rows(expected);
    let pipeline = Pipeline::parse(RANDOM).unwrap();
    for lab in both_styles(&shards.world) {
        for mode in MODES {
            let reader = lab.reader(RANDOM).objects(samples.clone()).batch_size(8).seed(5);
            let (rows, ..) = read(reader.mode(mode)).unwrap();
            assert_same_values(&rows, &expected);
            for (row, expected) in rows.iter().zip(&expected) {
                assert_eq!(row.columns, expected.columns);
            }
        }
        run(async {
            let store = lab.store().await;
            let request = ValueRequest {
                pipeline: &pipeline,
                split: Split::Full,
                seed: Some(5),
                epoch: Some(0),
                accept: None,
            };
            let limits = Limits::default();
            let Object { key, member, .. } = samples.object(0);
            let value = store.get_sample_value(BUCKET, samples.object(0), &request, &limits);
            let value = value.await.unwrap().decode(&limits).unwrap();
            let id = format!("{key}\0{}", member.unwrap().name);
            let context = Context {
                seed: Some(5),
                epoch: Some(0),
                ..Context::new(id.as_bytes())
            };
            let photo = Sample::Bytes(photos[0].clone().into());
            assert!(value == pipeline.run(0..pipeline.len(), photo, &context).unwrap());
        });
    }
}

#[cfg(feature = "tables")]
#[test]
fn rows_and_tables_do_not_depend_on_addresses_either() {
    use pushdown_testkit::Parquet;

    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    let images: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    let numbers = Parquet {
        rows: 2000,
        noise: 3,
        row_group: 300,
    };
    let world = World::with_objects(Objects::from([
        (
            "i/images.parquet".to_owned(),
            Parquet::of_photos(&images, 8).unwrap(),
        ),
        ("t/0.parquet".to_owned(), numbers.write().unwrap()),
        ("t/1.parquet".to_owned(), numbers.write().unwrap()),
    ]));
    let rows = |builder: PushdownReaderBuilder| {
        run(async {
            let pipeline = "select(row_number=at) | each(photo: decode | random_resized_crop(24) | flip_h)";
            let builder = builder.pipeline(pipeline).prefix("i/").seed(7);
            let reader = builder.build_table().await.unwrap();
            let batches: Vec<_> = reader.try_collect().await.unwrap();
            let batches = batches.into_iter();
            batches.map(|batch| (batch.ids, batch.rows)).collect::<Vec<_>>()
        })
    };
    let expected = rows(world.reader("").mode(Mode::Plain));
    let select = Pipeline::parse("select(columns=[n], where='n >= 1990')").unwrap();
    for lab in both_styles(&world) {
        for mode in MODES {
            assert!(rows(lab.reader("").mode(mode)) == expected, "{mode:?}");
        }
        run(async {
            let store = lab.store().await;
            let limits = Limits::default();
            let table = store.table(BUCKET, "t/0.parquet", &limits);
            let mut rows = table.rows(&select, None, 0).await.unwrap();
            let mut count = 0;
            while let Some(batch) = rows.next().await.unwrap() {
                count += batch.num_rows();
            }
            assert_eq!(count, 10);
            let request = ValueRequest {
                pipeline: &select,
                split: Split::Full,
                seed: None,
                epoch: Some(0),
                accept: None,
            };
            let mut value = store.stream_value(BUCKET, "t/0.parquet", &request).await.unwrap();
            let mut bytes = 0;
            while let Some(piece) = value.next().await.unwrap() {
                bytes += piece.len();
            }
            assert!(bytes > 0 && value.stage == 1);
            let keys = ["t/0.parquet", "t/1.parquet"].map(Into::into).to_vec();
            let tables = store.tables(BUCKET, keys, pushdown::MergeRule::default(), &limits);
            let mut value = tables.stream(&request).await.unwrap();
            let mut bytes = 0;
            while let Some(piece) = value.next().await.unwrap() {
                bytes += piece.len();
            }
            assert!(bytes > 0);
        });
    }
}

#[test]
fn a_value_cache_and_a_resume_in_another_world_work_with_both() {
    let pipeline = "decode | resize(16, 16)";
    let world = World::with_photos(12);
    let whole = read_rows(world.reader(pipeline).mode(Mode::Plain).seed(3));
    for lab in both_styles(&world) {
        let reader = || lab.reader(pipeline).mode(Mode::Pushdown).seed(3);
        let (rest, ..) = read(reader().start_at(1)).unwrap();
        assert_same_values(&rest, &whole[4..]);
        let of_rank = |index| {
            let rank = Rank { index, world: 2 };
            read(reader().rank(rank).start_position(4)).unwrap().0
        };
        let mut rest: Vec<Row> = (0..2).flat_map(of_rank).collect();
        rest.sort_by_key(|row| row.position);
        assert_same_values(&rest, &whole[4..]);
        let folder = tempfile::tempdir().unwrap();
        for is_cached in [false, true] {
            let (rows, stats, _) = read(reader().value_cache(folder.path())).unwrap();
            assert_same_values(&rows, &whole);
            assert_eq!(stats.cache_hits > 0, is_cached);
        }
    }
}

#[test]
fn plain_reads_do_not_reach_the_gateway() {
    let world = World::with_photos(8);
    for lab in both_styles(&world) {
        let (_, stats, _) = read(lab.reader("decode").mode(Mode::Plain)).unwrap();
        assert_eq!((stats.gateway_bytes_down, stats.gateway_bytes_up), (0, 0));
        assert!(stats.wire_bytes_down > stats.stored_bytes);
        let (_, stats, _) = read(lab.reader("decode | resize(8, 8)").mode(Mode::Pushdown)).unwrap();
        assert_eq!(
            stats.wire_bytes_down, stats.gateway_bytes_down,
            "all samples are pushed"
        );
        assert_eq!(stats.wire_bytes_up, stats.gateway_bytes_up);
        assert!(stats.gateway_bytes_down > stats.value_bytes);
    }
}

/// The query that all samples share, with the token, is once in a request; a sample has its path and its signature.
#[test]
fn a_batch_has_the_session_token_once() {
    let world = World::with_photos(8);
    let lab = Lab::virtual_hosts(&world, &[]);
    let (relay, bodies) = features_relay(lab.gateway.listen(), "families, members, stores").unwrap();
    let url = format!("http://{}", relay.address());
    let reader = lab.reader_through(&url, "decode").mode(Mode::Pushdown);
    let (rows, ..) = read(reader.batch_size(8)).unwrap();
    assert!(rows.iter().all(|row| row.value.is_ok()));
    let bodies = bodies.lock();
    assert_eq!(bodies.len(), 1);
    let body = String::from_utf8(bodies[0].clone()).unwrap();
    assert_eq!(body.matches("X-Amz-Security-Token").count(), 1);
    let request: Value = serde_json::from_str(&body).unwrap();
    let port = lab.front.as_ref().unwrap().address().port();
    let url = format!("http://photos.s3.us-east-1.localhost:{port}");
    assert_eq!(
        request["store"],
        serde_json::json!({"url": url, "bucket": "photos"})
    );
    for (sample, row) in request["samples"].as_array().unwrap().iter().zip(&rows) {
        let sample = sample.as_object().unwrap();
        let mut members: Vec<&str> = sample.keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["path", "signature"]);
        assert_eq!(sample["path"], format!("/{}", row.key));
        assert_eq!(sample["signature"].as_str().unwrap().len(), 64);
    }
}

/// Nothing that is signed goes to a gateway that does not list the feature.
#[test]
fn an_older_gateway_gets_no_signature() {
    let world = World::with_photos(6);
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    for lab in both_styles(&world) {
        let (relay, bodies) = features_relay(lab.gateway.listen(), "families, members").unwrap();
        let url = format!("http://{}", relay.address());
        let (rows, _, mode) = read(lab.reader_through(&url, "decode").mode(Mode::Auto)).unwrap();
        assert_same_rows(&rows, &expected);
        assert_eq!(mode, Mode::Plain);
        let error = read(lab.reader_through(&url, "decode").mode(Mode::Pushdown)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
        assert!(
            error.to_string().contains("do not list the feature `stores`"),
            "{error}"
        );
        run(async {
            let store = lab.store_through(&url).build().await.unwrap();
            let request = ValueRequest {
                pipeline: &Pipeline::parse("decode").unwrap(),
                split: Split::Full,
                seed: None,
                epoch: None,
                accept: None,
            };
            let limits = Limits::default();
            let value = store.get_value(BUCKET, &expected[0].key, &request, &limits);
            assert_eq!(value.await.unwrap_err().kind(), ErrorKind::NotAGateway);
        });
        assert!(bodies.lock().is_empty());
        assert!(relay.requests().iter().all(|head| !head.contains("X-Amz-")));
    }
}

#[test]
fn a_store_that_is_not_a_gateway_is_no_gateway_beside_itself() {
    let world = World::with_photos(2);
    let lab = Lab::path_style(&world);
    // The store's own address is no second one.
    let reader = |mode| lab.reader_through(&lab.store, "decode").mode(mode);
    let error = read(reader(Mode::Pushdown)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    let (rows, ..) = read(reader(Mode::Auto)).unwrap();
    assert_eq!(rows.len(), 2);
}

/// Samples are signed for the region that the store's answer named, also without a listing.
#[test]
fn samples_are_signed_for_the_region_of_their_bucket() {
    let world = World::with_photos(6);
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    let keys: Vec<&String> = world.objects.keys().collect();
    let lab = Lab::virtual_hosts(&world, &[]);
    let front = lab.front.as_ref().unwrap();
    front.move_bucket(BUCKET, "eu-central-1");
    for reader in [lab.reader("decode"), lab.reader("decode").keys(&keys)] {
        let before = front.record();
        let (rows, ..) = read(reader.mode(Mode::Pushdown)).unwrap();
        assert_same_values(&rows, &expected);
        let record = front.record();
        let refused = |record: &pushdown_testkit::FrontRecord| record.refusals.values().sum::<usize>();
        assert_eq!(refused(&record) - refused(&before), 1, "{record:?}");
    }
}

#[test]
fn a_store_that_the_gateway_does_not_allow_is_an_error_of_the_batch() {
    let world = World::with_photos(2);
    let lab = Lab::path_style(&world);
    let other = World::with_photos(2);
    let store = lab
        .store_through(&lab.gateway_url())
        .endpoint(format!("http://{}", other.gateway.store().unwrap()));
    let reader = || lab.reader("decode").store(store.clone());
    let error = read(reader().mode(Mode::Pushdown)).unwrap_err();
    assert!(error.to_string().contains("StoreNotAllowed"), "{error}");
    let (rows, _, mode) = read(reader().mode(Mode::Auto)).unwrap();
    assert!(rows.iter().all(|row| row.value.is_ok()));
    assert_eq!(mode, Mode::Plain);
}
