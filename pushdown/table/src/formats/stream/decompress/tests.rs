//! Compressed objects: in one or several pieces, truncated, and in unsupported formats.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;
use pushdown_core::ErrorKind;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn decompressed(object: &[u8], chunk: usize, max_inflated_bytes: u64) -> Result<Vec<u8>> {
    let limits = TableLimits {
        max_inflated_bytes,
        ..TableLimits::default()
    };
    let chunks: Vec<_> = object
        .chunks(chunk)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let chunks = decompress(stream::iter(chunks).boxed(), Codec::detect(object)?, &limits);
    let parts = futures::executor::block_on(chunks.collect::<Vec<_>>());
    Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn members_and_frames_are_decompressed_from_any_chunks() {
    let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
    let (first, second) = text.split_at(1234);
    let zstd = |bytes| zstd::encode_all(bytes, 3).unwrap();
    let skippable = |kind: u8| [&[kind, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for object in [
        [gzip(first), gzip(b""), gzip(second), vec![0; 70_000]].concat(),
        [zstd(first), zstd(b""), zstd(second)].concat(),
        [
            skippable(0x50),
            skippable(0x5f),
            zstd(first),
            skippable(0x57),
            zstd(second),
            skippable(0x50),
        ]
        .concat(),
    ] {
        for chunk in [1, 7, 1 << 20] {
            assert!(decompressed(&object, chunk, u64::MAX).unwrap() == text, "{chunk}");
        }
    }
}

#[test]
fn truncated_objects_are_undecodable() {
    let text = vec![b'a'; 100_000];
    for object in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
        for length in 5..object.len() {
            let error = decompressed(&object[..length], 1 << 20, u64::MAX).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{length}: {error}");
        }
    }
}

#[test]
fn trailing_bytes_and_unsupported_compressions_are_undecodable() {
    let text = b"some text";
    for (object, message) in [
        (
            [&gzip(text)[..], &[0, 0], &gzip(text)].concat(),
            "expected only zeros",
        ),
        ([&gzip(text)[..], b"x"].concat(), "malformed gzip data"),
        (b"BZh91AY&SY".to_vec(), "compressed by bzip2"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "compressed by xz"),
        (b"PK\x03\x04\x14\0\0\0".to_vec(), "compressed by ZIP"),
    ] {
        for chunk in [1, 1 << 20] {
            let error = decompressed(&object, chunk, u64::MAX).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

#[test]
fn decompression_bombs_fail_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for object in [gzip(&zeros), zstd::encode_all(&zeros[..], 3).unwrap()] {
        assert!(object.len() < 1 << 20);
        let error = decompressed(&object, 1 << 20, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
}
