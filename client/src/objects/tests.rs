pub(super) mod members;

use super::*;

/// Objects of which some have no size or no ETag.
pub(super) fn photos() -> Objects {
    let object = |key, bytes, etag| Object {
        key,
        bytes,
        etag,
        member: None,
    };
    Objects::from_objects(
        "photos",
        [
            object("train/a.jpg", Some(5), Some("\"e\"")),
            object("train/b c.jpg", None, None),
            object("\u{e9}/\u{732b}.png", Some(u64::MAX), None),
        ],
    )
}

#[test]
fn elements_are_those_of_the_list() {
    let photos = photos();
    assert_eq!((photos.len(), photos.bucket()), (3, "photos"));
    assert_eq!(
        (photos.key(1), photos.bytes(1), photos.etag(1)),
        ("train/b c.jpg", None, None)
    );
    assert_eq!((photos.bytes(2), photos.etag(0)), (Some(u64::MAX), Some("\"e\"")));
    let again = Objects::from_objects("photos", photos.iter());
    assert_eq!(again, photos);
    let some = photos.select([2, 0, 2]);
    let keys: Vec<_> = some.iter().map(|object| object.key).collect();
    assert_eq!(
        keys,
        ["\u{e9}/\u{732b}.png", "train/a.jpg", "\u{e9}/\u{732b}.png"]
    );
    assert_eq!(some.object(1), photos.object(0));
    assert!(photos.select([]).is_empty());
    let keys = photos.iter().map(|object| object.key);
    let unlisted = Objects::from_keys("photos", keys);
    assert_eq!(
        (unlisted.key(0), unlisted.bytes(0), unlisted.etag(0)),
        ("train/a.jpg", None, None)
    );
    assert_ne!(unlisted, photos);
}

/// From Python: `sha256(b"".join(struct.pack("<Q", len(part)) + part for part in [bucket, *keys]))`, all in UTF-8.
#[test]
fn golden_digests() {
    let photos = photos();
    let expected = "7f8cc664479f2b7b3baef88c774f5d4257e078b89e3b1a92eb951a0d6b2a2a83";
    assert_eq!(photos.digest(), expected);
    let unlisted = Objects::from_keys("photos", photos.iter().map(|object| object.key));
    assert_eq!(unlisted.digest(), expected, "sizes and ETags do not count");
    assert_eq!(
        photos.select([]).digest(),
        "7fb95574de0596b122d6b88c18a3d0732a85fbb2e9135914038c9c9666015dbc"
    );
    for other in [
        photos.select([1, 0, 2]),
        photos.select([0, 1]),
        Objects::from_keys("photo", photos.iter().map(|object| object.key)),
        Objects::from_keys("photos", ["train/a.jpgt", "rain/b c.jpg", "\u{e9}/\u{732b}.png"]),
    ] {
        assert_ne!(other.digest(), expected, "{other:?}");
    }
}

#[test]
fn a_long_list_is_compact() {
    const COUNT: usize = 100_000;
    let key = |index: usize| format!("train/n{:08}/ILSVRC2012_val_{index:010}.JPEG", index / 1000);
    let etag = format!("\"{}\"", "0".repeat(32));
    let mut builder = ObjectsBuilder::default();
    for index in 0..COUNT {
        builder.push(Object {
            key: &key(index),
            bytes: Some(110_000),
            etag: Some(&etag),
            member: None,
        });
    }
    let objects = builder.finish("photos".into());
    let bytes = objects.to_record_batch().unwrap().get_array_memory_size();
    let per_object = key(0).len() + etag.len() + 3 * size_of::<u64>();
    assert!(bytes <= COUNT * per_object + 4096, "{bytes} bytes");
}

#[test]
fn lists_are_record_batches() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let photos = photos();
    let batch = photos.to_record_batch().unwrap();
    assert_eq!(Objects::from_record_batch("photos", &batch).unwrap(), photos);
    let part = Objects::from_record_batch("photos", &batch.slice(1, 2)).unwrap();
    assert_eq!(part, photos.select([1, 2]));
    assert_eq!(part.digest(), photos.select([1, 2]).digest());

    let column = |name, column: ArrayRef| RecordBatch::try_from_iter([(name, column)]).unwrap();
    let keys = column("key", Arc::new(StringArray::from(vec!["a", "b"])));
    assert_eq!(
        Objects::from_record_batch("b", &keys).unwrap(),
        Objects::from_keys("b", ["a", "b"])
    );
    let nulls = column("key", Arc::new(StringArray::from(vec![Some("a"), None])));
    let number = column("key", Arc::new(UInt64Array::from(vec![1])));
    let other = column("path", Arc::new(StringArray::from(vec!["a"])));
    for batch in [nulls, number, other] {
        let error = Objects::from_record_batch("b", &batch).unwrap_err().to_string();
        let expected =
            "invalid object list: expected a column `key` of strings without nulls, found the columns ";
        assert!(error.starts_with(expected), "{error}");
    }
}
