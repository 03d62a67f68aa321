use pushdown::shard::MemberRange;

use super::*;
use crate::{
    ErrorKind,
    objects::{MemberRef, Object, ObjectsBuilder},
};

/// An index of members `(shard, name)` at distances of 1,024 bytes.
pub(super) fn index(members: &[(&str, &str)]) -> ShardIndex {
    let mut builder = ObjectsBuilder::default();
    for (number, (key, name)) in members.iter().enumerate() {
        let range = MemberRange::new(1024 * number as u64, 512, 100 + number as u64 % 400).unwrap();
        builder.push(Object {
            key,
            bytes: None,
            etag: Some("\"e\""),
            member: Some(MemberRef { name, range }),
        });
    }
    ShardIndex::new(builder.finish("photos".into()))
}

/// Two shards with images, classes and masks.
pub(super) fn photos() -> ShardIndex {
    index(&[
        ("train-0.tar", "a/1.jpg"),
        ("train-0.tar", "a/1.cls"),
        ("train-0.tar", "README"),
        ("train-0.tar", "a/2.cls"),
        ("train-0.tar", "a/2.PNG"),
        ("train-0.tar", "a/2.seg.png"),
        ("train-1.tar", "a/1.cls"),
        ("train-1.tar", "b.v2/3.jpeg"),
        ("train-1.tar", "b.v2/3.png"),
    ])
}

fn select(value: Option<&str>, further: &[&str]) -> ColumnSelection {
    ColumnSelection {
        value: value.map(str::to_owned),
        further: further.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The names of the values and of the members of the columns.
fn shown(objects: &Objects) -> Vec<String> {
    let name = |member: Option<MemberRef<'_>>| member.map_or("-", |member| member.name).to_owned();
    let sample = |index| {
        let columns = (0..objects.columns().len()).map(|column| name(objects.column_member(index, column)));
        let value = name(objects.member(index));
        let shown: Vec<_> = [value].into_iter().chain(columns).collect();
        format!("{}: {}", objects.key(index), shown.join(" "))
    };
    (0..objects.len()).map(sample).collect()
}

fn refused(index: &ShardIndex, selection: &ColumnSelection) -> String {
    let error = index.samples(selection).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn a_member_is_found_by_its_name() {
    let index = photos();
    let found = index
        .members()
        .find_member("photos", "train-1.tar", "a/1.cls")
        .unwrap();
    assert_eq!(shown(&found), ["train-1.tar: a/1.cls"]);
    assert_eq!(found.object(0), index.members().object(6));
    for (bucket, key, name) in [
        ("other", "train-1.tar", "a/1.cls"),
        ("photos", "train-2.tar", "a/1.cls"),
        ("photos", "train-1.tar", "a/1.jpg"),
    ] {
        let error = index.members().find_member(bucket, key, name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let start = format!("found no member `{name}` of s3://{bucket}/{key}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn groups_with_an_image_are_samples() {
    let samples = photos().samples(&ColumnSelection::default()).unwrap();
    assert_eq!(
        shown(&samples),
        [
            "train-0.tar: a/1.jpg",
            "train-0.tar: a/2.PNG",
            "train-1.tar: b.v2/3.jpeg"
        ]
    );
    assert_eq!(samples.bytes(1), Some(104));
    assert_eq!(samples.etag(2), Some("\"e\""));
}

#[test]
fn further_columns_belong_to_the_group_in_the_same_shard() {
    let samples = photos().samples(&select(None, &["cls", "seg.png"])).unwrap();
    assert_eq!(
        shown(&samples),
        [
            "train-0.tar: a/1.jpg a/1.cls -",
            "train-0.tar: a/2.PNG a/2.cls a/2.seg.png",
            "train-1.tar: b.v2/3.jpeg - -"
        ]
    );
}

#[test]
fn the_value_column_is_named_in_any_case() {
    let samples = photos().samples(&select(Some("PNG"), &["jpeg"])).unwrap();
    assert_eq!(
        shown(&samples),
        ["train-0.tar: a/2.PNG -", "train-1.tar: b.v2/3.png b.v2/3.jpeg"]
    );
    // A further column is not the value, too.
    let samples = photos().samples(&select(None, &["png"])).unwrap();
    assert_eq!(
        shown(&samples),
        ["train-0.tar: a/1.jpg -", "train-1.tar: b.v2/3.jpeg b.v2/3.png"]
    );
}

#[test]
fn a_column_without_members_is_an_error_that_lists_the_extensions() {
    let expected = "no sample in the shards of s3://photos has a member with the extension";
    let found = "found cls, jpeg, jpg, png, seg.png";
    assert_eq!(
        refused(&photos(), &select(Some("flac"), &[])),
        format!("{expected} flac: {found}")
    );
    assert_eq!(
        refused(&photos(), &select(None, &["cls", "json"])),
        format!("{expected} json: {found}")
    );
    assert_eq!(
        refused(&index(&[("a.tar", "README")]), &select(None, &[])),
        format!("{expected} jpg, jpeg, png, webp: found no extension")
    );
}

#[test]
fn ambiguous_selections_are_refused() {
    let twice = index(&[("a.tar", "1.jpg"), ("a.tar", "1.JPG")]);
    assert_eq!(
        refused(&twice, &select(None, &[])),
        "s3://photos/a.tar has two members for one column of a sample: `1.jpg` and `1.JPG`"
    );
    let value = "the value of a sample cannot be one of its further columns: name another extension for it";
    assert_eq!(refused(&photos(), &select(Some("jpg"), &["cls", "jpg"])), value);
    for further in [&["cls", "cls"][..], &[""], &["a b"], &["x"; 17]] {
        assert!(photos().samples(&select(None, further)).is_err(), "{further:?}");
    }
}

#[test]
fn shards_are_selected_by_key() {
    let photos = photos();
    let shards: Vec<_> = photos.shards().collect();
    assert_eq!(shards, [("train-0.tar", "\"e\""), ("train-1.tar", "\"e\"")]);
    let second = photos.select_shards(&["train-1.tar"]).unwrap();
    assert_eq!((second.len(), second.bucket()), (3, "photos"));
    let both = photos.select_shards(&["train-1.tar", "train-0.tar"]).unwrap();
    assert_eq!(both.members().key(0), "train-1.tar");
    assert_eq!(both.len(), photos.len());
    let error = |keys: &[&str]| photos.select_shards(keys).unwrap_err().to_string();
    assert_eq!(
        error(&["train-2.tar"]),
        "the index has no members of s3://photos/train-2.tar: run `pushdown index` with this shard"
    );
    assert_eq!(
        error(&["train-0.tar", "train-0.tar"]),
        "s3://photos/train-0.tar is named twice, expected each shard once"
    );
}
