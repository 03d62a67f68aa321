//! Zips that lie, or that readers take for different things. The snapshot has the error of each.

use pushdown_shard::{ShardError, ShardLimits, ZipDirectory};

use crate::{
    read::directory,
    write::{Zip, ZipFile},
};

/// Where the fields of a local header are.
const LOCAL_FLAGS: usize = 6;
const LOCAL_SIZES: usize = 18;
const LOCAL_NAME_LENGTH: usize = 26;
const LOCAL_EXTRA_LENGTH: usize = 28;
const LOCAL_NAME: usize = 30;
/// Where the fields of an entry of the directory are.
const ENTRY_SIZES: usize = 20;
const ENTRY_DISK: usize = 34;
const ENTRY_OFFSET: usize = 42;
/// Where the fields of the end record are.
const END_DISK: usize = 4;
const END_ENTRIES: usize = 8;
const END_DIRECTORY_BYTES: usize = 12;
const END_DIRECTORY_OFFSET: usize = 16;
const END_COMMENT_LENGTH: usize = 20;

/// Two files that have no fault.
fn files() -> [ZipFile; 2] {
    [ZipFile::new("a.jpg", b"content"), ZipFile::new("b.jpg", b"other")]
}

fn zip() -> Zip {
    Zip::new(&files())
}

/// A zip whose second file is another one.
fn with(file: ZipFile) -> Vec<u8> {
    let [first, _] = files();
    Zip::new(&[first, file]).bytes
}

fn named(name: &[u8]) -> Vec<u8> {
    with(ZipFile {
        name: name.to_vec(),
        ..ZipFile::new("", b"other")
    })
}

/// An extra field.
fn extra(id: u16, field: &[u8]) -> Vec<u8> {
    let length = u16::try_from(field.len()).unwrap();
    [&id.to_le_bytes()[..], &length.to_le_bytes(), field].concat()
}

