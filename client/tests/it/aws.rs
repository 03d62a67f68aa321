//! A store that addresses and refuses as AWS does, without a gateway: virtual hosts, regions, session tokens.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::Limits;
use pushdown_client::{
    ErrorKind, Result,
    reader::{Batch, Mode, PushdownReader, PushdownReaderBuilder, Row, Split},
    shards::ColumnSelection,
    store::{AddressingStyle, Credentials, RetryPolicy, Store, StoreBuilder, ValueRequest},
};
use pushdown_testkit::{AwsFront, FrontRecord, Keys, MovedAnswer};

use super::{
    shards::ShardWorld,
    world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, assert_same_rows, into_rows, photos, read_rows, run},
};

const REGION: &str = "us-east-1";
const OTHER_REGION: &str = "eu-central-1";
const HOST: &str = "photos.s3.us-east-1.localhost";
const OTHER_HOST: &str = "photos.s3.eu-central-1.localhost";
const RANDOM: &str = "decode | random_resized_crop(24) | flip_h | to_float";
/// Of sessions that end after the test.
const LIFETIME: Duration = Duration::from_mins(10);

/// A front of the store of a world.
pub(super) fn front_of(world: &World) -> AwsFront {
    let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
    AwsFront::start(world.gateway.store().unwrap(), &keys, REGION, LIFETIME).unwrap()
}

/// A store with virtual hosts, and the credentials of a session.
pub(super) fn store_of(front: &AwsFront) -> StoreBuilder {
    let keys = front.issue_session().keys;
    Store::builder()
        .endpoint(front.url())
        .addressing_style(AddressingStyle::Virtual)
        .region(REGION)
        .credentials(Credentials::new(keys.access, keys.secret).with_session_token(keys.token.unwrap()))
        .retry(RetryPolicy::NEVER)
}

fn reader_of(front: &AwsFront, pipeline: &str) -> PushdownReaderBuilder {
    PushdownReader::builder()
        .store(store_of(front))
        .bucket(BUCKET)
        .pipeline(pipeline)
        .batch_size(4)
}

/// All rows of an epoch, and the mode in which they were read.
fn read(builder: PushdownReaderBuilder) -> Result<(Vec<Row>, Mode)> {
    run(async {
        let mut reader = builder.build().await?;
        let batches: Vec<Batch> = reader.by_ref().try_collect().await?;
        Ok((into_rows(batches), reader.mode()))
    })
}

fn refusals(record: &FrontRecord) -> usize {
    record.refusals.values().sum()
}

/// Law 1, where the host names the bucket: random steps draw by the key alone.
#[test]
fn a_store_alone_is_read_plainly_with_the_same_values() {
    let world = World::with_objects(photos());
    let expected = read_rows(world.reader(RANDOM).mode(Mode::Plain).seed(7).epoch(3));
    let front = front_of(&world);
    for mode in [Mode::Auto, Mode::Plain] {
        let before = front.record();
        let (rows, found) = read(reader_of(&front, RANDOM).mode(mode).seed(7).epoch(3)).unwrap();
        assert_same_rows(&rows, &expected);
        assert_eq!(found, Mode::Plain, "{mode:?}");
        let record = front.record();
        // A page of the listing, and a GET for each object: nothing else asks whether there is a gateway.
        let requests = record.requests_to(HOST) - before.requests_to(HOST);
        assert_eq!(requests, 1 + rows.len(), "{record:?}");
        assert_eq!(record.hosts.len(), 1, "{record:?}");
        assert_eq!(refusals(&record), 0, "{record:?}");
    }
}

