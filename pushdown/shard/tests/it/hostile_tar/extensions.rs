//! Headers that extend the one after them: of pax, and long names of GNU.

use super::{good, results, with_end};
use crate::write::{pax, tar_entry, tar_header, with_content};

/// A tar of one file with these pax records.
fn with_records(records: &[u8]) -> Vec<u8> {
    with_end(&[
        with_content(&tar_header(b"pax", b'x', records.len() as u64), records),
        good(),
    ])
}

#[test]
fn extension_headers() {
    let many = [pax(b'g', &[("comment", "a")]).repeat(300), good()].concat();
    let long_name = tar_entry("long", b'L', b"name\0");
    let bomb = |size: usize| with_end(&[tar_entry("pax", b'x', &vec![b'1'; size]), good()]);
    let full = |bytes: usize| {
        // The record has 17 bytes beside the value.
        pax(b'x', &[("comment", &"a".repeat(bytes - 17))])
    };
    insta::assert_snapshot!(results(&[
        ("pax without records", with_records(b"")),
        ("record without a length", with_records(b"path=a\n")),
        ("record that is too long", with_records(b"99 path=a\n")),
        ("record that is too short", with_records(b"8 path=a\n")),
        ("record without a key", with_records(b"5 =a\n")),
        ("record without a value", with_records(b"7 path\n")),
        ("zeros after records", with_records(b"9 path=a\n\0\0\0")),
        ("two paths", with_records(b"9 path=a\n9 path=b\n")),
        ("two sizes", with_records(b"9 size=7\n9 size=8\n")),
        ("one size twice", with_records(b"9 size=7\n9 size=7\n")),
        ("other bytes after records", with_records(b"9 path=a\njunk")),
        (
            "two pax headers",
            with_end(&[pax(b'x', &[("path", "a")]), pax(b'x', &[("mtime", "1")]), good()])
        ),
        (
            "path after a pax header",
            with_end(&[pax(b'x', &[("mtime", "1")]), pax(b'x', &[("path", "a")]), good()])
        ),
        (
            "two pax headers with one path",
            with_end(&[
                pax(b'x', &[("path", "a")]),
                pax(b'x', &[("mtime", "1"), ("path", "a")]),
                good()
            ])
        ),
        (
            "two pax headers with two paths",
            with_end(&[pax(b'x', &[("path", "a")]), pax(b'x', &[("path", "b")]), good()])
        ),
        (
            "two pax headers without a path",
            with_end(&[pax(b'x', &[("mtime", "1")]).repeat(2), good()])
        ),
        (
            "size in the first of two pax headers",
            with_end(&[pax(b'x', &[("size", "7")]), pax(b'x', &[("mtime", "1")]), good()])
        ),
        (
            "pax header of Solaris",
            with_end(&[pax(b'X', &[("path", "a")]), good()])
        ),
        (
            "two equal long names",
            with_end(&[long_name.clone(), long_name.clone(), good()])
        ),
        (
            "two long names",
            with_end(&[long_name.clone(), tar_entry("long", b'L', b"other\0"), good()])
        ),
        (
            "long name before a path",
            with_end(&[long_name.clone(), pax(b'x', &[("path", "a")]), good()])
        ),
        (
            "long name after a path",
            with_end(&[pax(b'x', &[("path", "a")]), long_name.clone(), good()])
        ),
        (
            "long name and time",
            with_end(&[long_name.clone(), pax(b'x', &[("mtime", "1")]), good()])
        ),
        ("1 MiB of records", with_end(&[full(1 << 20), good()])),
        (
            "more than 1 MiB of records",
            with_end(&[full((1 << 20) + 1), good()])
        ),
        (
            "1 MiB of records and a long name",
            with_end(&[full(1 << 20), long_name.clone(), good()])
        ),
        ("bomb", bomb(60_000)),
        (
            "bomb with a size in base 256",
            with_end(&[with_content(&tar_header(b"pax", b'x', u64::MAX), b""), good()])
        ),
        (
            "bomb of a long name",
            with_end(&[tar_entry("long", b'L', &vec![b'a'; (1 << 20) + 1]), good()])
        ),
        (
            "global comment",
            with_end(&[pax(b'g', &[("comment", "a")]), good()])
        ),
        ("many global comments", with_end(&[many])),
        ("global path", with_end(&[pax(b'g', &[("path", "a")]), good()])),
        ("global size", with_end(&[pax(b'g', &[("size", "1")]), good()])),
        (
            "global sparse map",
            with_end(&[pax(b'g', &[("GNU.sparse.major", "1")]), good()])
        ),
        (
            "global comment after a pax header",
            with_end(&[
                pax(b'x', &[("path", "a")]),
                pax(b'g', &[("comment", "a")]),
                good()
            ])
        ),
        (
            "end after a pax header",
            with_end(&[good(), pax(b'x', &[("path", "a")])])
        ),
        ("nothing after a pax header", pax(b'x', &[("path", "a")])),
    ]));
}
