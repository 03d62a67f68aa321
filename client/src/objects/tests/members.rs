//! Lists with members.

use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray, UInt32Array};
use pushdown::shard::MemberRange;

use super::*;

fn member(name: &str, offset: u64, header_bytes: u32, size: u64) -> MemberRef<'_> {
    let range = MemberRange::new(offset, header_bytes, size).unwrap();
    MemberRef { name, range }
}

/// Members of two shards with two further columns, and a whole object.
pub(in crate::objects) fn shards() -> Objects {
    let sample = |key, etag, member| Object {
        key,
        bytes: None,
        etag: Some(etag),
        member: Some(member),
    };
    let whole = Object {
        key: "whole.jpg",
        bytes: Some(77),
        etag: None,
        member: None,
    };
    let mut builder = ObjectsBuilder::with_columns(vec!["cls".into(), "seg.png".into()]);
    builder.push_with_columns(
        sample("train-0.tar", "\"e\"", member("a/1.jpg", 0, 512, 5)),
        &[Some(member("a/1.cls", 1024, 512, 1)), None],
    );
    builder.push_with_columns(
        sample("train-0.tar", "\"e\"", member("\u{732b}.jpg", 2048, 1536, 70_000)),
        &[None, Some(member("\u{732b}.seg.png", 80_000, 512, 0))],
    );
    builder.push_with_columns(
        sample("train-1.tar", "\"f\"", member("b.jpg", 512, 512, 9)),
        &[Some(member("b.cls", 0, 512, 2))],
    );
    builder.push(whole);
    builder.finish("photos".into())
}

#[test]
fn members_are_samples_of_shards() {
    let shards = shards();
    assert!(shards.has_members() && !photos().has_members());
    assert_eq!(shards.len(), 4);
    let columns: Vec<_> = shards.columns().iter().map(|name| &**name).collect();
    assert_eq!(columns, ["cls", "seg.png"]);
    let numbers: Vec<_> = (0..4).map(|index| shards.shard_number(index)).collect();
    assert_eq!(numbers, [0, 0, 1, 2]);
    assert_eq!(
        (shards.key(1), shards.etag(1), shards.bytes(1)),
        ("train-0.tar", Some("\"e\""), Some(70_000))
    );
    assert_eq!(shards.member(1), Some(member("\u{732b}.jpg", 2048, 1536, 70_000)));
    assert_eq!(shards.column_member(1, 0), None);
    assert_eq!(shards.column_member(2, 0), Some(member("b.cls", 0, 512, 2)));
    assert_eq!(
        (shards.member(3), shards.bytes(3), shards.etag(3)),
        (None, Some(77), None)
    );
    assert_eq!(shards.0.keys.len(), 3, "each shard stands once");
}

#[test]
fn a_selection_has_its_columns_and_the_shards_it_needs() {
    let some = shards().select([2, 0, 1, 2]);
    let numbers: Vec<_> = (0..4).map(|index| some.shard_number(index)).collect();
    assert_eq!(numbers, [0, 1, 1, 0]);
    assert_eq!(some.object(3), shards().object(2));
    assert_eq!(some.column_member(1, 0), shards().column_member(0, 0));
    assert_eq!(some.0.keys.len(), 2);
    assert_eq!(shards().select(0..4), shards());
    assert_eq!(shards().select([]).columns(), shards().columns());
}

#[test]
fn a_replaced_shard_is_another_one() {
    let sample = |etag| Object {
        key: "a.tar",
        bytes: None,
        etag,
        member: Some(member("a.jpg", 0, 512, 1)),
    };
    let whole = Object {
        member: None,
        ..sample(Some("1"))
    };
    let list = [
        whole,
        sample(Some("1")),
        sample(Some("2")),
        sample(None),
        sample(Some("1")),
    ];
    let list = Objects::from_objects("b", list);
    let numbers: Vec<_> = (0..5).map(|index| list.shard_number(index)).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 1]);
}

/// From Python: the digest of `golden_digests`, of `["\0members", bucket, "2", "cls", "seg.png", "train-0.tar", "0 512 5 a/1.jpg",
/// "1024 512 1 a/1.cls", "", ..]`.
#[test]
fn golden_digest_of_members() {
    let expected = "240e0b8f074b3da5689b6735b026c0ad08ea9d28c2ca1882dfa892fbc3799f78";
    assert_eq!(shards().digest(), expected);
    for other in [shards().select([1, 0, 2, 3]), shards().select([0, 1, 2])] {
        assert_ne!(other.digest(), expected);
    }
    let all = shards();
    let moved = Object {
        member: Some(member("a/1.jpg", 512, 512, 5)),
        ..all.object(0)
    };
    let digest = |object: Object<'_>| Objects::from_objects("photos", [object]).digest().to_owned();
    assert_ne!(digest(moved), digest(all.object(0)));
}

