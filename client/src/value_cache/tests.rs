//! Which stage is cached, and under which digest.

use pushdown::shard::MemberRange;

use super::*;
use crate::objects::{MemberRef, Object};

fn open(pipeline: &str) -> (ValueCache, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = Pipeline::parse(pipeline).unwrap();
    (
        ValueCache::open(folder.path().to_owned(), 1 << 20, "b", &pipeline).unwrap(),
        folder,
    )
}

fn stage(pipeline: &str, stored: Option<u64>) -> Option<usize> {
    open(pipeline).0.stage(stored).map(|stage| stage.stage)
}

#[test]
fn the_last_steady_value_no_larger_than_its_object_is_cached() {
    let floats = "decode | resize(10, 10) | to_float | cast(f16)";
    assert_eq!(stage(floats, Some(5_000)), Some(4));
    assert_eq!(stage(floats, Some(600)), Some(4));
    assert_eq!(stage(floats, Some(599)), Some(2), "the pixels have 300 bytes");
    assert_eq!(
        stage(floats, Some(299)),
        Some(1),
        "the decoded image may be this small: its size is only known later"
    );
    assert_eq!(
        stage(floats, None),
        Some(4),
        "sizes are unknown without a listing"
    );
    let random = "decode | resize(10, 10) | flip_h(seed=1) | to_float";
    assert_eq!(stage(random, Some(5_000)), Some(2));
    assert_eq!(stage("decode | resize(10, 10)", Some(299)), Some(1));
}

#[test]
fn values_larger_than_their_objects_are_not_cached() {
    let (cache, _folder) = open("decode | encode(png)");
    let object = Object {
        key: "k",
        bytes: Some(5),
        etag: Some("\"e\""),
        member: None,
    };
    let objects = Objects::from_objects("b", [object]);
    let stage = cache.stage(object.bytes).unwrap();
    assert!(!stage.is_known_to_fit(object.bytes));
    for (value, expected) in [("123456", Err(NotCachedReason::Larger)), ("12345", Ok(()))] {
        let value = Sample::Bytes(value.into());
        let stored = cache.store(ListedSample::new(&objects, 0), object.bytes, stage, (&value, &[]));
        assert_eq!(stored, expected);
        assert_eq!(cache.missing(&objects).is_empty(), expected.is_ok());
    }
}

/// Sizes stay when an object is replaced, and so a value without an ETag is not one of this object for sure.
#[test]
fn values_of_objects_without_an_etag_are_not_cached() {
    let (cache, _folder) = open("decode | encode(png)");
    let object = Object {
        key: "k",
        bytes: Some(5),
        etag: None,
        member: None,
    };
    let objects = Objects::from_objects("b", [object]);
    let (sample, stage) = (ListedSample::new(&objects, 0), cache.stage(object.bytes).unwrap());
    let pipeline = Pipeline::parse("decode | encode(png)").unwrap();
    let store = || cache.store(sample, object.bytes, stage, (&Sample::Bytes("value".into()), &[]));
    let load = || cache.load(sample, stage, &pipeline, &Limits::default());
    assert!(cache.needs_etag(sample) && !cache.has_no_etag(sample));
    assert_eq!(store(), Err(NotCachedReason::NoEtag));
    cache.set_etag(0, Some("\"first\""));
    assert_eq!(store(), Ok(()));
    assert!(load().is_some());
    cache.set_etag(0, Some("\"second\""));
    assert!(load().is_none());
    cache.set_etag(0, None);
    assert!(!cache.needs_etag(sample) && cache.has_no_etag(sample));
    assert!(load().is_none());
    assert_eq!(store(), Err(NotCachedReason::NoEtag));
    let lookup = cache.load_or_claim(sample, stage, &pipeline, &Limits::default());
    assert!(matches!(lookup, Lookup::Unclaimed));
}

#[test]
fn everything_that_changes_a_value_changes_its_digest() {
    let (cache, _folder) = open("decode | resize(10, 10) | to_float");
    let (other, _other) = open("decode | resize(11, 11) | to_float");
    let object = Object {
        key: "k",
        bytes: Some(5_000),
        etag: Some("\"e\""),
        member: None,
    };
    let of_stage = |cache: &ValueCache, object: Object<'_>, stage: &CachedStage| {
        let objects = Objects::from_objects("b", [object]);
        cache.digest(ListedSample::new(&objects, 0), stage).unwrap()
    };
    let digest = |cache: &ValueCache, object: Object<'_>| of_stage(cache, object, &cache.stages[0]);
    let first = digest(&cache, object);
    assert_eq!(digest(&cache, object), first);
    assert_ne!(digest(&other, object), first, "another pipeline");
    assert_ne!(
        of_stage(&cache, object, &cache.stages[1]),
        first,
        "another stage of it"
    );
    let mut engine = cache.stages[0].clone();
    assert_eq!(engine.engine, "decode=4 resample=4 tensor=4");
    assert_eq!(
        cache.stages[1].engine, "decode=4 resample=4",
        "a stage has the families of its prefix"
    );
    engine.engine += "; onnxruntime=1.30.0";
    assert_ne!(of_stage(&cache, object, &engine), first, "another engine");
    let member = |name, offset, header_bytes| {
        let range = MemberRange::new(offset, header_bytes, 5_000).unwrap();
        Object {
            member: Some(MemberRef { name, range }),
            ..object
        }
    };
    let changed = [
        Object { key: "l", ..object },
        Object {
            bytes: Some(5_001),
            ..object
        },
        Object {
            etag: Some("\"f\""),
            ..object
        },
        member("1.jpg", 0, 512),
        member("2.jpg", 0, 512),
        member("1.jpg", 1024, 512),
        member("1.jpg", 0, 1536),
    ];
    let mut digests = vec![first];
    for changed in changed {
        let found = digest(&cache, changed);
        assert!(!digests.contains(&found), "{changed:?}");
        digests.push(found);
    }
}
