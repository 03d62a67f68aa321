//! Listings of many pages: each page is retried separately, and its arrival is reported.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use parking_lot::Mutex;
use pushdown_client::{Credentials, ErrorKind, RetryPolicy, Store};
use pushdown_testkit::ScriptedOrigin;

use super::world::{ACCESS_KEY, SECRET_KEY, reader, run};

/// A page with one object and the token of the next page.
fn page(key: &str, next: Option<&str>) -> String {
    let token = next.map_or_else(String::new, |next| {
        format!("<NextContinuationToken>{next}</NextContinuationToken>")
    });
    let more = next.is_some();
    format!(
        "<ListBucketResult><IsTruncated>{more}</IsTruncated>{token}<Contents><Key>{key}</Key><Size>5</Size>\
         <ETag>\"e\"</ETag></Contents></ListBucketResult>"
    )
}

/// A store with three pages. It refuses the second page `refusals` times.
fn store(refusals: usize) -> ScriptedOrigin {
    let refused = AtomicUsize::new(0);
    ScriptedOrigin::start(move |exchange| {
        let first = exchange.head.lines().next().unwrap_or_default().to_owned();
        let (key, next) = match first.split_once("continuation-token=") {
            None => ("a", Some("second")),
            Some((_, token)) if token.starts_with("second") => ("b", Some("third")),
            Some(_) => ("c", None),
        };
        if key == "b" && refused.fetch_add(1, SeqCst) < refusals {
            return exchange.answer("503 Slow Down", "<Error><Code>SlowDown</Code></Error>");
        }
        exchange.answer("200 OK", &page(key, next))
    })
    .unwrap()
}

fn connect(origin: &ScriptedOrigin) -> Store {
    let retry = RetryPolicy {
        attempts: 3,
        base: std::time::Duration::from_millis(1),
        cap: std::time::Duration::from_millis(1),
    };
    let store = Store::builder()
        .endpoint(format!("http://{}", origin.address()))
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .retry(retry);
    run(store.build()).unwrap()
}

#[test]
fn every_page_is_reported_and_retried_separately() {
    let origin = store(2);
    let counts = Mutex::new(Vec::new());
    let store = connect(&origin);
    let objects = run(store.list_with("photos", "", |objects| counts.lock().push(objects))).unwrap();
    let keys: Vec<&str> = objects.iter().map(|object| &*object.key).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    assert!(objects.iter().all(|object| object.bytes == Some(5)));
    assert_eq!(*counts.lock(), [1, 2, 3]);
    assert_eq!(
        origin.requests().len(),
        5,
        "expected three pages, one of them requested three times"
    );
}

#[test]
fn a_store_that_keeps_refusing_is_an_error() {
    let origin = store(usize::MAX);
    let store = connect(&origin);
    let error = run(store.list("photos", "x/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let expected = format!(
        "cannot list s3://photos/x/ at http://{}: SlowDown",
        origin.address()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        origin.requests().len(),
        4,
        "expected one page and three attempts at the next one"
    );
}

/// A page that names itself as the next one would cause an endless loop.
#[test]
fn a_listing_with_a_repeated_token_is_refused() {
    let origin =
        ScriptedOrigin::start(|exchange| exchange.answer("200 OK", &page("a", Some("again")))).unwrap();
    let error = run(connect(&origin).list("photos", "")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(
        error
            .to_string()
            .contains("expected another page, found the same one again")
    );
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn a_reader_reports_the_progress_of_its_listing() {
    let origin = store(0);
    let counts = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&counts);
    let builder = reader(&format!("http://{}", origin.address()), "decode");
    let built = run(builder
        .on_listing(move |objects| recorder.lock().push(objects))
        .build())
    .unwrap();
    assert_eq!(built.len(), 3);
    assert_eq!(*counts.lock(), [1, 2, 3]);
}
