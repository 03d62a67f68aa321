//! Kinds and names of entries.

use super::{MAGIC, PREFIX, SIZE, good, results, with_end};
use crate::write::{changed, pax, tar_entry, tar_header, with_content};

/// A tar of one file with this name, in the header.
fn named(name: &[u8]) -> Vec<u8> {
    with_end(&[with_content(&tar_header(name, b'0', 1), b"1")])
}

/// A tar of one file with this name, in a pax header.
fn pax_named(name: &str) -> Vec<u8> {
    with_end(&[pax(b'x', &[("path", name)]), good()])
}

/// A tar of one entry of this type before a file.
fn typed(kind: u8) -> Vec<u8> {
    with_end(&[tar_entry("0001.jpg", kind, b""), good()])
}

/// The same of an entry whose header has a size, without and with a content.
fn sized(kind: u8) -> [Vec<u8>; 2] {
    let header = with_content(&tar_header(b"0001.jpg", kind, 600), b"");
    [
        with_end(&[header, good()]),
        with_end(&[tar_entry("0001.jpg", kind, &[b'x'; 600]), good()]),
    ]
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
        ("entry of a vendor", typed(b'E')),
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

/// Where nothing follows a header with a size, and where a content does. A reader that is wrong about it takes a content for headers, or
/// headers for a content.
#[test]
fn sizes_of_what_is_left_out() {
    let kinds = [
        ("folder", b'5'),
        ("hard link", b'1'),
        ("symbolic link", b'2'),
        ("named pipe", b'6'),
        ("volume label", b'V'),
        ("entry of a vendor", b'E'),
    ];
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, kind) in kinds {
        let [header, content] = sized(kind);
        let pax_sized = [pax(b'x', &[("size", "600")]), tar_entry("0001.jpg", kind, b"")].concat();
        cases.push((format!("{name} without content"), header));
        cases.push((format!("{name} with a content"), content));
        cases.push((
            format!("{name} with a size in pax"),
            with_end(&[pax_sized, vec![b'x'; 1024], good()]),
        ));
    }
    let blank = changed(tar_header(b"folder/", b'5', 0), SIZE, &[0; 12]);
    cases.push((
        "folder with a blank size".to_owned(),
        with_end(&[with_content(&blank, b""), good()]),
    ));
    let spaces = changed(tar_header(b"folder/", b'5', 0), SIZE, &[b' '; 12]);
    cases.push((
        "folder with a size of spaces".to_owned(),
        with_end(&[with_content(&spaces, b""), good()]),
    ));
    let label = changed(tar_header(b"label", b'V', 0), SIZE, &[0; 12]);
    cases.push((
        "volume label with a blank size".to_owned(),
        with_end(&[with_content(&label, b""), good()]),
    ));
    let cases: Vec<(&str, Vec<u8>)> = cases
        .iter()
        .map(|(name, shard)| (name.as_str(), shard.clone()))
        .collect();
    insta::assert_snapshot!(results(&cases));
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
            with_end(&[tar_entry("long", b'L', b"a\0../b\0\0"), good()])
        ),
        (
            "empty long name",
            with_end(&[tar_entry("long", b'L', b""), good()])
        ),
        ("NUL at the end", named(b"a\0../b")),
        (
            "left out twice",
            with_end(&[tar_entry("/a", b'0', b"1"), tar_entry("/a", b'0', b"2"), good()])
        ),
        (
            "left out and a member",
            with_end(&[tar_entry("good.jpg", b'2', b""), good()])
        ),
        (
            "more than are named",
            with_end(&[tar_entry("../a", b'0', &[1; 600]).repeat(12), good()])
        ),
        (
            "left out beyond the end",
            [good(), tar_header(b"/a", b'0', 600).as_bytes().to_vec()].concat()
        ),
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
