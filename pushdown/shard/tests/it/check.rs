//! Headers of other members, and bytes that are no headers, are not those of a member.

use pushdown_shard::{MemberRange, ShardFormat, check_entry};

use crate::write::{END, Zip, ZipFile, pax, tar_entry};

#[test]
fn other_headers_are_refused() {
    let tar = [
        tar_entry("a.jpg", b'0', b"content"),
        pax(b'x', &[("path", "b.jpg")]),
        tar_entry("short", b'0', b"cd"),
    ]
    .concat();
    let tar = [
        tar,
        tar_entry("empty", b'0', b""),
        tar_entry("folder", b'5', b""),
        END.to_vec(),
    ]
    .concat();
    let zip = Zip::new(&[ZipFile::new("a.jpg", b"content"), ZipFile::new("b.jpg", b"cd")]).bytes;
    // The list's name, offset, bytes of headers and size.
    let cases = [
        (ShardFormat::Tar, "a.jpg", 0, 512, 7),
        (ShardFormat::Tar, "b.jpg", 1024, 1536, 2),
        (ShardFormat::Tar, "empty", 3072, 512, 0),
        (ShardFormat::Tar, "b.jpg", 0, 512, 7),
        (ShardFormat::Tar, "a.jpg", 0, 512, 8),
        (ShardFormat::Tar, "a.jpg", 512, 512, 7),
        (ShardFormat::Tar, "a.jpg", 1, 512, 7),
        (ShardFormat::Tar, "a.jpg", 0, 511, 7),
        (ShardFormat::Tar, "a.jpg", 0, 1024, 7),
        (ShardFormat::Tar, "b.jpg", 1024, 512, 2),
        (ShardFormat::Tar, "b.jpg", 2048, 512, 2),
        (ShardFormat::Tar, "empty", 3072, 1024, 0),
        (ShardFormat::Tar, "folder", 3584, 512, 0),
        (ShardFormat::Tar, "a.jpg", 4096, 1024, 7),
        (ShardFormat::Zip, "a.jpg", 0, 35, 7),
        (ShardFormat::Zip, "b.jpg", 42, 35, 2),
        (ShardFormat::Zip, "b.jpg", 0, 35, 7),
        (ShardFormat::Zip, "a.jpg", 0, 35, 6),
        (ShardFormat::Zip, "a.jpg", 0, 34, 7),
        (ShardFormat::Zip, "a.jpg", 0, 36, 7),
        (ShardFormat::Zip, "a.jpg", 1, 35, 7),
    ];
    let lines = cases.map(|(format, name, offset, header_bytes, size)| {
        let shard = if format == ShardFormat::Tar { &tar } else { &zip };
        let range = MemberRange::new(offset, header_bytes, size).unwrap();
        let header = crate::read::header(shard, &range);
        let result = check_entry(format, header, name, &range);
        let result = result.map_or_else(|error| error.to_string(), |()| "accepted".to_owned());
        format!("{format:?} {name} {offset} {header_bytes} {size}: {result}")
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn headers_of_another_length_are_refused() {
    let shard = tar_entry("a.jpg", b'0', b"content");
    let range = MemberRange::new(0, 512, 7).unwrap();
    for length in [0, 1, 511, 513, 1024] {
        let error = check_entry(ShardFormat::Tar, &shard[..length], "a.jpg", &range).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("wrong number of bytes: expected 512, found {length}")
        );
    }
}
