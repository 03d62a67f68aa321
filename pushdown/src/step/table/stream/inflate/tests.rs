//! What is compressed as a whole, in one piece or several, cut off, or by others.

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::ErrorKind;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn inflated(object: &[u8], chunk: usize, most: u64) -> Result<Vec<u8>> {
    let limits = TableLimits {
        max_inflated_bytes: most,
        ..TableLimits::default()
    };
    let chunks: Vec<_> = object
        .chunks(chunk)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let chunks = inflate(stream::iter(chunks).boxed(), Codec::of(object)?, &limits);
    let parts = futures::executor::block_on(chunks.collect::<Vec<_>>());
    Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn several_members_and_frames_in_any_chunks() {
    let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let (one, other) = text.split_at(1234);
    let zstd = |bytes| zstd::encode_all(bytes, 3).unwrap();
    let note = |kind: u8| [&[kind, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for object in [
        [gzip(one), gzip(b""), gzip(other), vec![0; 70_000]].concat(),
        [zstd(one), zstd(b""), zstd(other)].concat(),
        [
            note(0x50),
            note(0x5f),
            zstd(one),
            note(0x57),
            zstd(other),
            note(0x50),
        ]
        .concat(),
    ] {
        for chunk in [1, 7, 1 << 20] {
            assert!(inflated(&object, chunk, u64::MAX).unwrap() == text, "{chunk}");
        }
    }
}

#[test]
fn what_is_cut_off_or_broken_is_undecodable() {
    let text = vec![b'a'; 100_000];
    for object in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
        for length in 5..object.len() {
            let error = inflated(&object[..length], 1 << 20, u64::MAX).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{length}: {error}");
        }
    }
}

#[test]
fn what_is_after_the_padding_or_compressed_by_others_is_undecodable() {
    let text = b"some text";
    for (object, says) in [
        (
            [&gzip(text)[..], &[0, 0], &gzip(text)].concat(),
            "more than zeros",
        ),
        ([&gzip(text)[..], b"x"].concat(), "by gzip"),
        (b"BZh91AY&SY".to_vec(), "compressed by bzip2"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "compressed by xz"),
        (b"PK\x03\x04\x14\0\0\0".to_vec(), "compressed by ZIP"),
    ] {
        for chunk in [1, 1 << 20] {
            let error = inflated(&object, chunk, u64::MAX).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for object in [gzip(&zeros), zstd::encode_all(&zeros[..], 3).unwrap()] {
        assert!(object.len() < 1 << 20);
        let error = inflated(&object, 1 << 20, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
}
