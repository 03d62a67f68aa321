//! Files of zips: their flags, modes, names and extra fields.

use super::{files, results};
use crate::write::{Zip, ZipFile};

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

/// The extra field with the name in UTF-8 of a file with a name in other bytes.
fn unicode_name(of: &[u8], name: &str) -> Vec<u8> {
    let checksum = crc32fast::hash(of).to_le_bytes();
    extra(0x7075, &[&[1], &checksum[..], name.as_bytes()].concat())
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
            "other bytes, and the name in an extra field",
            with(ZipFile {
                name: b"\x94.jpg".to_vec(),
                extra: unicode_name(b"\x94.jpg", "ö.jpg"),
                ..file.clone()
            })
        ),
        (
            "other bytes, and another name in an extra field",
            with(ZipFile {
                name: b"\x94.jpg".to_vec(),
                extra: unicode_name(b"\x99.jpg", "Ö.jpg"),
                ..file.clone()
            })
        ),
        (
            "name, and another one in an extra field",
            with_extra("b.jpg", unicode_name(b"b.jpg", "ö.jpg"))
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