/// The results of zips, a line each, which are the same if more bytes are read than needed.
fn results(cases: &[(&str, Vec<u8>)]) -> String {
    let lines = cases.iter().map(|(case, shard)| {
        let result = directory(shard, 0);
        for more in [1, 50, 1 << 20] {
            assert_eq!(directory(shard, more), result, "{case} {more}");
        }
        match result {
            Ok(members) => {
                let members = members
                    .iter()
                    .map(|member| format!(" {} ({})", member.name, member.range.size()));
                format!("{case}: read:{}", members.collect::<Vec<_>>().concat())
            }
            Err(error) => format!("{case}: {error}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_of_zips() {
    let file = ZipFile::new("b.jpg", b"other");
    let flagged = |flags| {
        with(ZipFile {
            flags,
            ..file.clone()
        })
    };
    let mode = |mode| with(ZipFile { mode, ..file.clone() });
    let with_extra = |name: &str, extra| {
        with(ZipFile {
            extra,
            ..ZipFile::new(name, b"other")
        })
    };
    insta::assert_snapshot!(results(&[
        ("plain", with(file.clone())),
        ("encrypted", flagged(1)),
        ("encrypted strongly", flagged(1 << 6)),
        ("encrypted directory", flagged(1 << 13)),
        ("size after the content", flagged(1 << 3)),
        ("patch", flagged(1 << 5)),
        (
            "deflated",
            with(ZipFile {
                method: 8,
                ..file.clone()
            })
        ),
        (
            "compressed by Zstandard",
            with(ZipFile {
                method: 93,
                ..file.clone()
            })
        ),
        ("mode of a file", mode(0o100_644)),
        ("symbolic link", mode(0o120_777)),
        ("device", mode(0o020_644)),
        (
            "folder",
            with(ZipFile {
                mode: 0o040_755,
                ..ZipFile::new("folder/", b"")
            })
        ),
        ("folder with a content", named(b"folder/")),
        ("absolute name", named(b"/etc/passwd")),
        ("parent", named(b"a/../../b")),
        ("empty name", named(b"")),
        ("NUL in the name", named(b"a\0.jpg")),
        ("name without the mark of UTF-8", named("ö.jpg".as_bytes())),
        (
            "name with the mark of UTF-8",
            with(ZipFile {
                flags: 1 << 11,
                ..ZipFile::new("ö.jpg", b"other")
            })
        ),
        (
            "name with the mark that is not UTF-8",
            with(ZipFile {
                name: vec![0xff],
                flags: 1 << 11,
                ..file.clone()
            })
        ),
        (
            "name in an extra field",
            with_extra(
                "ö.jpg",
                extra(0x7075, &[&[1, 0, 0, 0, 0][..], "ö.jpg".as_bytes()].concat())
            )
        ),
        (
            "other name in an extra field",
            with_extra("b.jpg", extra(0x7075, b"\x01\0\0\0\0c.jpg"))
        ),
        ("long name", named(&[b'a'; 1025])),
        ("duplicate", named(b"a.jpg")),
        (
            "most extra fields",
            with_extra("b.jpg", extra(0xffff, &vec![0; 65_531]))
        ),
        (
            "extra field that is too long",
            with_extra("b.jpg", vec![1, 0, 16, 0, 1])
        ),
    ]));
}

#[test]
fn records_of_zips() {
    let zip = zip();
    let (local, entry, end) = (zip.locals[1], zip.entries[1], zip.end);
    let changed = |offset: usize, bytes: &[u8]| zip.clone().changed(offset, bytes);
    let offset = |offset| {
        let [first, second] = files();
        let second = ZipFile {
            offset: Some(offset),
            ..second
        };
        Zip::new(&[first, second]).bytes
    };
    let commented = |comment: &[u8]| {
        let length = u16::try_from(comment.len()).unwrap();
        let mut bytes = changed(end + END_COMMENT_LENGTH, &length.to_le_bytes());
        bytes.extend_from_slice(comment);
        bytes
    };
    let small = u32::to_le_bytes;
    insta::assert_snapshot!(results(&[
        ("plain", zip.bytes.clone()),
        ("comment", commented(b"a comment")),
        ("end record in the comment", commented(&zip.bytes[end..])),
        ("other bytes", vec![7; 200]),
        ("bytes after the end", [&zip.bytes[..], b"\n"].concat()),
        ("bytes in front", [&b"#!/bin/sh\n"[..], &zip.bytes].concat()),
        ("several parts", changed(end + END_DISK, &[1, 0])),
        (
            "other number of entries",
            changed(end + END_ENTRIES, &[3, 0, 3, 0])
        ),
        ("fewer entries", changed(end + END_ENTRIES, &[1, 0, 1, 0])),
        ("shorter directory", changed(end + END_DIRECTORY_BYTES, &[1])),
        ("directory elsewhere", changed(end + END_DIRECTORY_OFFSET, &[1])),
        (
            "directory beyond the end",
            changed(end + END_DIRECTORY_OFFSET, &[0xfe, 0xff, 0xff, 0xff])
        ),
        ("damaged directory", changed(entry, b"XX")),
        ("other part of an entry", changed(entry + ENTRY_DISK, &[1, 0])),
        (
            "two sizes in the directory",
            changed(entry + ENTRY_SIZES, &small(4))
        ),
        (
            "other size in the directory",
            changed(entry + ENTRY_SIZES, &[4, 0, 0, 0, 4, 0, 0, 0])
        ),
        (
            "larger size in the directory",
            changed(entry + ENTRY_SIZES, &[6, 0, 0, 0, 6, 0, 0, 0])
        ),
        (
            "largest size in the directory",
            changed(entry + ENTRY_SIZES, &[0xfe; 8])
        ),
        ("mark of a long size", changed(entry + ENTRY_SIZES, &[0xff; 8])),
        ("mark of a long offset", changed(entry + ENTRY_OFFSET, &[0xff; 4])),
        ("entry at the offset of another", offset(0)),
        ("entry inside of another", offset(36)),
        (
            "entry at the directory",
            offset(u32::try_from(zip.entries[0]).unwrap())
        ),
        ("entry beyond the end", offset(u32::MAX - 1)),
        ("no local header", changed(local, b"XX")),
        (
            "other name in the local header",
            changed(local + LOCAL_NAME, b"c")
        ),
        (
            "other size in the local header",
            changed(local + LOCAL_SIZES, &[4, 0, 0, 0, 4, 0, 0, 0])
        ),
        (
            "encrypted by the local header",
            changed(local + LOCAL_FLAGS, &[1, 0])
        ),
        (
            "longer name in the local header",
            changed(local + LOCAL_NAME_LENGTH, &[6, 0])
        ),
        (
            "extra fields of the local header in the content",
            changed(local + LOCAL_EXTRA_LENGTH, &[2, 0])
        ),
        (
            "extra fields of the local header beyond the entry",
            changed(local + LOCAL_EXTRA_LENGTH, &[0xff, 0xff])
        ),
    ]));
}

#[test]
fn zip64_end_records() {
    let zip = zip();
    let (directory, end) = (zip.entries[0], zip.end);
    // The zip with a zip64 end record, its locator, and marks in the end record.
    let long = |entries: u64, bytes: u64, offset: u64, place: u64, marks: bool| {
        let record = [
            &b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0\0\0\0\0\0\0\0\0"[..],
            &entries.to_le_bytes(),
            &entries.to_le_bytes(),
            &bytes.to_le_bytes(),
            &offset.to_le_bytes(),
            b"PK\x06\x07\0\0\0\0",
            &place.to_le_bytes(),
            &[1, 0, 0, 0],
        ];
        let mut end_record = zip.bytes[end..].to_vec();
        if marks {
            end_record[END_ENTRIES..END_COMMENT_LENGTH].fill(0xff);
        }
        [&zip.bytes[..end], &record.concat(), &end_record].concat()
    };
    let (entries, bytes, offset, place) = (2, (end - directory) as u64, directory as u64, end as u64);
    insta::assert_snapshot!(results(&[
        ("marks", long(entries, bytes, offset, place, true)),
        ("equal numbers", long(entries, bytes, offset, place, false)),
        ("other numbers", long(entries, bytes, offset - 1, place, false)),
        ("other number of entries", long(3, bytes, offset, place, true)),
        ("most entries", long(u64::MAX, bytes, offset, place, true)),
        (
            "directory elsewhere",
            long(entries, bytes - 1, offset, place, true)
        ),
        (
            "directory that overflows",
            long(entries, u64::MAX, offset, place, true)
        ),
        ("record elsewhere", long(entries, bytes, offset, place - 1, true)),
        (
            "record beyond the end",
            long(entries, bytes, offset, u64::MAX, true)
        ),
        ("damaged record", {
            let mut bytes = long(entries, bytes, offset, place, true);
            bytes[end] = b'X';
            bytes
        }),
    ]));
}

#[test]
fn truncated_zips_are_refused_at_every_byte() {
    let shard = zip().bytes;
    for length in 0..shard.len() {
        assert!(directory(&shard[..length], 0).is_err(), "at byte {length}");
    }
}

#[test]
fn fewer_bytes_than_needed_are_refused() {
    let shard = zip().bytes;
    let length = shard.len() as u64;
    let mut directory = ZipDirectory::new(length, ShardLimits::default()).unwrap();
    assert_eq!(directory.needs(), Some(0..length));
    assert_eq!(
        directory.push(&shard[1..]),
        Err(ShardError::WrongLength {
            expected: length,
            found: length - 1
        })
    );
    assert!(matches!(
        directory.finish(),
        Err(ShardError::Truncated { position: 0, .. })
    ));
    assert!(matches!(
        ZipDirectory::new(21, ShardLimits::default()),
        Err(ShardError::Truncated { position: 21, .. })
    ));
}

#[test]
fn near_headers_are_read_at_once_and_far_ones_are_not() {
    let large = vec![1; 200_000];
    let near: Vec<_> = (0..20)
        .map(|index| ZipFile::new(&format!("{index}.cls"), b"7"))
        .collect();
    let far = ["y.jpg", "z.jpg"].map(|name| ZipFile::new(name, &large));
    let shard = Zip::new(&[&near[..], &far].concat()).bytes;
    let mut directory = ZipDirectory::new(shard.len() as u64, ShardLimits::default()).unwrap();
    let mut lengths = Vec::new();
    while let Some(range) = directory.needs() {
        lengths.push(range.end - range.start);
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        directory.push(&shard[range]).unwrap();
    }
    assert_eq!(directory.finish().unwrap().len(), 22);
    // The end, the directory, the headers of the small files and of the first large one, and that of the last.
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    assert!(lengths[2] < 2000 && lengths[3] < 200, "{lengths:?}");
}
