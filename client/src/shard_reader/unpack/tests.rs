//! Samples of shards in pieces, and shards that are truncated or hostile.

use std::io::Write as _;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use pushdown::shard::TarWriter;

use super::*;
use crate::{
    objects::{MemberRef, Object, Objects},
    shards::{ColumnSelection, ShardIndex},
};

const MAX_VALUE_BYTES: u64 = 5000;

/// Name and content of a member.
type Named<'a> = (&'a str, Vec<u8>);

fn tar(members: &[Named<'_>]) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for (name, content) in members {
        tar.append(name, content).unwrap();
    }
    tar.finish().unwrap()
}

fn selection(further: &[&str]) -> ColumnSelection {
    ColumnSelection {
        value: None,
        further: further.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn compressed(tar: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => tar.to_vec(),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(tar).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => zstd::encode_all(tar, 3).unwrap(),
    }
}

/// The samples of a shard that arrives in pieces, and its error.
fn unpack(
    shard: &[u8],
    compression: Compression,
    further: &[&str],
    piece: usize,
) -> (Vec<StoredSample>, Option<RowError>) {
    let columns = Arc::new(ColumnMatcher::new(&selection(further)).unwrap());
    let mut unpacker = Unpacker::new(compression, columns, MAX_VALUE_BYTES).unwrap();
    let mut read = || {
        for piece in shard.chunks(piece) {
            let mut input = Bytes::copy_from_slice(piece);
            while !input.is_empty() || unpacker.has_pending_output() {
                unpacker.push(&mut input)?;
            }
        }
        unpacker.finish()
    };
    let error = read().err();
    (unpacker.take_samples(), error)
}

/// The same of a shard that is not compressed.
fn samples(members: &[Named<'_>], further: &[&str]) -> (Vec<StoredSample>, Option<RowError>) {
    unpack(&tar(members), Compression::None, further, 700)
}

fn sample(member: &str, value: &[u8], columns: &[Option<&[u8]>]) -> StoredSample {
    StoredSample {
        member: Some(member.into()),
        value: Ok(Bytes::copy_from_slice(value)),
        columns: columns
            .iter()
            .map(|column| column.map(Bytes::copy_from_slice))
            .collect(),
    }
}

fn photos() -> Vec<Named<'static>> {
    vec![
        ("a/0.cls", b"7".to_vec()),
        ("a/0.jpg", vec![1; 2000]),
        ("a/0.txt", b"text".to_vec()),
        ("a/1.PNG", vec![2; 512]),
        ("a/1.jpg", Vec::new()),
        ("README", b"no extension".to_vec()),
        ("b.txt", b"no value".to_vec()),
        ("b/0.webp", vec![3; 700]),
        ("b/0.cls", Vec::new()),
    ]
}

#[test]
fn members_are_samples_in_any_pieces_and_compressions() {
    let expected = [
        sample("a/0.jpg", &[1; 2000], &[Some(b"7")]),
        sample("a/1.jpg", b"", &[None]),
        sample("b/0.webp", &[3; 700], &[Some(b"")]),
    ];
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let shard = compressed(&tar(&photos()), compression);
        for piece in [1, 511, 512, 1 << 20] {
            let (found, error) = unpack(&shard, compression, &["cls"], piece);
            assert_eq!(error, None, "{compression:?}, {piece}");
            assert_eq!(found, expected, "{compression:?}, {piece}");
        }
    }
}

#[test]
fn groups_are_counted() {
    let columns = Arc::new(ColumnMatcher::new(&selection(&[])).unwrap());
    let mut unpacker = Unpacker::new(Compression::None, columns, MAX_VALUE_BYTES).unwrap();
    unpacker.push(&mut tar(&photos()).into()).unwrap();
    unpacker.finish().unwrap();
    let counts = unpacker.counts();
    assert_eq!((counts.samples, counts.skipped), (3, 1));
    let missing = counts.extensions.missing("b", &["gif".to_owned()]).to_string();
    assert!(missing.ends_with("found cls, jpg, png, txt, webp"), "{missing}");
}

/// A member of 5,001 bytes is not held, and the others are read.
#[test]
fn large_members_are_errors_of_their_samples() {
    let large = usize::try_from(MAX_VALUE_BYTES).unwrap() + 1;
    let members = [
        ("0.jpg", vec![1; large]),
        ("1.jpg", vec![2; large - 1]),
        ("2.bin", vec![3; (1 << 20) + 1]),
        ("2.jpg", vec![4; 9]),
        ("3.jpg", vec![5; 9]),
        ("3.bin", vec![6; 1 << 20]),
    ];
    let (found, error) = samples(&members, &["bin"]);
    assert_eq!(error, None);
    let codes: Vec<_> = found.iter().map(|sample| sample.value.as_ref().err()).collect();
    let codes: Vec<_> = codes
        .into_iter()
        .map(|error| error.map(|error| &*error.code))
        .collect();
    let too_large = Some("EntityTooLarge");
    assert_eq!(codes, [too_large, None, too_large, None]);
    assert!(found[2].columns.iter().all(Option::is_none));
    assert_eq!(found[3].columns[0].as_ref().map(Bytes::len), Some(1 << 20));
}

