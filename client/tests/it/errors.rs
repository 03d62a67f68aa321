//! Samples that cannot be delivered, and endpoints that are not gateways.

use pushdown_client::{
    Error, ErrorKind,
    reader::{Batch, Mode, OnError},
    store::RetryPolicy,
};

use super::world::{World, assert_same_rows, into_rows, photos, read_batches, read_rows, reader};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";

/// Five photos, and after the second one an object that is not a photo.
fn world() -> World {
    let mut objects: std::collections::BTreeMap<_, _> = photos().into_iter().take(5).collect();
    let second = objects.keys().nth(1).unwrap().clone();
    objects.insert(format!("{second}.txt"), b"no photo at all".to_vec());
    World::with_objects(objects)
}

#[test]
fn a_bad_sample_keeps_its_position_and_is_named() {
    let world = world();
    for mode in [Mode::Pushdown, Mode::Plain] {
        let rows = read_rows(world.reader(PIPELINE).mode(mode).on_error(OnError::Report));
        assert_eq!(rows.len(), 6);
        for (nth, row) in rows.iter().enumerate() {
            assert_eq!(row.position, nth as u64);
            match &row.value {
                Ok(_) => assert_ne!(nth, 2),
                Err(error) => {
                    assert_eq!((nth, error.code.as_str()), (2, "UndecodableObject"), "{error}");
                    assert!(row.key.ends_with(".txt"));
                }
            }
        }
    }
}

#[test]
fn raising_names_the_sample_and_ends_the_stream() {
    let world = world();
    for mode in [Mode::Pushdown, Mode::Plain] {
        let error = read_batches(world.reader(PIPELINE).mode(mode).batch_size(2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample);
        let text = error.to_string();
        assert!(
            text.contains(".txt (position 2) cannot be delivered: UndecodableObject: "),
            "{text}"
        );
    }
}

#[test]
fn skipping_leaves_out_the_row_but_never_a_whole_batch() {
    let world = world();
    for mode in [Mode::Pushdown, Mode::Plain] {
        let skipping = || world.reader(PIPELINE).mode(mode).on_error(OnError::Skip);
        let batches = read_batches(skipping().batch_size(2)).unwrap();
        assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [2, 1, 2]);
        let rows = into_rows(batches);
        assert!(rows.iter().all(|row| row.value.is_ok()));
        let positions: Vec<_> = rows.iter().map(|row| row.position).collect();
        assert_eq!(positions, [0, 1, 3, 4, 5]);
        let error = read_batches(skipping().batch_size(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample);
        let text = error.to_string();
        assert!(
            text.contains(".txt (position 2) cannot be delivered: UndecodableObject: ")
                && text.ends_with("; all 1 samples of batch 2 failed: on_error=\"skip\" has none left"),
            "{text}"
        );
    }
}

#[test]
fn a_missing_object_is_reported_in_its_own_row() {
    let world = World::with_photos(3);
    let mut keys: Vec<String> = world.objects.keys().cloned().collect();
    keys.insert(1, "not/there.jpg".to_owned());
    for mode in [Mode::Pushdown, Mode::Plain] {
        let rows = read_rows(
            world
                .reader(PIPELINE)
                .keys(keys.clone())
                .mode(mode)
                .on_error(OnError::Report),
        );
        let codes: Vec<_> = rows
            .iter()
            .map(|row| row.value.as_ref().err().map(|error| error.code.as_str()))
            .collect();
        assert_eq!(codes, [None, Some("NoSuchKey"), None, None], "{mode:?}");
    }
}

#[test]
fn a_plain_store_is_distinguished_from_a_gateway() {
    let world = World::with_photos(3);
    let store = format!("http://{}", world.gateway.store().unwrap());
    let error = read_batches(reader(&store, PIPELINE)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    assert!(error.to_string().contains("use plain mode"), "{error}");
    let plain = || reader(&store, PIPELINE).mode(Mode::Plain);
    assert_same_rows(
        &read_rows(plain()),
        &read_rows(world.reader(PIPELINE).mode(Mode::Plain)),
    );
}

#[test]
fn wrong_credentials_and_missing_buckets_are_refused() {
    let world = World::with_photos(2);
    let wrong = || pushdown_client::store::Credentials::new("pushdowntestkey", "wrong");
    let listing = read_batches(world.reader(PIPELINE).credentials(wrong())).unwrap_err();
    assert_eq!(listing.kind(), ErrorKind::Refused, "{listing}");
    let bucket = read_batches(world.reader(PIPELINE).bucket("nowhere")).unwrap_err();
    assert_eq!(bucket.kind(), ErrorKind::Refused, "{bucket}");
    assert!(bucket.to_string().contains("NoSuchBucket"), "{bucket}");
    assert!(
        bucket
            .to_string()
            .starts_with("cannot list s3://nowhere/ at http://127.0.0.1:"),
        "{bucket}"
    );
    for mode in [Mode::Pushdown, Mode::Plain] {
        let keys: Vec<String> = world.objects.keys().cloned().collect();
        let reader = world.reader(PIPELINE).credentials(wrong()).keys(keys).mode(mode);
        let rows = read_rows(reader.on_error(OnError::Report));
        for row in rows {
            assert_eq!(row.value.unwrap_err().code, "SignatureDoesNotMatch", "{mode:?}");
        }
    }
}

#[test]
fn an_unreachable_endpoint_is_an_error_after_the_retries() {
    let retry = RetryPolicy {
        attempts: 2,
        ..RetryPolicy::default()
    };
    for mode in [Mode::Pushdown, Mode::Plain] {
        let builder = reader("http://127.0.0.1:9", PIPELINE)
            .keys(["a"])
            .mode(mode)
            .retry(retry);
        let error: Error = read_batches(builder.on_error(OnError::Report)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(
            error
                .to_string()
                .starts_with("cannot connect to http://127.0.0.1:9: "),
            "{error}"
        );
    }
    let listing = reader("http://127.0.0.1:9", PIPELINE).retry(RetryPolicy::NEVER);
    let error = read_batches(listing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(
        error
            .to_string()
            .starts_with("cannot list s3://photos/ at http://127.0.0.1:9: "),
        "{error}"
    );
}