#[test]
fn a_reader_that_needs_a_gateway_is_refused_before_any_request() {
    let world = World::with_photos(1);
    let front = front_of(&world);
    let error = read(reader_of(&front, "decode").mode(Mode::Pushdown)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    let error = run(async {
        let store = store_of(&front).build().await.unwrap();
        let request = ValueRequest {
            pipeline: &pushdown::Pipeline::parse("decode").unwrap(),
            split: Split::Full,
            seed: None,
            epoch: None,
            accept: None,
        };
        let limits = Limits::default();
        let value = store.get_value(BUCKET, "k", &request, &limits).await;
        value.unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    assert!(
        error.to_string().contains("s3.us-east-1.localhost")
            && error.to_string().contains("is no pushdown gateway"),
        "{error}"
    );
    assert!(front.requests().is_empty());
}

#[test]
fn the_region_of_a_bucket_is_learnt_once() {
    let world = World::with_photos(6);
    let keys: Vec<&String> = world.objects.keys().collect();
    let first = keys[0].as_str();
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    for moved in [MovedAnswer::Redirect, MovedAnswer::Malformed] {
        // From a page of the listing, from a HEAD of the bucket, and from a GET.
        let by_listing = |front: &AwsFront| {
            let (rows, _) = read(reader_of(front, "decode").mode(Mode::Plain)).unwrap();
            assert_same_rows(&rows, &expected);
        };
        let by_head = |front: &AwsFront| {
            let reader = reader_of(front, "decode").mode(Mode::Plain);
            let (rows, _) = read(reader.keys(&keys)).unwrap();
            assert_same_rows(&rows, &expected);
        };
        let by_get = |front: &AwsFront| {
            run(async {
                let store = store_of(front).build().await.unwrap();
                for _ in 0..2 {
                    let bytes = store.get(BUCKET, first, &Limits::default()).await.unwrap();
                    assert!(bytes == world.objects[first]);
                }
            });
        };
        let by_upload = |front: &AwsFront| {
            run(async {
                let store = store_of(front).build().await.unwrap();
                let mut upload = store.upload(BUCKET, first);
                upload.write(&world.objects[first]).await.unwrap();
                upload.finish().await.unwrap();
                store.list_objects(BUCKET, first).await.unwrap();
            });
        };
        let ways: [&dyn Fn(&AwsFront); 4] = [&by_listing, &by_head, &by_get, &by_upload];
        for (name, read) in ["listing", "head", "get", "upload"].into_iter().zip(ways) {
            let front = front_of(&world);
            front.set_moved_answer(moved);
            front.move_bucket(BUCKET, OTHER_REGION);
            read(&front);
            let record = front.record();
            assert_eq!(refusals(&record), 1, "{moved:?} {name}: {record:?}");
            assert_eq!(record.requests_to(HOST), 1, "{moved:?} {name}: {record:?}");
            assert!(record.requests_to(OTHER_HOST) > 1, "{moved:?} {name}: {record:?}");
            assert_eq!(front.redirected_connections(), 0, "`Location` is never followed");
        }
    }
}

#[test]
fn members_shards_and_tables_are_read_by_ranges_of_a_virtual_host() {
    let photos: Vec<Vec<u8>> = photos().into_values().collect();
    let shards = ShardWorld::new(&photos, 7);
    let front = front_of(&shards.world);
    let expected = read_rows(shards.reader(RANDOM).mode(Mode::Plain).seed(5));
    let members = reader_of(&front, RANDOM)
        .objects(shards.samples(&[]))
        .batch_size(8)
        .seed(5);
    let (rows, _) = read(members.mode(Mode::Auto)).unwrap();
    assert_same_rows(&rows, &expected);
    let selection = ColumnSelection {
        value: Some("jpg".to_owned()),
        ..ColumnSelection::default()
    };
    let streamed = run(async {
        let reader = reader_of(&front, "decode | resize(8, 8)").columns(selection.clone());
        let reader = reader.build_shards().await.unwrap();
        let batches: Vec<Batch> = reader.try_collect().await.unwrap();
        into_rows(batches).len()
    });
    assert_eq!(streamed, photos.len());
    let index = run(async {
        let store = store_of(&front).build().await.unwrap();
        let listed = store.list_objects(BUCKET, "").await.unwrap();
        store.index_shards(&listed, |_progress| ()).await.unwrap()
    });
    assert_eq!(index.samples(&selection).unwrap().len(), photos.len());
    let record = front.record();
    assert_eq!((record.hosts.len(), refusals(&record)), (1, 0), "{record:?}");
}

#[cfg(feature = "tables")]
#[test]
fn rows_of_tables_are_read_by_ranges_of_a_virtual_host() {
    use pushdown_testkit::{Objects, Parquet};

    let parquet = Parquet {
        rows: 1000,
        noise: 2,
        row_group: 300,
    };
    let world = World::with_objects(Objects::from([(
        "t.parquet".to_owned(),
        parquet.write().unwrap(),
    )]));
    let front = front_of(&world);
    let rows = |builder: PushdownReaderBuilder| {
        run(async {
            let builder = builder.pipeline("select(columns=[n], where='n % 3 = 0')").seed(7);
            let mut reader = builder.build_table().await.unwrap();
            let mut rows = Vec::new();
            while let Some(batch) = reader.try_next().await.unwrap() {
                rows.push((batch.ids, batch.rows));
            }
            rows
        })
    };
    let expected = rows(world.reader("").mode(Mode::Plain));
    assert!(rows(reader_of(&front, "").mode(Mode::Auto)) == expected);
    let table = run(async {
        let store = store_of(&front).build().await.unwrap();
        let table = store.table(BUCKET, "t.parquet", &Limits::default());
        let pipeline = pushdown::Pipeline::parse("select(columns=[n], where='n >= 990')").unwrap();
        let mut rows = table.rows(&pipeline, None, 0).await.unwrap();
        let mut count = 0;
        while let Some(batch) = rows.next().await.unwrap() {
            count += batch.num_rows();
        }
        count
    });
    assert_eq!(table, 10);
    let record = front.record();
    assert_eq!((record.hosts.len(), refusals(&record)), (1, 0), "{record:?}");
}

/// A token that ends is renewed by its provider. Explicit credentials have none.
#[test]
fn a_refused_token_is_an_error_with_the_code_of_the_store() {
    let world = World::with_photos(2);
    let front = front_of(&world);
    let builder = reader_of(&front, "decode").mode(Mode::Plain);
    front.revoke_sessions();
    let error = read(builder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("ExpiredToken"), "{error}");
    for session in front.issued() {
        assert!(!error.to_string().contains(&session.token.unwrap()), "{error}");
    }
}