#[test]
fn lists_with_members_are_record_batches() {
    let shards = shards();
    let batch = shards.to_record_batch().unwrap();
    let names: Vec<_> = batch
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(
        names,
        [
            "key",
            "bytes",
            "etag",
            "member",
            "offset",
            "header_bytes",
            "size",
            "column:cls",
            "column:seg.png"
        ]
    );
    // The whole object has no ETag, and needs none.
    assert_eq!(Objects::from_record_batch("photos", &batch).unwrap(), shards);
    let part = Objects::from_record_batch("photos", &batch.slice(1, 2)).unwrap();
    assert_eq!(part, shards.select([1, 2]));
}

fn strings(values: [&str; 2]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Two members of one shard.
fn flat_columns() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("key", strings(["a.tar", "a.tar"])),
        ("etag", strings(["\"e\"", "\"e\""])),
        ("member", strings(["a.jpg", "b.jpg"])),
        ("offset", Arc::new(UInt64Array::from(vec![0, 1024]))),
        ("size", Arc::new(UInt64Array::from(vec![5, 6]))),
    ]
}

#[test]
fn headers_of_512_bytes_are_the_default() {
    let batch = RecordBatch::try_from_iter(flat_columns()).unwrap();
    let list = Objects::from_record_batch("b", &batch).unwrap();
    assert_eq!(list.member(1), Some(member("b.jpg", 1024, 512, 6)));
    assert_eq!((list.shard_number(1), list.0.keys.len()), (0, 1));
}

#[test]
fn invalid_members_are_refused() {
    let refused = |name: &'static str, column: Option<ArrayRef>| {
        let mut columns = flat_columns();
        columns.retain(|(known, _)| *known != name);
        columns.extend(column.map(|column| (name, column)));
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        );
        let error = Objects::from_record_batch("b", &batch.unwrap()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Config);
        let error = error.to_string();
        // The columns that were found are long.
        error
            .split(", found the columns")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let numbers = |numbers: Vec<Option<u64>>| Some(Arc::new(UInt64Array::from(numbers)) as ArrayRef);
    for (error, expected) in [
        (refused("offset", None), "a column `offset` of type UInt64"),
        (
            refused("offset", numbers(vec![Some(0), None])),
            "a column `offset` of type UInt64 with a number for each member",
        ),
        (
            refused("size", numbers(vec![Some(u64::MAX), Some(1)])),
            "valid members (row 0: ",
        ),
        (
            refused("header_bytes", Some(Arc::new(UInt32Array::from(vec![512, 0])))),
            "valid members (row 1: ",
        ),
        (
            refused("member", Some(strings(["a.jpg", "../b.jpg"]))),
            "valid members (row 1: ",
        ),
        (
            refused("column:cls", Some(strings(["0", "1"]))),
            "a column `column:cls` of structs without nulls",
        ),
    ] {
        let expected = format!("invalid object list: expected {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert_eq!(
        refused("etag", None),
        "invalid object list: the member a.jpg of a.tar in row 0 has no `etag` of its shard"
    );
}

#[test]
fn a_million_members_are_compact() {
    const COUNT: usize = 1_000_000;
    let mut builder = ObjectsBuilder::default();
    for index in 0..COUNT {
        let (key, name) = (
            format!("train-{:06}.tar", index / 1000),
            format!("{index:010}.jpeg"),
        );
        let offset = 512 * (index as u64 % 1000);
        builder.push(Object {
            key: &key,
            bytes: None,
            etag: Some("\"d41d8cd98f00b204e9800998ecf8427e\""),
            member: Some(member(&name, offset, 512, 110_000)),
        });
    }
    let objects = builder.finish("photos".into());
    let members = objects.0.members.as_ref().unwrap();
    let columns = &members.values;
    let bytes = [
        objects.0.keys.get_array_memory_size(),
        objects.0.etags.get_array_memory_size(),
        members.shards.get_array_memory_size(),
        columns.names.get_array_memory_size(),
        columns.offsets.get_array_memory_size(),
        columns.header_bytes.get_array_memory_size(),
        columns.sizes.get_array_memory_size(),
    ];
    let bytes: usize = bytes.iter().sum();
    assert!(bytes <= 50 * COUNT, "{bytes} bytes");
}
