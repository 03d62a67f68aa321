//! What a reader tells the result cache of the gateway, and when.

use std::{collections::BTreeMap, num::NonZeroU32};

use futures::TryStreamExt as _;
use pushdown_client::{
    reader::{Batch, Row, Split},
    store::{Object, Objects},
};
use pushdown_testkit::features_relay;
use serde_json::{Value, json};

use super::world::{BUCKET, World, assert_same_rows, into_rows, reader, run};

/// The rows of a reader whose gateway lists these features, and its batch requests.
fn read(world: &World, objects: &Objects, features: &'static str, epochs: u32) -> (Vec<Row>, Vec<Value>) {
    let (relay, bodies) = features_relay(world.gateway.listen(), features).unwrap();
    let rows = run(async {
        let builder = reader(&format!("http://{}", relay.address()), "decode | resize(8, 8)");
        let builder = builder.objects(objects.clone()).split(Split::Full);
        let builder = builder.epochs(NonZeroU32::new(epochs).unwrap());
        let reader = builder.batch_size(3).requests(1).build().await.unwrap();
        let batches: Vec<Batch> = reader.try_collect().await.unwrap();
        into_rows(batches)
    });
    let bodies = bodies.lock();
    let requests = bodies.iter().map(|body| serde_json::from_slice(body).unwrap());
    (rows, requests.collect())
}

/// The ETags of a request by path; null if there is none.
fn etags(request: &Value) -> BTreeMap<String, Value> {
    let samples = request["samples"].as_array().unwrap().iter();
    let pair = |sample: &Value| {
        (
            sample["path"].as_str().unwrap().to_owned(),
            sample["etag"].clone(),
        )
    };
    samples.map(pair).collect()
}

#[test]
fn hints_are_sent_once_the_gateway_has_listed_their_feature() {
    let world = World::with_photos(9);
    // The gateway would refuse a batch with an ETag that is not visible ASCII.
    let etag = |index: usize, key: &str| match index {
        4 => None,
        5 => Some("\"\u{e9}\"".to_owned()),
        _ => Some(format!("\"etag-of-{key}\"")),
    };
    let keys = world.objects.keys().enumerate();
    let listed: Vec<_> = keys
        .map(|(index, key)| (key.as_str(), etag(index, key)))
        .collect();
    let objects = listed.iter().map(|(key, etag)| Object {
        key,
        bytes: None,
        etag: etag.as_deref(),
        member: None,
    });
    let objects = Objects::from_objects(BUCKET, objects);
    let sent = |(key, etag): &(&str, Option<String>)| {
        let etag = etag.as_deref().filter(|etag| etag.is_ascii());
        (format!("/{BUCKET}/{key}"), json!(etag))
    };
    let sent: BTreeMap<String, Value> = listed.iter().map(sent).collect();

    let (rows, requests) = read(&world, &objects, "cache, families", 1);
    assert_eq!(requests.len(), 3);
    // Nothing is known of the gateway before its first answer.
    assert_eq!(requests[0].get("cache"), None);
    assert!(etags(&requests[0]).values().all(Value::is_null));
    for request in &requests[1..] {
        assert_eq!(request["cache"], json!({"epochs": 1, "samples": 9}));
        for (path, etag) in etags(request) {
            assert_eq!(etag, sent[&path], "{path}");
        }
    }

    let (expected, requests) = read(&world, &objects, "families", 1);
    for request in &requests {
        assert_eq!(request.get("cache"), None);
        assert!(etags(request).values().all(Value::is_null));
    }
    assert_same_rows(&rows, &expected);
}

/// What is read once more is worth caching from the first batch on.
#[test]
fn a_reader_of_several_epochs_sends_hints_with_its_first_batch() {
    let world = World::with_photos(9);
    let keys = world.objects.keys().map(|key| Object {
        key,
        bytes: None,
        etag: None,
        member: None,
    });
    let objects = Objects::from_objects(BUCKET, keys);
    let (_, requests) = read(&world, &objects, "cache, families", 2);
    for request in &requests {
        assert_eq!(request["cache"], json!({"epochs": 2, "samples": 9}));
    }
    let (_, requests) = read(&world, &objects, "families", 2);
    assert!(requests.iter().all(|request| request.get("cache").is_none()));
}
