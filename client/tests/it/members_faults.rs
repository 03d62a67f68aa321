//! Shards that were replaced, lists that do not describe them, and stores with broken or unusual answers.

use std::{collections::BTreeMap, io};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::shard::MemberRange;
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, OnError, PushdownReaderBuilder, Row, Stats},
    store::{Credentials, MemberRef, Object, Objects, Store},
};
use pushdown_testkit::{Exchange, ScriptedOrigin, ranged};

use super::{
    shards::{Shard, list, pack},
    world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, into_rows, photos, read_batches, reader, run},
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";
const MODES: [Mode; 3] = [Mode::Pushdown, Mode::Auto, Mode::Plain];

/// Small photos.
fn small_photos(count: usize) -> Vec<Vec<u8>> {
    let photos = photos().into_values().filter(|photo| photo.len() < 4_000);
    photos.take(count).collect()
}

fn world(shards: &[Shard]) -> World {
    let objects = shards
        .iter()
        .map(|shard| (shard.key.clone(), shard.bytes.clone()));
    World::with_objects(objects.collect())
}

/// The ETags of a store.
fn etags(world: &World) -> BTreeMap<String, String> {
    let store = Store::builder()
        .endpoint(world.endpoint())
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY));
    // The embedded store lists no ETags, so they are those of the answers to an index.
    let index = run(async {
        let store = store.build().await.unwrap();
        let listed = store.list_objects(BUCKET, "").await.unwrap();
        store.index_shards(&listed, |_| ()).await
    });
    let index = index.unwrap();
    let etags = index
        .shards()
        .map(|(key, etag)| (key.to_owned(), etag.to_owned()));
    etags.collect()
}

fn read(builder: PushdownReaderBuilder) -> (Vec<Row>, Stats) {
    run(async {
        let builder = builder.on_error(OnError::Report).batch_size(32);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats())
    })
}

/// The codes of rows; `None` for a value.
fn codes(rows: &[Row]) -> Vec<Option<&str>> {
    rows.iter()
        .map(|row| row.value.as_ref().err().map(|error| error.code.as_str()))
        .collect()
}

#[test]
fn the_members_of_a_replaced_shard_are_errors_by_name() {
    let shards = pack(&small_photos(9), 3);
    let world = world(&shards);
    let known = etags(&world);
    let objects = list(&shards, |key| known[key].clone());
    // The members have the same places in the new version.
    let mut other = shards[1].bytes.clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    world.put(&shards[1].key, &other);
    for mode in MODES {
        let builder = || world.reader(PIPELINE).objects(objects.clone()).mode(mode);
        let (rows, stats) = read(builder());
        let replaced = Some("ShardReplaced");
        let expected = [None, None, None, replaced, replaced, replaced, None, None, None];
        assert_eq!(codes(&rows), expected, "{mode:?}");
        assert_eq!(
            (stats.samples, stats.errors, stats.retries),
            (6, 3, 0),
            "{mode:?}"
        );
        let error = read_batches(builder()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "s3://photos/train-000001.tar member 1/000.jpg (position 3) cannot be delivered"
            ) && text.contains("run `pushdown index` again"),
            "{text}"
        );
    }
}

#[test]
fn a_list_that_lies_fails_its_members_alone() {
    let shards = pack(&small_photos(6), 6);
    let world = world(&shards);
    let known = etags(&world);
    let etag = &*known[&shards[0].key];
    let members = &shards[0].photos;
    let moved = |range: MemberRange, by: u64| {
        MemberRange::new(range.offset() + by, range.header_bytes(), range.size()).unwrap()
    };
    let places = [
        (&*members[0].name, members[0].range),
        // The place of another member.
        (&*members[1].name, members[0].range),
        // A block later.
        (&*members[2].name, moved(members[2].range, 512)),
        (&*members[3].name, members[3].range),
        // Behind the end of the shard.
        (&*members[4].name, moved(members[4].range, 1 << 40)),
        (&*members[5].name, members[5].range),
    ];
    let objects = places.map(|(name, range)| Object {
        key: &shards[0].key,
        bytes: None,
        etag: Some(etag),
        member: Some(MemberRef { name, range }),
    });
    let objects = Objects::from_objects(BUCKET, objects);
    for mode in MODES {
        let (rows, stats) = read(world.reader(PIPELINE).objects(objects.clone()).mode(mode));
        let invalid = Some("InvalidShard");
        assert_eq!(
            codes(&rows),
            [None, invalid, invalid, None, invalid, None],
            "{mode:?}"
        );
        assert_eq!(stats.retries, 0, "{mode:?}");
    }
}

