//! Listings of a store in memory: the order, the number of requests, and errors.

mod fake_store;

use futures::executor::block_on;
use proptest::prelude::*;

use super::*;
use crate::{error::ErrorKind, store::list::pages::PagedObject};
use fake_store::FakeStore;

fn keys(objects: &Objects) -> Vec<&str> {
    objects.iter().map(|object| object.key).collect()
}

/// `count` keys with this prefix.
fn numbered(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |index| format!("{prefix}{index:06}.jpg"))
}

proptest! {
    #[test]
    fn every_listing_has_the_keys_of_a_plain_sort(
        objects in prop::collection::btree_map("[ab/0-]{1,6}", 0..2_u64, 0..150),
        prefix in "[ab/0-]{0,2}",
        page_keys in 1..20_usize,
        min_folder_keys in 1..5_usize,
        is_reversed: bool,
    ) {
        let store = FakeStore { objects, page_keys, is_reversed, ..FakeStore::default() };
        let (listed, counts) = store.list(&prefix, min_folder_keys).unwrap();
        let expected = store.keys(&prefix);
        prop_assert_eq!(keys(&listed), &expected[..]);
        for object in listed.iter() {
            prop_assert_eq!(object.bytes, store.objects.get(object.key).copied());
            let etag = format!("\"{}\"", object.key);
            prop_assert_eq!(object.etag, Some(etag.as_str()));
        }
        prop_assert!(counts.is_sorted());
        prop_assert_eq!(counts.last().copied().unwrap_or_default(), expected.len());
        prop_assert!(store.max_in_flight.into_inner() <= MAX_REQUESTS);
    }
}

#[test]
fn folders_of_many_objects_are_listed_concurrently() {
    let folders = (0..40).map(|class| numbered(&format!("train/n{class:03}/"), 1300).collect::<Vec<_>>());
    let store = FakeStore::new(
        folders
            .flatten()
            .chain(["labels.csv".to_owned(), "train0".to_owned()]),
    );
    let (objects, counts) = store.list("", MIN_FOLDER_KEYS).unwrap();
    assert_eq!(keys(&objects), store.keys(""));
    assert_eq!(counts.last(), Some(&52_002));
    // Of the bucket and of `train/`: the first page, and the subfolders. Then two pages of each class.
    assert_eq!(store.requests.load(Relaxed), 4 + 2 * 40);
    assert_eq!(store.max_in_flight.into_inner(), MAX_REQUESTS);
}

#[test]
fn one_page_is_one_request() {
    let store = FakeStore::new(numbered("a/", 500).chain(numbered("b/", 500)));
    assert_eq!(store.list("", MIN_FOLDER_KEYS).unwrap().0.len(), 1000);
    assert_eq!(store.requests.load(Relaxed), 1);
    let empty = FakeStore::new(Vec::<String>::new());
    assert!(empty.list("x/", MIN_FOLDER_KEYS).unwrap().0.is_empty());
    assert_eq!(empty.requests.load(Relaxed), 1);
}

#[test]
fn a_flat_folder_is_listed_page_by_page() {
    let store = FakeStore::new(numbered("photos/", 10_500));
    let (objects, counts) = store.list("photos/", MIN_FOLDER_KEYS).unwrap();
    assert_eq!(keys(&objects), store.keys(""));
    assert_eq!((store.requests.load(Relaxed), counts.len()), (11, 11));
}

/// Concurrent listings request some pages more than once.
#[test]
fn hidden_objects_are_left_out_and_counted_once() {
    let hidden = [
        "a/.DS_Store",
        "a/",
        "b/",
        "b/Thumbs.db",
        "desktop.ini",
        "b/._000001.jpg",
    ];
    let photos: Vec<String> = numbered("a/", 20).chain(numbered("b/", 20)).collect();
    for (min_folder_keys, page_keys) in [(1, 7), (1000, 7), (1000, 1000)] {
        let mut store = FakeStore::new(photos.iter().map(String::as_str).chain(hidden));
        store.page_keys = page_keys;
        for folder in ["a/", "b/"] {
            store.objects.insert(folder.to_owned(), 0);
        }
        let ignore = |_| ();
        let list = |hidden| {
            let lister = Lister {
                min_folder_keys,
                ..Lister::new(&store, "b", hidden, &ignore)
            };
            let objects = block_on(lister.list("")).unwrap();
            (objects, lister.left_out())
        };
        let (samples, left_out) = list(HiddenObjects::LeftOut);
        assert_eq!(keys(&samples), photos);
        assert_eq!((left_out.count, left_out.first.as_deref()), (6, Some("a/")));
        let (all, left_out) = list(HiddenObjects::Listed);
        assert_eq!(all.len(), photos.len() + hidden.len());
        assert_eq!(left_out, LeftOut::default());
    }
}

/// The first page shows one large folder, but the others are small.
#[test]
fn many_small_folders_are_listed_page_by_page() {
    let small = (0..20_000).map(|folder| format!("b{folder:05}/x"));
    let store = FakeStore::new(numbered("a/", 1000).chain(small));
    let (objects, counts) = store.list("", MIN_FOLDER_KEYS).unwrap();
    assert_eq!(keys(&objects), store.keys(""));
    assert_eq!(counts.last(), Some(&21_000));
    // 21 pages of keys, 21 pages of subfolders, and the first pages of some of these.
    assert!(
        (42..=21 + 21 + SAMPLED_FOLDERS).contains(&store.requests.load(Relaxed)),
        "{}",
        store.requests.load(Relaxed)
    );

    let small = FakeStore::new((0..20_000).map(|folder| format!("{folder:05}/x")));
    assert_eq!(keys(&small.list("", MIN_FOLDER_KEYS).unwrap().0), small.keys(""));
    assert_eq!(
        small.requests.load(Relaxed),
        20,
        "the first page shows small folders"
    );
}