#[test]
fn a_shard_ends_where_an_index_would_have_other_samples() {
    for (names, complete, expected) in [
        (&["0.jpg", "1.jpg", "0.cls"][..], 1, "`0.cls` after others"),
        (&["0.txt", "1.jpg", "0.jpg"], 0, "`0.jpg` after others"),
        (&["0.jpg", "1.jpg", "1.JPG"], 1, "`1.JPG` as a second"),
        (&["0.cls", "0.CLS"], 0, "`0.CLS` as a second"),
    ] {
        let members: Vec<_> = names.iter().map(|name| (*name, vec![1])).collect();
        let (found, error) = samples(&members, &["cls"]);
        let error = error.unwrap();
        assert_eq!(found.len(), complete, "{names:?}");
        assert!(
            error.code == "InvalidShard" && error.message.contains(expected),
            "{error}"
        );
    }
    // Members that are no columns may be anywhere.
    let names = ["0.jpg", "1.jpg", "0.txt", "1.cls"];
    let members: Vec<_> = names.iter().map(|name| (*name, vec![1])).collect();
    let (found, error) = samples(&members, &["cls"]);
    assert_eq!((found.len(), error), (2, None));
}

#[test]
fn of_a_truncated_shard_the_complete_samples_are_read() {
    let (whole, _) = samples(&photos(), &["cls"]);
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let shard = compressed(&tar(&photos()), compression);
        for length in (0..shard.len()).step_by(if compression == Compression::None { 37 } else { 1 }) {
            let (found, error) = unpack(&shard[..length], compression, &["cls"], 100);
            assert!(whole.starts_with(&found), "{compression:?}, {length}");
            assert_eq!(
                error.map(|error| error.code).as_deref(),
                Some("InvalidShard"),
                "{length}"
            );
        }
    }
}

#[test]
fn hostile_shards_are_refused() {
    let named = |name: &[u8]| {
        let mut tar = tar(&[("x.jpg", vec![1; 9])]);
        tar[..name.len()].copy_from_slice(name);
        let sum: u32 = tar[..148]
            .iter()
            .chain(&tar[156..512])
            .map(|byte| u32::from(*byte))
            .sum();
        tar[148..156].copy_from_slice(format!("{:06o}\0 ", sum + 8 * 32).as_bytes());
        tar
    };
    for (shard, expected) in [
        (named(b"../.jpg"), ".."),
        (named(b"/x.jpg"), "absolute"),
        (vec![1; 2048], "checksum"),
        (Vec::new(), "truncated"),
    ] {
        let (found, error) = unpack(&shard, Compression::None, &[], 512);
        let error = error.unwrap().to_string();
        assert!(
            found.is_empty() && error.contains(expected),
            "{expected}: {error}"
        );
    }
    let (_, error) = unpack(&tar(&photos()), Compression::Gzip, &[], 512);
    assert!(error.unwrap().message.contains("malformed gzip data"));
}

#[test]
fn decompression_bombs_end_at_the_limit() {
    let mut tar = TarWriter::new(Vec::new());
    tar.start("0.jpg", 100 << 20).unwrap();
    let content = vec![0; 1 << 20];
    (0..100).for_each(|_| tar.write_content(&content).unwrap());
    let tar = tar.finish().unwrap();
    for compression in [Compression::Gzip, Compression::Zstd] {
        let shard = compressed(&tar, compression);
        let (found, error) = unpack(&shard, compression, &[], 1 << 20);
        let error = error.unwrap();
        assert!(
            found.is_empty() && error.message.contains("1000 bytes for each"),
            "{error}"
        );
    }
    // What is too large for a sample is not held.
    let (found, error) = unpack(&tar, Compression::None, &[], 1 << 20);
    assert_eq!((found.len(), error), (1, None));
    assert!(
        found[0]
            .value
            .as_ref()
            .is_err_and(|error| error.code == "EntityTooLarge")
    );
}

proptest! {
    /// The samples of an index of the same shard, unless the shard is refused.
    #[test]
    fn samples_are_those_of_an_index(
        names in prop::collection::vec((0..4_u8, prop::sample::select(vec!["jpg", "JPEG", "cls", "txt"])), 1..12),
        piece in 1_usize..2000,
    ) {
        let mut tar = TarWriter::new(Vec::new());
        let mut ranges = Vec::new();
        for (nth, (base, extension)) in names.iter().enumerate() {
            let name = format!("{base}.{extension}");
            // A repeated name is refused.
            if let Ok(range) = tar.append(&name, &[u8::try_from(nth).unwrap()]) {
                ranges.push((name, range));
            }
        }
        let shard = tar.finish().unwrap();
        let objects = ranges.iter().map(|(name, range)| Object {
            key: "0.tar",
            bytes: None,
            etag: Some("\"e\""),
            member: Some(MemberRef { name, range: *range }),
        });
        let index = ShardIndex::new(Objects::from_objects("b", objects));
        let (found, error) = unpack(&shard, Compression::None, &["cls"], piece);
        if error.is_none() {
            let content = |member: MemberRef<'_>| {
                let content = member.range.content();
                shard[usize::try_from(content.start).unwrap()..usize::try_from(content.end).unwrap()].to_vec()
            };
            let expected = index.samples(&selection(&["cls"]));
            // Without a sample, or without a label, an index is an error.
            let expected: Vec<StoredSample> = match &expected {
                Ok(samples) => (0..samples.len())
                    .map(|index| {
                        let member = samples.member(index).unwrap();
                        let column = samples.column_member(index, 0).map(content);
                        sample(member.name, &content(member), &[column.as_deref()])
                    })
                    .collect(),
                Err(_) => found.iter().filter(|sample| sample.columns[0].is_none()).cloned().collect(),
            };
            prop_assert_eq!(found, expected);
        }
    }
}
