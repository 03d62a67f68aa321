//! Samples of shards in pieces, and shards that are truncated or hostile.

use std::io::Write as _;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use pushdown::shard::{Compression, TarWriter};

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
        other => panic!("{other:?}"),
    }
}

/// The samples of a shard that arrives in pieces, and its error.
fn unpack(shard: &[u8], further: &[&str], piece: usize) -> (Vec<StoredSample>, Option<RowError>) {
    let columns = Arc::new(selection(further).matcher().unwrap());
    let mut unpacker = Unpacker::new(columns, MAX_VALUE_BYTES);
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
    unpack(&tar(members), further, 700)
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
            let (found, error) = unpack(&shard, &["cls"], piece);
            assert_eq!(error, None, "{compression:?}, {piece}");
            assert_eq!(found, expected, "{compression:?}, {piece}");
        }
    }
}

#[test]
fn groups_are_counted() {
    let columns = Arc::new(selection(&[]).matcher().unwrap());
    let mut unpacker = Unpacker::new(columns, MAX_VALUE_BYTES);
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
            let (found, error) = unpack(&shard[..length], &["cls"], 100);
            assert!(whole.starts_with(&found), "{compression:?}, {length}");
            for piece in [1, 1 << 20] {
                let again = unpack(&shard[..length], &["cls"], piece);
                assert_eq!(
                    again,
                    (found.clone(), error.clone()),
                    "{compression:?}, {length}, {piece}"
                );
            }
            // A tar may end after an entry, and needs one block of zeros of its end marker.
            let is_whole = length > 0 && length % 512 == 0 || shard.len() - length < 512;
            if compression == Compression::None && is_whole {
                continue;
            }
            assert_eq!(
                error.map(|error| error.code).as_deref(),
                Some("InvalidShard"),
                "{length}"
            );
        }
    }
}

#[test]
fn bytes_after_a_compressed_tar_are_ignored() {
    let (whole, _) = samples(&photos(), &["cls"]);
    for compression in [Compression::Gzip, Compression::Zstd] {
        for after in [
            &b"\n"[..],
            b"\0",
            &[0; 1000],
            b"\0\0garbage",
            b"garbage",
            b"\x1f",
            b"\x1f\x8a",
            b"\x28\xb5\x2f",
            &[0x50; 50],
        ] {
            let shard = [&compressed(&tar(&photos()), compression)[..], after].concat();
            for piece in [1, 3, 1 << 20] {
                let found = unpack(&shard, &["cls"], piece);
                assert_eq!(
                    found,
                    (whole.clone(), None),
                    "{compression:?}, {after:?}, {piece}"
                );
            }
        }
        // Only after a whole tar.
        let shard = [&compressed(&tar(&photos())[..2000], compression)[..], b"\n"].concat();
        let (_, error) = unpack(&shard, &["cls"], 100);
        assert!(
            error.unwrap().message.contains("found one that ends at byte"),
            "{compression:?}"
        );
    }
}

#[test]
fn all_samples_before_damage_are_read_in_any_pieces() {
    let mut members = Vec::new();
    let mut noise = 1_u32;
    let names: Vec<String> = (0..40).map(|number| format!("{number}.jpg")).collect();
    for name in &names {
        let content = (0..4000).map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.to_be_bytes()[0]
        });
        members.push((name.as_str(), content.collect()));
    }
    let tar = tar(&members);
    let (whole, _) = samples(&members, &[]);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let shard = compressed(&tar, compression);
        let last = shard.len() - 6;
        for place in [shard.len() / 3, shard.len() / 2, last] {
            let mut shard = shard.clone();
            shard[place] ^= 0x55;
            let (found, error) = unpack(&shard, &[], 1 << 20);
            for piece in [1, 700, 16 << 10] {
                let again = unpack(&shard, &[], piece);
                assert_eq!(
                    again,
                    (found.clone(), error.clone()),
                    "{compression:?}, {place}, {piece}"
                );
            }
            if compression == Compression::Gzip {
                assert_eq!(error.unwrap().code, "InvalidShard");
            }
            if place == last && compression == Compression::Gzip {
                assert_eq!(found, whole, "only the checksum is wrong");
            }
        }
    }
}

#[test]
fn members_that_are_left_out_are_counted() {
    let columns = Arc::new(selection(&["cls"]).matcher().unwrap());
    let mut unpacker = Unpacker::new(columns, MAX_VALUE_BYTES);
    unpacker.push(&mut renamed(b"../.jpg").into()).unwrap();
    unpacker.finish().unwrap();
    assert!(unpacker.take_samples().is_empty());
    let mut counts = GroupCounts::default();
    counts.add("a\n.tar", unpacker.counts());
    counts.add("b.tar", unpacker.counts());
    assert_eq!(
        counts.left_out.to_string(),
        "2 members: a\\n.tar `../.jpg` (a name with a part `..`), b.tar `../.jpg` (a name with a part `..`)"
    );
    assert_eq!(counts.has_column, [false]);
}

/// A tar of one file whose name begins with these bytes.
fn renamed(name: &[u8]) -> Vec<u8> {
    let mut tar = tar(&[("x.jpg", vec![1; 9])]);
    tar[..name.len()].copy_from_slice(name);
    let sum: u32 = tar[..148]
        .iter()
        .chain(&tar[156..512])
        .map(|byte| u32::from(*byte))
        .sum();
    tar[148..156].copy_from_slice(format!("{:06o}\0 ", sum + 8 * 32).as_bytes());
    tar
}

#[test]
fn hostile_shards_are_refused() {
    for (shard, expected) in [
        (renamed(b"\0\0\0\0\0"), "an empty one"),
        (vec![1; 2048], "checksum"),
        (Vec::new(), "truncated"),
        (b"BZh91AY&SY".to_vec(), "compressed by bzip2"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "compressed by xz"),
        (b"\x1f\x8b\x08no gzip".to_vec(), "malformed gzip data"),
    ] {
        let (found, error) = unpack(&shard, &[], 512);
        let error = error.unwrap().to_string();
        assert!(
            found.is_empty() && error.contains(expected),
            "{expected}: {error}"
        );
    }
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
        let (found, error) = unpack(&shard, &[], 1 << 20);
        let error = error.unwrap();
        assert!(
            found.is_empty() && error.message.contains("1000 bytes for each"),
            "{error}"
        );
    }
    // What is too large for a sample is not held.
    let (found, error) = unpack(&tar, &[], 1 << 20);
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
        let (found, error) = unpack(&shard, &["cls"], piece);
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
