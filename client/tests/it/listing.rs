//! Listings of many pages: each page is retried separately, and its arrival is reported. Lists that are saved instead.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use pushdown_client::{
    ErrorKind,
    reader::OnError,
    store::{Credentials, HiddenObjects, Object, Objects, RetryPolicy, Store},
};
use pushdown_exec::sync::Mutex;
use pushdown_testkit::{Backend, Gateway, Payload, Request, Response, ScriptedOrigin, find_gateway};

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, assert_same_rows, read_rows, reader, run};

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
            None => ("x/a", Some("second")),
            Some((_, token)) if token.starts_with("second") => ("x/b", Some("third")),
            Some(_) => ("x/c", None),
        };
        if key == "x/b" && refused.fetch_add(1, SeqCst) < refusals {
            return exchange.answer("503 Slow Down", "<Error><Code>SlowDown</Code></Error>");
        }
        exchange.answer("200 OK", &page(key, next))
    })
    .unwrap()
}

fn connect(address: SocketAddr) -> Store {
    let retry = RetryPolicy {
        attempts: 3,
        base: std::time::Duration::from_millis(1),
        cap: std::time::Duration::from_millis(1),
    };
    let store = Store::builder()
        .endpoint(format!("http://{address}"))
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .retry(retry);
    run(store.build()).unwrap()
}

