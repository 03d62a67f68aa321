//! Objects that are written at once and in parts.

use pushdown::Limits;
use pushdown_client::{
    ErrorKind,
    store::{Credentials, RetryPolicy, Store},
};
use pushdown_testkit::ScriptedOrigin;

use super::world::{ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, run};

fn store(endpoint: &str) -> Store {
    let store = Store::builder()
        .endpoint(endpoint)
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .retry(RetryPolicy::NEVER);
    run(store.build()).unwrap()
}

/// Bytes that differ from part to part.
fn content(length: usize) -> Vec<u8> {
    let byte = |position: usize| u8::try_from(position.wrapping_mul(2_654_435_761) >> 24 & 0xff).unwrap();
    (0..length).map(byte).collect()
}

#[test]
fn an_object_is_what_was_written() {
    let world = World::with_objects(Objects::new());
    let store = store(&world.endpoint());
    for length in [0, 5, 8 << 20, (17 << 20) + 3] {
        let (key, content) = (format!("a b/{length}"), content(length));
        run(async {
            let mut upload = store.upload(BUCKET, &key);
            for piece in content.chunks(1_000_003) {
                upload.write(piece).await.unwrap();
            }
            upload.finish().await.unwrap();
        });
        let found = run(store.get(BUCKET, &key, &Limits::default())).unwrap();
        assert!(found == content, "{key}: {} bytes", found.len());
    }
}

#[test]
fn an_aborted_upload_is_no_object() {
    let world = World::with_objects(Objects::new());
    let store = store(&world.endpoint());
    run(async {
        let mut upload = store.upload(BUCKET, "k");
        upload.write(&content(9 << 20)).await.unwrap();
        upload.abort().await.unwrap();
        store.upload(BUCKET, "k").abort().await.unwrap();
    });
    assert!(run(store.list_objects(BUCKET, "")).unwrap().is_empty());
}

#[test]
fn a_refused_upload_names_the_object() {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.answer(
            "403 Forbidden",
            "<Error><Code>AccessDenied</Code><Message>no</Message></Error>",
        )
    })
    .unwrap();
    let store = store(&format!("http://{}", origin.address()));
    let error = run(store.upload(BUCKET, "k").finish()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.to_string(), "cannot write s3://photos/k: AccessDenied: no");
}
