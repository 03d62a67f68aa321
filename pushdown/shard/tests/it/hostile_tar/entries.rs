//! Kinds and names of entries.

use super::{MAGIC, PREFIX, good, results, with_end};
use crate::write::{changed, pax, tar_entry, tar_header, with_content};

/// A tar of one file with this name, in the header.
fn named(name: &[u8]) -> Vec<u8> {
    with_end(&[with_content(&tar_header(name, b'0', 1), b"1")])
}

/// A tar of one file with this name, in a pax header.
fn pax_named(name: &str) -> Vec<u8> {
    with_end(&[pax(b'x', &[("path", name)]), good()])
}

/// A tar of one entry of this type.
fn typed(kind: u8) -> Vec<u8> {
    with_end(&[good(), tar_entry("0001.jpg", kind, b"")])
}

#[test]
fn kinds_of_entries() {
    insta::assert_snapshot!(results(&[
        ("regular file", typed(b'0')),
        ("regular file of V7", typed(0)),
        ("contiguous file", typed(b'7')),
        ("folder", typed(b'5')),
        ("folder of V7", with_end(&[tar_entry("folder/", 0, b""), good()])),
        (
            "folder with a content",
            with_end(&[tar_entry("folder", b'5', b"content"), good()])
        ),
        (
            "file with the name of a folder",
            with_end(&[tar_entry("folder/", b'0', b"content")])
        ),
        ("hard link", typed(b'1')),
        ("symbolic link", typed(b'2')),
        ("character device", typed(b'3')),
        ("block device", typed(b'4')),
        ("named pipe", typed(b'6')),
        ("sparse file of GNU", typed(b'S')),
        ("continued file", typed(b'M')),
        ("volume label", typed(b'V')),
        ("incremental folder", typed(b'D')),
        ("pax header of Solaris", typed(b'X')),
        ("no type", typed(0xff)),
        (
            "sparse file of pax 0.1",
            with_end(&[pax(b'x', &[("GNU.sparse.map", "0,1")]), good()])
        ),
        (
            "sparse file of pax 1.0",
            with_end(&[pax(b'x', &[("GNU.sparse.major", "1"), ("path", "a")]), good()])
        ),
        (
            "sparse file of star",
            with_end(&[pax(b'x', &[("SCHILY.realsize", "9")]), good()])
        ),
        (
            "symbolic link with a long target",
            with_end(&[tar_entry("long", b'K', b"target\0"), tar_entry("link", b'2', b"")])
        ),
    ]));
}

#[test]
fn names() {
    let long = |length| with_end(&[tar_entry("long", b'L', &vec![b'a'; length]), good()]);
    let prefixed = changed(tar_header(b"b.jpg", b'0', 0), PREFIX, b"..");
    let gnu = changed(tar_header(b"a.jpg", b'0', 0), MAGIC, b"ustar  \0");
    let gnu = changed(gnu, PREFIX, b"14000000000");
    insta::assert_snapshot!(results(&[
        ("plain", named(b"a/b.jpg")),
        ("with a dot", named(b"./a.jpg")),
        ("absolute", named(b"/etc/passwd")),
        ("parent", named(b"../a.jpg")),
        ("parent inside", named(b"a/../../b.jpg")),
        ("parent in the prefix", with_end(&[with_content(&prefixed, b"")])),
        (
            "time of GNU in place of the prefix",
            with_end(&[with_content(&gnu, b"")])
        ),
        ("empty", named(b"")),
        ("other bytes than UTF-8", named(b"\xff\xfe.jpg")),
        ("absolute in a pax header", pax_named("/etc/passwd")),
        ("parent in a pax header", pax_named("a/..")),
        ("NUL in a pax header", pax_named("a\0.jpg")),
        ("empty in a pax header", pax_named("")),
        ("line breaks in a pax header", pax_named("a\nb\u{1b}[2J.jpg")),
        ("1,024 bytes", long(1024)),
        ("1,025 bytes", long(1025)),
        (
            "NUL in a long name",
            with_end(&[tar_entry("long", b'L', b"a\0b\0\0"), good()])
        ),
        (
            "empty long name",
            with_end(&[tar_entry("long", b'L', b""), good()])
        ),
        ("NUL at the end", named(b"a\0../b")),
        (
            "duplicate",
            with_end(&[good(), tar_entry("a", b'0', b""), good()])
        ),
        (
            "duplicate in a pax header",
            with_end(&[
                good(),
                pax(b'x', &[("path", "good.jpg")]),
                tar_entry("a", b'0', b"")
            ])
        ),
    ]));
}
