//! Tars that lie, or that readers take for different things. The snapshot has the error of each.

use pushdown_shard::{ShardError, ShardLimits, TarWalker};

use crate::{
    read::{walk, walk_in_pieces},
    write::{END, changed, pax, tar_entry, tar_header, with_content},
};

/// Where the fields of a header are.
const NAME: usize = 0;
const SIZE: usize = 124;
const CHECKSUM: usize = 148;
const MAGIC: usize = 257;
const PREFIX: usize = 345;

/// A file that has no fault.
fn good() -> Vec<u8> {
    tar_entry("good.jpg", b'0', b"content")
}

fn with_end(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), END.to_vec()].concat()
}

/// A tar of one file with this name, in the header.
fn named(name: &[u8]) -> Vec<u8> {
    with_end(&[with_content(&tar_header(name, b'0', 1), b"1")])
}

/// A tar of one file with this name, in a pax header.
fn pax_named(name: &str) -> Vec<u8> {
    with_end(&[pax(b'x', &[("path", name)]), good()])
}

/// A tar of one file with this size field.
fn sized(field: &[u8]) -> Vec<u8> {
    let header = changed(tar_header(b"a.jpg", b'0', 0), SIZE, field);
    with_end(&[with_content(&header, b"")])
}

/// A tar of one file with these pax records.
fn with_records(records: &[u8]) -> Vec<u8> {
    with_end(&[
        with_content(&tar_header(b"pax", b'x', records.len() as u64), records),
        good(),
    ])
}

/// A tar of one entry of this type.
fn typed(kind: u8) -> Vec<u8> {
    with_end(&[good(), tar_entry("0001.jpg", kind, b"")])
}

