//! Headers: their sizes, checksums and formats, and where a tar ends.

use super::{CHECKSUM, MAGIC, NAME, SIZE, good, results, with_end};
use crate::write::{END, changed, pax, tar_entry, tar_header, with_content};

/// A tar of one file with this size field.
fn sized(field: &[u8]) -> Vec<u8> {
    let header = changed(tar_header(b"a.jpg", b'0', 0), SIZE, field);
    with_end(&[with_content(&header, b"")])
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
        ("NULs", sized(&[0; 12])),
        ("spaces and NULs", sized(b"    \0\0\0\0\0\0\0\0")),
        ("spaces", sized(&[b' '; 12])),
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
        ("pax with a blank field", pax_sized("7", &[b' '; 12])),
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
        ("part of a block of zeros", [good(), vec![0; 100]].concat()),
        ("part of a header", [good(), b"b.jpg".to_vec()].concat()),
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
