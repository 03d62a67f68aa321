//! The records of zips: local headers, the directory and its end.

use super::{files, results, zip};
use crate::write::{Zip, ZipFile};

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
        ("much in front", [vec![b'x'; 100_000], zip.bytes.clone()].concat()),
        (
            "size after the content",
            changed(local + LOCAL_FLAGS, &[8, 0, 0, 0])
        ),
        ("size after the content that the local header has not", {
            let mut zip = zip.clone();
            zip.bytes[local + LOCAL_FLAGS] = 8;
            zip.changed(local + LOCAL_SIZES, &[0; 8])
        }),
        ("other size after the content", {
            let mut zip = zip.clone();
            zip.bytes[local + LOCAL_FLAGS] = 8;
            zip.changed(local + LOCAL_SIZES, &[4, 0, 0, 0, 4, 0, 0, 0])
        }),
        (
            "no size in the local header",
            changed(local + LOCAL_SIZES, &[0; 8])
        ),
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
        ("bytes in front", {
            let bytes = long(entries, bytes, offset, place, true);
            [&b"#!/bin/sh\n"[..], &bytes].concat()
        }),
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
