//! TIFFs that no program writes. `tests/it/golden_tiffs.rs` has those that programs write.

mod unsupported;

use super::*;

/// A placeholder among the values of a tag: the offset of the data.
pub(super) const DATA_OFFSET: u32 = u32::MAX - 1;

/// A tag and its values of type LONG.
type Tag<'a> = (u16, &'a [u32]);

/// A TIFF of one page, with tags in ascending order and data.
pub(super) fn tiff_file(tags: &[Tag<'_>], data: &[u8]) -> Vec<u8> {
    let directory = 8 + 2 + 12 * tags.len() + 4;
    let external_values: usize = tags
        .iter()
        .map(|(_, values)| values.len())
        .filter(|count| *count > 1)
        .sum();
    let long = |value: usize| u32::try_from(value).expect("a small file").to_le_bytes();
    let start = u32::try_from(directory + external_values * 4).expect("a small file");
    let value = |value: &u32| if *value == DATA_OFFSET { start } else { *value }.to_le_bytes();
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend_from_slice(&long(tags.len())[..2]);
    let mut external_bytes = Vec::new();
    for (tag, values) in tags {
        file.extend_from_slice(&tag.to_le_bytes());
        file.extend_from_slice(&4_u16.to_le_bytes());
        file.extend_from_slice(&long(values.len()));
        if let [single] = values {
            file.extend_from_slice(&value(single));
        } else {
            file.extend_from_slice(&long(directory + external_bytes.len()));
            external_bytes.extend(values.iter().flat_map(value));
        }
    }
    file.extend_from_slice(&[0; 4]);
    [&file[..], &external_bytes, data].concat()
}

/// A TIFF with one uncompressed strip of `samples` bytes per pixel.
pub(super) fn plain(width: u32, height: u32, samples: u32, pixels: &[u8]) -> Vec<u8> {
    let photometric = if samples < 3 { 1 } else { 2 };
    tiff_file(
        &[
            (256, &[width]),
            (257, &[height]),
            (258, &[8]),
            (262, &[photometric]),
            (273, &[DATA_OFFSET]),
            (277, &[samples]),
        ],
        pixels,
    )
}

/// The error message of a file that cannot be decoded.
fn decode_error(file: &[u8]) -> String {
    let error = decode(file).expect_err("a TIFF that cannot be decoded");
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    error.to_string()
}

/// A TIFF of 2 x 2 grey pixels with `tags` added or replaced.
fn grey_with(tags: &[Tag<'_>]) -> Vec<u8> {
    let mut all: Vec<Tag<'_>> = vec![
        (256, &[2]),
        (257, &[2]),
        (258, &[8]),
        (262, &[1]),
        (273, &[DATA_OFFSET]),
    ];
    all.retain(|(tag, _)| tags.iter().all(|(other, _)| other != tag));
    all.extend_from_slice(tags);
    tiff_file(&all, &[1, 2, 3, 4])
}

#[test]
fn errors_name_the_broken_structure() {
    let file = plain(2, 2, 1, &[1, 2, 3, 4]);
    let changed = |offset: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        decode_error(&file)
    };
    for (found, text) in [
        (
            decode_error(b"II*\0\x08\0"),
            "the TIFF ends in its header: expected 8 bytes, in BigTIFF 16",
        ),
        (
            decode_error(b"II\x2b\0\x08\0\0\0\x10\0"),
            "the TIFF ends in its header: expected 8 bytes, in BigTIFF 16",
        ),
        (
            changed(4, &[255, 0]),
            "the TIFF's directory is at byte 255: expected all of it within the 90 bytes of the file",
        ),
        (
            changed(8, &[200]),
            "the TIFF's directory is at byte 8: expected all of it within the 90 bytes of the file",
        ),
        (
            changed(12, &[99]),
            "the TIFF's tag 256 has values of type 99: expected 1 to 13 or 16 to 18",
        ),
        (
            changed(14, &[200]),
            "the TIFF's tag 256 has 200 values: expected all of them within the 90 bytes of the file",
        ),
        (
            changed(12, &[9, 0, 1, 0, 0, 0, 255, 255, 255, 255]),
            "the TIFF's tag 256 is -1 of type 9: expected an integer that is not negative",
        ),
        (
            changed(14, &[0]),
            "the TIFF's tag 256 has 0 values: expected at least 1",
        ),
        (changed(10, &[0, 0]), "the TIFF lacks tag 256 (ImageWidth)"),
        (
            decode_error(&file[..89]),
            "TIFF, strip 0: uncompressed data are broken or end early (failed to fill whole buffer): expected 4 bytes of samples",
        ),
        (
            decode_error(&tiff_file(&[(256, &[1]), (257, &[1])], &[])),
            "the TIFF has no pixels: expected tag 273 (StripOffsets) or 324 (TileOffsets)",
        ),
        (
            decode_error(&grey_with(&[(273, &[0])])),
            "the TIFF is sparse: expected all of its strips, found none for number 0",
        ),
        (
            decode_error(&grey_with(&[(258, &[1]), (259, &[4])])),
            "TIFF, strip 0: CCITT fax data are broken or end early (invalid code of ITU-T T.4 or T.6): expected 2 bytes of samples",
        ),
        (
            decode_error(&grey_with(&[(259, &[7])])),
            "TIFF, strip 0: expected a JPEG, found other bytes",
        ),
    ] {
        assert_eq!(found, text);
    }
}

/// The JPEG of a strip has another size, or other components, than the page states.
#[test]
fn jpegs_that_do_not_match_their_strip_are_refused() {
    let photo = jpeg(8, 8);
    let page = |width: u32, samples: u32, photometric: u32| {
        tiff_file(
            &[
                (256, &[width]),
                (257, &[8]),
                (258, &[8]),
                (259, &[7]),
                (262, &[photometric]),
                (273, &[DATA_OFFSET]),
                (277, &[samples]),
            ],
            &photo,
        )
    };
    assert!(decode(&page(8, 3, 6)).is_ok());
    assert_eq!(
        decode_error(&page(9, 3, 6)),
        "TIFF, strip 0: the JPEG has 8 x 8 pixels: expected 9 x 8"
    );
    assert_eq!(
        decode_error(&page(8, 1, 1)),
        "TIFF, strip 0: the JPEG has 3 components: expected 1"
    );
}