/// The results of tars, a line each, which are the same in pieces.
fn results(cases: &[(&str, Vec<u8>)]) -> String {
    let lines = cases.iter().map(|(case, shard)| {
        let result = walk(shard);
        for sizes in [&[1][..], &[0, 512], &[0, 300]] {
            assert_eq!(walk_in_pieces(shard, sizes), result, "{case} {sizes:?}");
        }
        match result {
            Ok(members) => {
                let members = members
                    .iter()
                    .map(|member| format!(" {} ({})", member.name.escape_debug(), member.range.size()));
                format!("{case}: read:{}", members.collect::<Vec<_>>().concat())
            }
            Err(error) => format!("{case}: {error}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
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

#[test]
fn sizes() {
    let pax_sized = |size: &str, field: &[u8]| {
        let header = changed(tar_header(b"a.jpg", b'0', 0), SIZE, field);
        with_end(&[pax(b'x', &[("size", size)]), with_content(&header, b"content")])
    };
    insta::assert_snapshot!(results(&[
        ("octal without an end", sized(b"000000000000")),
        ("octal with spaces", sized(b"          0 ")),
        ("blank", sized(b"\0\0\0\0\0\0\0\0\0\0\0\0")),
        ("base 256", sized(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        (
            "base 256 beyond the end",
            sized(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0])
        ),
        (
            "base 256 up to 2^64",
            sized(&[0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])
        ),
        (
            "base 256 beyond 2^64",
            sized(&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
        ),
        (
            "base 256 with a high bit",
            sized(&[0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        ),
        ("negative base 256", sized(&[0xff; 12])),
        ("decimal", sized(b"00000000008\0")),
        ("negative", sized(b"-0000000001\0")),
        ("hexadecimal", sized(b"0x000000001\0")),
        ("content beyond the end", sized(b"77777777777\0")),
        (
            "padding beyond the end",
            [tar_header(b"a.jpg", b'0', 600).as_bytes().to_vec(), vec![1; 600]].concat()
        ),
        ("pax", pax_sized("7", b"00000000000\0")),
        ("pax with a blank field", pax_sized("7", &[0; 12])),
        ("pax that agrees", pax_sized("7", b"00000000007\0")),
        ("pax that contradicts", pax_sized("7", b"00000000512\0")),
        (
            "pax beyond the end",
            pax_sized("9999999999999999999", b"00000000000\0")
        ),
        (
            "pax beyond 2^64",
            pax_sized("99999999999999999999", b"00000000000\0")
        ),
        ("negative pax", pax_sized("-7", b"00000000000\0")),
    ]));
}

#[test]
fn headers() {
    let wrong_sum = |field: &[u8]| {
        let mut entry = good();
        entry[CHECKSUM..CHECKSUM + field.len()].copy_from_slice(field);
        with_end(&[entry])
    };
    let mut flipped = good();
    flipped[NAME] ^= 1;
    let unknown = changed(tar_header(b"a.jpg", b'0', 0), MAGIC, b"other\x0000");
    let old = changed(tar_header(b"a.jpg", b'0', 0), MAGIC, &[0; 8]);
    let version = changed(tar_header(b"a.jpg", b'0', 0), MAGIC, b"ustar\0 \0");
    insta::assert_snapshot!(results(&[
        ("changed byte", with_end(&[flipped])),
        ("wrong checksum", wrong_sum(b"0000001\0")),
        ("no checksum", wrong_sum(&[0; 8])),
        (
            "text",
            [&b"no tar at all, but text\n"[..], &[b'x'; 2000]].concat()
        ),
        ("gzip", [&b"\x1f\x8b\x08"[..], &[7; 2000]].concat()),
        ("unknown format", with_end(&[with_content(&unknown, b"")])),
        ("V7", with_end(&[with_content(&old, b"")])),
        ("other version of ustar", with_end(&[with_content(&version, b"")])),
        ("nothing", Vec::new()),
        ("only the end", END.to_vec()),
        ("one block of zeros", [good(), vec![0; 512]].concat()),
        (
            "block of zeros in the middle",
            [good(), vec![0; 512], tar_entry("a", b'0', b""), END.to_vec()].concat()
        ),
        (
            "members after the end",
            [with_end(&[good()]), tar_entry("a", b'0', b"")].concat()
        ),
        ("no end", good()),
    ]));
}

#[test]
fn extension_headers() {
    let many = [pax(b'g', &[("comment", "a")]).repeat(300), good()].concat();
    let long_name = tar_entry("long", b'L', b"name\0");
    let bomb = |size: usize| with_end(&[tar_entry("pax", b'x', &vec![b'1'; size]), good()]);
    let full = |bytes: usize| {
        // The record has 15 bytes beside the value.
        pax(b'x', &[("comment", &"a".repeat(bytes - 15))])
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
        ("two sizes", with_records(b"9 size=7\n9 size=7\n")),
        (
            "two pax headers",
            with_end(&[pax(b'x', &[("path", "a")]), pax(b'x', &[("mtime", "1")]), good()])
        ),
        (
            "two long names",
            with_end(&[long_name.clone(), long_name.clone(), good()])
        ),
        (
            "long name and path",
            with_end(&[long_name.clone(), pax(b'x', &[("path", "a")]), good()])
        ),
        (
            "long name and time",
            with_end(&[long_name.clone(), pax(b'x', &[("mtime", "1")]), good()])
        ),
        ("64 KiB of records", with_end(&[full(64 << 10), good()])),
        (
            "more than 64 KiB of records",
            with_end(&[full((64 << 10) + 1), good()])
        ),
        (
            "64 KiB of records and a long name",
            with_end(&[full(64 << 10), long_name.clone(), good()])
        ),
        ("bomb", bomb(60_000)),
        (
            "bomb with a size in base 256",
            with_end(&[with_content(&tar_header(b"pax", b'x', u64::MAX), b""), good()])
        ),
        (
            "bomb of a long name",
            with_end(&[tar_entry("long", b'L', &vec![b'a'; 70_000]), good()])
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

#[test]
fn truncated_tars_are_refused_at_every_byte() {
    let shard = with_end(&[
        tar_entry("folder", b'5', b""),
        pax(b'x', &[("path", "a.jpg")]),
        tar_entry("short", b'0', &[1; 600]),
        tar_entry("long", b'L', b"b.jpg\0"),
        good(),
        tar_entry("empty", b'0', b""),
    ]);
    assert_eq!(walk(&shard).unwrap().len(), 3);
    for length in 0..shard.len() {
        let error = walk(&shard[..length]).unwrap_err();
        match &error {
            ShardError::Truncated { position, .. } => assert_eq!(*position, length as u64),
            ShardError::BeyondEnd { object_bytes, .. } => assert_eq!(*object_bytes, length as u64),
            other => panic!("at byte {length}: {other}"),
        }
        assert_eq!(walk_in_pieces(&shard[..length], &[0, 512]).unwrap_err(), error);
    }
}

#[test]
fn limits_bound_members_and_names() {
    let shard = with_end(&[tar_entry("a", b'0', b""), tar_entry("b", b'0', b""), good()]);
    let walk = |max_members, max_total_name_bytes| {
        let mut walker = TarWalker::new(ShardLimits {
            max_members,
            max_total_name_bytes,
        });
        walker.push(&shard).map_err(|error| error.to_string())
    };
    assert_eq!(walk(3, 10), Ok(()));
    assert_eq!(
        walk(2, 10),
        Err("too large: expected at most 2 members, found more at byte 1024".to_owned())
    );
    assert_eq!(
        walk(3, 9),
        Err("too large: expected at most 9 bytes of names, found more at byte 1024".to_owned())
    );
}

#[test]
fn a_walker_counts_the_bytes_that_it_skips() {
    let shard = with_end(&[tar_entry("a", b'0', &[1; 1000]), good()]);
    let mut walker = TarWalker::new(ShardLimits::default());
    assert_eq!(walker.skippable(), 0);
    walker.push(&shard[..700]).unwrap();
    assert_eq!((walker.position(), walker.skippable()), (700, 836));
    assert_eq!(
        walker.skip(837),
        Err(ShardError::WrongLength {
            expected: 836,
            found: 837
        })
    );
    walker.skip(800).unwrap();
    walker.skip(36).unwrap();
    assert_eq!((walker.position(), walker.skippable()), (1536, 0));
    walker.push(&shard[1536..]).unwrap();
    assert!(walker.is_at_end());
    // What follows the end is of no interest.
    walker.skip(walker.skippable()).unwrap();
    assert_eq!(walker.finish(shard.len() as u64).unwrap().len(), 2);
}
