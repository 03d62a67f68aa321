//! What the crate `tar` writes is read, and what is written is read by the crate `tar`.

use std::io::Read as _;

use proptest::prelude::*;
use pushdown_shard::{Member, TarWriter};

use crate::{
    properties::{contents, name},
    read::{bytes, walk},
};

/// Name, place of the content and content of each file, as the crate `tar` reads them.
fn read_by_tar(shard: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let mut archive = tar::Archive::new(shard);
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            (name, entry.raw_file_position(), content)
        })
        .collect()
}

fn read_by_walker(shard: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let members = walk(shard).unwrap().into_iter();
    members
        .map(|Member { name, range }| {
            (
                name,
                range.content().start,
                bytes(shard, range.content()).to_vec(),
            )
        })
        .collect()
}

#[test]
fn every_format_of_the_builder_is_read() {
    for new in [tar::Header::new_old, tar::Header::new_ustar, tar::Header::new_gnu] {
        let mut builder = tar::Builder::new(Vec::new());
        // Beyond 100 bytes the names need a prefix or an extension of GNU.
        for (length, size) in [
            (1, 0_usize),
            (99, 1),
            (100, 511),
            (101, 512),
            (300, 513),
            (1000, 2000),
        ] {
            let mut header = new();
            // A name without a slash fits in no prefix.
            if length > 100 && header.as_gnu().is_none() {
                continue;
            }
            header.set_size(size as u64);
            header.set_mode(0o644);
            let content = vec![7; size];
            builder
                .append_data(&mut header, "n".repeat(length), content.as_slice())
                .unwrap();
        }
        let shard = builder.into_inner().unwrap();
        let found = read_by_walker(&shard);
        assert!(found.len() >= 3);
        assert_eq!(found, read_by_tar(&shard));
    }
}

#[test]
fn pax_headers_of_the_builder_are_read() {
    let long_name = format!("{}/a.jpg", "ö".repeat(400));
    let mut builder = tar::Builder::new(Vec::new());
    let records: [(&str, &[u8]); 2] = [("path", long_name.as_bytes()), ("size", b"3")];
    builder.append_pax_extensions(records).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_path("short").unwrap();
    header.set_size(3);
    header.set_cksum();
    builder.append(&header, &b"abc"[..]).unwrap();
    let shard = builder.into_inner().unwrap();
    let found = read_by_walker(&shard);
    assert_eq!(found, [(long_name, 2048, b"abc".to_vec())]);
    assert_eq!(found, read_by_tar(&shard));
}

proptest! {
    #[test]
    fn written_tars_are_read_equally_and_are_deterministic(files in prop::collection::btree_map(name(), contents(), 0..8)) {
        let write = || {
            let mut writer = TarWriter::new(Vec::new());
            let ranges: Vec<_> = files.iter().map(|(name, content)| writer.append(name, content).unwrap()).collect();
            (writer.finish().unwrap(), ranges)
        };
        let (shard, ranges) = write();
        prop_assert_eq!(&write().0, &shard);
        let members = walk(&shard).unwrap();
        prop_assert_eq!(members.iter().map(|member| member.range).collect::<Vec<_>>(), ranges);
        let found = read_by_walker(&shard);
        let expected = files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        let read = found.iter().map(|(name, _, content)| (name.as_str(), content.as_slice()));
        prop_assert!(read.eq(expected));
        prop_assert_eq!(found, read_by_tar(&shard));
    }
}