/// A gateway would refuse the whole batch for it.
#[test]
fn a_sample_that_cannot_be_requested_is_an_error_of_its_own() {
    let shards = pack(&small_photos(3), 3);
    let world = world(&shards);
    let known = etags(&world);
    let good = list(&shards, |key| known[key].clone());
    let objects = good.iter().enumerate().map(|(index, object)| Object {
        etag: object.etag.filter(|_| index != 1),
        ..object
    });
    let objects = Objects::from_objects(BUCKET, objects);
    for mode in MODES {
        let (rows, _) = read(world.reader(PIPELINE).objects(objects.clone()).mode(mode));
        assert_eq!(codes(&rows), [None, Some("InvalidRequest"), None], "{mode:?}");
    }
}

#[test]
fn a_member_that_is_no_photo_fails_alone() {
    let mut photos = small_photos(4);
    photos[2] = b"no photo at all".to_vec();
    let shards = pack(&photos, 4);
    let world = world(&shards);
    let known = etags(&world);
    let objects = list(&shards, |key| known[key].clone());
    for mode in MODES {
        let (rows, _) = read(world.reader(PIPELINE).objects(objects.clone()).mode(mode));
        assert_eq!(codes(&rows), [None, None, Some("UndecodableObject"), None]);
    }
}

/// A store that answers requests for shards by a script, and a reader of their photos.
pub(super) fn scripted(
    shards: &[Shard],
    answer: impl Fn(&mut Exchange, &[u8]) -> io::Result<()> + Send + Sync + 'static,
) -> (ScriptedOrigin, PushdownReaderBuilder) {
    let bodies = shards
        .iter()
        .map(|shard| (shard.key.clone(), shard.bytes.clone()));
    let bodies: BTreeMap<String, Vec<u8>> = bodies.collect();
    let origin = ScriptedOrigin::start(move |exchange| {
        let path = exchange.head.split(' ').nth(1).unwrap_or_default();
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        let key = path.trim_start_matches(&format!("/{BUCKET}/")).to_owned();
        answer(exchange, &bodies[&key])
    })
    .unwrap();
    let builder = reader(&format!("http://{}", origin.address()), PIPELINE).mode(Mode::Plain);
    let objects = list(shards, |_key| "\"e\"".to_owned());
    (origin, builder.objects(objects))
}

#[test]
fn a_store_without_ranges_is_read_from_the_start() {
    let photos = small_photos(6);
    let shards = pack(&photos, 3);
    let (_origin, builder) = scripted(&shards, |exchange, shard| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"e\"\r\n\r\n",
            shard.len()
        ))?;
        exchange.send(shard)
    });
    let (rows, stats) = read(builder);
    assert_eq!(codes(&rows), [None; 6]);
    let bytes: u64 = photos.iter().map(|photo| photo.len() as u64).sum();
    assert_eq!((stats.samples, stats.value_bytes), (6, bytes));
}

#[test]
fn a_store_that_ignores_conditions_is_compared_by_etag() {
    let shards = pack(&small_photos(3), 3);
    let (_origin, builder) = scripted(&shards, |exchange, shard| ranged(exchange, shard, "other"));
    let (rows, _) = read(builder);
    assert_eq!(codes(&rows), [Some("ShardReplaced"); 3]);
}

/// What has arrived is delivered, and only the rest is requested again.
#[test]
fn an_answer_that_breaks_off_is_continued() {
    let photos = small_photos(8);
    let shards = pack(&photos, 8);
    let total = shards[0].bytes.len();
    let (origin, builder) = scripted(&shards, move |exchange, shard| {
        if exchange.earlier_requests > 0 {
            return ranged(exchange, shard, "e");
        }
        let (first, last) = bounds(&exchange.head).unwrap();
        let part = &shard[first..=last];
        exchange.close();
        exchange.send(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nETag: \"e\"\r\nContent-Range: bytes \
             {first}-{last}/{total}\r\n\r\n",
            part.len()
        ))?;
        exchange.send(&part[..part.len() / 2])
    });
    let (rows, stats) = read(builder);
    assert_eq!(codes(&rows), [None; 8]);
    let bytes: u64 = photos.iter().map(|photo| photo.len() as u64).sum();
    assert_eq!((stats.samples, stats.value_bytes, stats.retries), (8, bytes, 1));
    let requests: Vec<_> = origin.requests().iter().filter_map(|head| bounds(head)).collect();
    assert_eq!(requests.len(), 2);
    assert!(
        requests[1].0 > requests[0].0 && requests[1].1 == requests[0].1,
        "{requests:?}"
    );
}

/// The first and the last byte of the requested range.
pub(super) fn bounds(head: &str) -> Option<(usize, usize)> {
    let (_, range) = head.split_once("bytes=")?;
    let (first, last) = range.lines().next()?.split_once('-')?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}