#[test]
fn deep_folders_end_at_a_level() {
    let folder = "d/".repeat(40);
    let store = FakeStore::new(numbered(&folder, 2500));
    assert_eq!(keys(&store.list("", MIN_FOLDER_KEYS).unwrap().0), store.keys(""));
    assert_eq!(store.requests.load(Relaxed), 2 * MAX_DEPTH + 3);
}

#[test]
fn keys_around_a_slash_are_in_the_order_of_their_bytes() {
    let sorted = ["a", "a-b", "a/", "a//", "a/b", "a0", "a\u{e9}", "b//c", "b/c"];
    for page_keys in 1..5 {
        let store = FakeStore {
            page_keys,
            ..FakeStore::new(sorted)
        };
        assert_eq!(
            keys(&store.list("", 1).unwrap().0),
            sorted,
            "{page_keys} keys per page"
        );
    }
}

#[test]
fn a_key_that_is_listed_twice_is_an_error() {
    let store = FakeStore {
        repeated: Some("a/000007.jpg".to_owned()),
        ..FakeStore::new(numbered("a/", 1500))
    };
    let error = store.list("", MIN_FOLDER_KEYS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let expected = "cannot list s3://b/: expected each key once, found `a/000007.jpg` twice";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_listing_stops_at_the_first_error() {
    let folders = (0..30).map(|folder| numbered(&format!("{folder:02}/"), 3000).collect::<Vec<_>>());
    let store = FakeStore {
        refused: Some("00/".to_owned()),
        ..FakeStore::new(folders.flatten())
    };
    let error = store.list("", MIN_FOLDER_KEYS).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Refused, "AccessDenied")
    );
    assert!(
        store.requests.load(Relaxed) <= 2 + MAX_REQUESTS,
        "{}",
        store.requests.load(Relaxed)
    );
}

/// A store that ignores the prefix, or whose prefixes would be listed forever.
#[test]
fn what_was_not_asked_for_is_an_error() {
    #[derive(Debug)]
    struct Stubborn(Option<&'static str>);
    impl PageSource for Stubborn {
        fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>> {
            let object = PagedObject {
                key: "a/b".to_owned(),
                bytes: None,
                etag: None,
            };
            let page = Page {
                left_out: LeftOut::default(),
                objects: vec![object; usize::from(!request.has_delimiter)],
                prefixes: self.0.iter().map(|prefix| (*prefix).to_owned()).collect(),
                next: (!request.has_delimiter).then(|| "next".to_owned()),
            };
            Box::pin(async move { Ok(page) })
        }

        fn describe(&self, prefix: &str) -> String {
            prefix.to_owned()
        }
    }
    let list = |prefix: &str, folder: Option<&'static str>| {
        let (store, ignore) = (Stubborn(folder), |_| ());
        let lister = Lister::new(&store, "b", HiddenObjects::LeftOut, &ignore);
        block_on(lister.list(prefix)).unwrap_err().to_string()
    };
    let error = list("x", None);
    assert_eq!(
        error,
        "cannot list x: expected keys that begin with `x`, found `a/b`"
    );
    for folder in ["", "x/", "a", "a/", "a/b/c/"] {
        let error = list("a/", Some(folder));
        let expected = format!("expected prefixes between `a/` and the next `/`, found `{folder}`");
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// A store whose pages go in circles would be listed forever.
#[test]
fn pages_that_repeat_are_an_error() {
    /// Answers each request with the next of these pages, from the first one again after the last: a key and the next token.
    #[derive(Debug)]
    struct Circular {
        pages: fn(usize) -> (String, String),
        requests: AtomicUsize,
    }
    impl PageSource for Circular {
        fn page<'a>(&'a self, _: PageRequest<'a>) -> BoxFuture<'a, Result<Page>> {
            let (key, token) = (self.pages)(self.requests.fetch_add(1, Relaxed));
            let object = PagedObject {
                key,
                bytes: None,
                etag: None,
            };
            let page = Page {
                left_out: LeftOut::default(),
                objects: vec![object],
                prefixes: Vec::new(),
                next: Some(token),
            };
            Box::pin(async move { Ok(page) })
        }

        fn describe(&self, prefix: &str) -> String {
            prefix.to_owned()
        }
    }
    let pages: [fn(usize) -> (String, String); 3] = [
        |page| (format!("a{page}"), "same".to_owned()),
        |page| (format!("a{page}"), format!("token {}", page % 3)),
        |page| ("a".to_owned(), format!("token {page}")),
    ];
    for pages in pages {
        let (store, ignore) = (
            Circular {
                pages,
                requests: AtomicUsize::new(0),
            },
            |_| (),
        );
        let error =
            block_on(Lister::new(&store, "b", HiddenObjects::LeftOut, &ignore).list("a")).unwrap_err();
        let expected = "cannot list a: expected another page, found the same one again";
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Protocol, expected)
        );
        assert!(store.requests.load(Relaxed) <= 4);
    }
}