#[test]
fn every_page_is_reported_and_retried_separately() {
    let origin = store(2);
    let counts = Mutex::new(Vec::new());
    let store = connect(origin.address());
    let objects = run(
        store.list_objects_with("photos", "", HiddenObjects::LeftOut, |objects| {
            counts.lock().push(objects);
        }),
    )
    .unwrap();
    let keys: Vec<&str> = objects.iter().map(|object| object.key).collect();
    assert_eq!(keys, ["x/a", "x/b", "x/c"]);
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
    let store = connect(origin.address());
    let error = run(store.list_objects("photos", "x/")).unwrap_err();
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
    let error = run(connect(origin.address()).list_objects("photos", "")).unwrap_err();
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

/// A store says whether it has encoded the names.
#[test]
fn names_are_decoded_if_the_store_has_encoded_them() {
    for (encoding, key, expected) in [
        (
            "<EncodingType>url</EncodingType>",
            "x/a%17+b%2Bc",
            "x/a\u{17} b+c",
        ),
        ("", "x/a%17+b", "x/a%17+b"),
    ] {
        let page = page(key, None).replace("<IsTruncated>", &format!("{encoding}<IsTruncated>"));
        let origin = ScriptedOrigin::start(move |exchange| exchange.answer("200 OK", &page)).unwrap();
        let objects = run(connect(origin.address()).list_objects("b", "x/")).unwrap();
        assert_eq!(
            objects.iter().map(|object| object.key).collect::<Vec<_>>(),
            [expected]
        );
        assert!(origin.requests()[0].contains("encoding-type=url"));
    }
    let page = page("x/%FF", None).replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>");
    let origin = ScriptedOrigin::start(move |exchange| exchange.answer("200 OK", &page)).unwrap();
    let error = run(connect(origin.address()).list_objects("b", "x/")).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(text.ends_with("expected names in UTF-8, found `x/%FF`"), "{text}");
}

#[test]
fn every_name_is_listed_as_it_is() {
    for backend in [Backend::Embedded, Backend::SeaweedFs] {
        if !backend.is_enabled().unwrap() {
            continue;
        }
        let store = backend.start(&find_gateway().unwrap()).unwrap();
        send(&store, "PUT", &format!("/{BUCKET}"));
        let mut keys = Vec::new();
        for (path, key) in [
            ("a%17b", "a\u{17}b"),
            ("a%20b", "a b"),
            ("a%2Bb", "a+b"),
            ("100%25", "100%"),
            ("%2541", "%41"),
            ("%C3%A9", "\u{e9}"),
            ("x%26%3Cy%3E", "x&<y>"),
            ("-", "-"),
            ("d%2Be/f%17g", "d+e/f\u{17}g"),
        ] {
            send(&store, "PUT", &format!("/{BUCKET}/names/{path}"));
            keys.push(format!("names/{key}"));
        }
        keys.sort_unstable();
        let objects = run(connect(store.gateway.listen()).list_objects(BUCKET, "names/")).unwrap();
        let listed: Vec<&str> = objects.iter().map(|object| object.key).collect();
        assert_eq!(listed, keys, "{backend}");
    }
}

#[test]
fn folders_are_listed_concurrently_in_the_order_of_one_listing() {
    list_folders(Backend::SeaweedFs);
}

#[test]
#[ignore = "a second store: make test-full"]
fn folders_of_the_embedded_store_are_listed_concurrently_in_the_order_of_one_listing() {
    list_folders(Backend::Embedded);
}

/// 1,400 objects in folders, listed page by page and folder by folder.
fn list_folders(backend: Backend) {
    if !backend.is_enabled().unwrap() {
        return;
    }
    let store = &backend.start(&find_gateway().unwrap()).unwrap();
    send(store, "PUT", &format!("/{BUCKET}"));
    for (folder, count) in [
        ("train/a/", 650),
        ("train/b-/", 3),
        ("train/b/", 740),
        ("train/", 5),
        ("", 2),
    ] {
        (0..count).for_each(|number| drop(send(store, "PUT", &format!("/{BUCKET}/{folder}{number:04}.jpg"))));
    }
    let forwarded = || forwarded(&store.gateway);
    let client = connect(store.gateway.listen());
    for (prefix, count, requests) in [
        // The first pages of the bucket, of `train/` and of its folders, and the folders of two levels.
        ("", 1400, 7.0),
        ("train/", 1398, 5.0),
        ("train/b", 743, 1.0),
        ("train/b/", 740, 1.0),
        ("none/", 0, 1.0),
    ] {
        let before = forwarded();
        let objects = run(client.list_objects(BUCKET, prefix)).unwrap();
        let keys: Vec<&str> = objects.iter().map(|object| object.key).collect();
        assert_eq!((keys.len(), forwarded() - before), (count, requests), "{prefix}");
        assert!(objects.iter().all(|object| object.bytes == Some(0)));
        let serial = serial_listing(store, prefix);
        let differing = keys.iter().zip(&serial).find(|(key, serial)| key != serial);
        assert_eq!((serial.len(), differing), (count, None), "{prefix}");
    }
}

/// The keys of all pages, one after the other, sorted: SeaweedFS lists `b/` before `b-/`.
fn serial_listing(store: &pushdown_testkit::Store, prefix: &str) -> Vec<String> {
    let encoded = |text: &str| text.replace('/', "%2F");
    let (mut keys, mut token) = (Vec::new(), String::new());
    loop {
        let target = format!("/{BUCKET}?{token}list-type=2&prefix={}", encoded(prefix));
        let page = send(store, "GET", &target);
        let text = page.text();
        let listed = text.split("<Key>").skip(1);
        keys.extend(listed.filter_map(|rest| Some(rest.split_once("</Key>")?.0.to_owned())));
        let next = page.element("NextContinuationToken");
        let Some(next) = next.filter(|next| !next.is_empty()) else {
            keys.sort_unstable();
            return keys;
        };
        token = format!("continuation-token={}&", encoded(&next));
    }
}

/// Sends a request to the store itself.
fn send(store: &pushdown_testkit::Store, method: &str, target: &str) -> Response {
    let request = Request::new(method, target).header("Host", &store.address.to_string());
    let request = store.keys.sign(request, Payload::Signed).unwrap();
    let answer = request.send(store.address).unwrap();
    assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
    answer
}

/// Requests that a gateway has passed on.
fn forwarded(gateway: &Gateway) -> f64 {
    let name = "pushdown_requests_total{kind=\"forward\",status=\"2xx\"}";
    gateway.metric(name).unwrap()
}

/// What is left out of a listing is no sample, and stays in lists that were saved before.
#[test]
fn hidden_objects_are_no_samples_unless_they_are_asked_for() {
    let world = World::with_photos(3);
    let photos: Vec<&String> = world.objects.keys().collect();
    for key in [".DS_Store", "Thumbs.db", "desktop.ini", "folder/"] {
        world.put(key, if key.ends_with('/') { b"" } else { b"hidden" });
    }
    let pipeline = "decode | resize(8, 8)";
    let rows = read_rows(world.reader(pipeline));
    assert_eq!(rows.iter().map(|row| &*row.key).collect::<Vec<_>>(), photos);
    let all = run(async {
        let report = OnError::Report;
        let builder = world.reader(pipeline).include_hidden(true).on_error(report);
        let reader = builder.build().await.unwrap();
        let keys: Vec<String> = reader
            .objects()
            .iter()
            .map(|object| object.key.to_owned())
            .collect();
        assert_eq!(keys.len(), photos.len() + 4, "{keys:?}");
        reader.objects().clone()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.arrow");
    all.save(&file).unwrap();
    assert_eq!(Objects::load(&file).unwrap(), all);
}

#[test]
fn a_saved_list_is_read_without_a_listing() {
    let world = World::with_photos(6);
    let pipeline = "decode | flip_h | to_float";
    let expected = read_rows(world.reader(pipeline).seed(7));
    let store = connect(world.gateway.listen());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.arrow");
    run(store.list_objects(BUCKET, "")).unwrap().save(&file).unwrap();
    let loaded = Objects::load(&file).unwrap();
    let before = forwarded(&world.gateway);
    let rows = read_rows(world.reader(pipeline).seed(7).objects(loaded.clone()));
    assert_same_rows(&rows, &expected);
    assert!(forwarded(&world.gateway) - before < 0.5, "expected no listing");
    let error = run(world
        .reader(pipeline)
        .seed(7)
        .bucket("other")
        .objects(loaded)
        .build())
    .unwrap_err();
    let expected = "invalid bucket: expected `photos`, that of the objects, found `other`";
    assert_eq!(error.to_string(), expected);
}

/// Sizes that a list claims decide how far to read ahead, and no more.
#[test]
fn objects_with_absurd_sizes_are_all_read() {
    let world = World::with_photos(5);
    let listed = run(async {
        let keys = Credentials::new(ACCESS_KEY, SECRET_KEY);
        let store = Store::builder().endpoint(world.endpoint()).credentials(keys);
        store
            .build()
            .await
            .unwrap()
            .list_objects(BUCKET, "")
            .await
            .unwrap()
    });
    let absurd = listed.iter().map(|object| Object {
        bytes: Some(u64::MAX),
        ..object
    });
    let absurd = Objects::from_objects(BUCKET, absurd);
    let rows = read_rows(world.reader("decode").objects(absurd));
    assert_same_rows(&rows, &read_rows(world.reader("decode")));
    assert_eq!(rows.len(), 5);
}
