//! TIFFs that are refused by their tags, before any strip is read.

use super::*;

/// A BigTIFF of one page without data, whose tags have one LONG8 each.
fn big_tiff(tags: &[(u16, u64)]) -> Vec<u8> {
    let mut file = b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0".to_vec();
    file.extend_from_slice(&(tags.len() as u64).to_le_bytes());
    for (tag, value) in tags {
        file.extend_from_slice(&tag.to_le_bytes());
        file.extend_from_slice(&16_u16.to_le_bytes());
        file.extend_from_slice(&1_u64.to_le_bytes());
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(&[0; 8]);
    file
}

#[test]
fn unsupported_features_are_named() {
    const COMPRESSIONS: &str = "1 (none), 2 to 4 or 32771 (CCITT fax), 5 (LZW), 7 (JPEG), 8 or 32946 (deflate), \
                                32773 (PackBits) or 50000 (zstd)";
    let compressions = [
        (6, "old-style JPEG"),
        (34925, "LZMA"),
        (50001, "WebP"),
        (34887, "LERC"),
        (33003, "JPEG 2000"),
        (34712, "JPEG 2000"),
        (50002, "JPEG XL"),
        (32809, "ThunderScan"),
        (34676, "SGI log"),
    ];
    for (compression, name) in compressions {
        assert_eq!(
            decode_error(&grey_with(&[(259, &[compression])])),
            format!("TIFF with compression {compression} ({name}): expected {COMPRESSIONS}")
        );
    }
    assert_eq!(
        decode_error(&grey_with(&[(259, &[77])])),
        format!("TIFF with compression 77: expected {COMPRESSIONS}")
    );
    let rest: [(&[Tag<'_>], &str); 19] = [
        (
            &[(262, &[4])],
            "TIFF with photometric interpretation 4 (transparency mask): expected 0 or 1 (grey), 2 (RGB), \
             3 (palette), 5 (CMYK), 6 (YCbCr) or 8 (CIE L*a*b*)",
        ),
        (&[(262, &[32803])], "(colour filter array)"),
        (&[(262, &[32845])], "(log luminance and chroma)"),
        (&[(262, &[34892])], "(linear raw)"),
        (
            &[(258, &[24])],
            "TIFF with bits per sample 24: expected 1 to 16, 32 or 64",
        ),
        (
            &[(339, &[6])],
            "TIFF with sample format 6: expected 1 (unsigned), 2 (signed), 3 (floating-point) or 4 (undefined)",
        ),
        (
            &[(258, &[24]), (339, &[3])],
            "TIFF with bits per floating-point sample 24: expected 16, 32 or 64",
        ),
        (
            &[(258, &[8, 16]), (277, &[2])],
            "TIFF with bits per sample 8 and 16: expected the same for all samples",
        ),
        (
            &[(284, &[3])],
            "TIFF with planar configuration 3: expected 1 or 2",
        ),
        (
            &[(277, &[7])],
            "TIFF of grey with 7 samples per pixel: expected 1 to 2",
        ),
        (
            &[(262, &[2])],
            "TIFF of RGB with 1 samples per pixel: expected 3 or more",
        ),
        (
            &[(259, &[5]), (317, &[9])],
            "TIFF with predictor 9: expected 1 (none), 2 (horizontal) or 3 (floating point)",
        ),
        (
            &[(258, &[4]), (259, &[5]), (317, &[2])],
            "TIFF with predictor 2 and 4 bits per sample: expected 8, 16, 32 or 64 bits",
        ),
        (
            &[(259, &[8]), (317, &[3])],
            "TIFF with predictor 3 and 8 bits per sample: expected floating-point samples",
        ),
        (
            &[(259, &[4])],
            "TIFF with CCITT fax of 1 samples of 8 bits: expected 1 sample of 1 bit",
        ),
        (
            &[(258, &[16]), (259, &[7])],
            "TIFF with JPEG of 1 samples of 16 bits: expected 8 bits",
        ),
        (
            &[(259, &[7]), (262, &[2]), (277, &[5])],
            "TIFF with JPEG of 5 samples of 8 bits: expected 1 to 4 samples",
        ),
        (
            &[(262, &[3])],
            "TIFF without its palette: expected tag 320 (ColorMap)",
        ),
        (
            &[(262, &[6]), (277, &[3]), (530, &[3, 1])],
            "TIFF with chroma subsampled horizontally by 3: expected 1, 2 or 4",
        ),
    ];
    for (tags, text) in rest {
        let error = decode_error(&grey_with(tags));
        assert!(error.contains(text), "{error}");
    }
}

/// Sizes are checked against the limits and the size of the file before anything is allocated.
#[test]
fn absurd_sizes_are_refused() {
    let sides = |width: u64, height: u64| [(256, width), (257, height), (258, 8), (262, 1), (273, 16)];
    let tiled = |width: u32, height: u32| {
        let tags: [Tag<'_>; 2] = [(322, &[width]), (323, &[height])];
        decode_error(&grey_with(&tags))
    };
    let texts = [
        (
            decode_error(&big_tiff(&sides(u64::MAX, 1))),
            "18446744073709551615 x 1 pixels: expected 1 to 4294967295",
        ),
        (
            decode_error(&big_tiff(&sides(1 << 40, 1 << 40))),
            "1099511627776 x 1099511627776 pixels",
        ),
        (decode_error(&big_tiff(&sides(0, 1))), "0 x 1 pixels"),
        (
            decode_error(&big_tiff(&sides(100_000, 100_000))),
            "expected at most 100000000 pixels, found 100000 x 100000",
        ),
        (
            decode_error(&big_tiff(&sides(u32::MAX.into(), u32::MAX.into()))),
            "expected at most 100000000 pixels, found 4294967295 x 4294967295",
        ),
        (
            tiled(1 << 31, 1 << 31),
            "2 rows of 2147483648 bytes, for an image of 2 x 2 pixels",
        ),
        (tiled(0, 16), "tiles of 0 x 16 pixels"),
        (tiled(16, u32::MAX), "expected 32 bytes of samples"),
        (
            decode_error(&grey_with(&[(257, &[2_000_000]), (278, &[1])])),
            "2000000 strips: expected at most 1048576",
        ),
        (
            decode_error(&grey_with(&[(278, &[1])])),
            "has the offsets of 1 strips: expected 2",
        ),
        (
            decode_error(&grey_with(&[(277, &[u32::MAX])])),
            "4294967295 samples per pixel",
        ),
        (decode_error(&grey_with(&[(258, &[0])])), "bits per sample 0"),
        (
            decode_error(&grey_with(&[(273, &[u32::MAX])])),
            "expected it within",
        ),
        (
            decode_error(&grey_with(&[(256, &[9_000]), (257, &[9_000])])),
            "expected 81000000 bytes of samples",
        ),
    ];
    for (found, text) in texts {
        assert!(found.contains(text), "{found}");
    }
    // Unused values are not read.
    let strips = vec![DATA_OFFSET; 1 << 20];
    let file = tiff_file(
        &[
            (256, &[1]),
            (257, &[1]),
            (258, &[8]),
            (262, &[1]),
            (273, &strips),
            (278, &[1]),
            (279, &strips),
        ],
        &[7],
    );
    assert_eq!(decode(&file).expect("one pixel").pixels(), [7; 3]);
    let limits = Limits {
        max_pixels: 3,
        ..Limits::default()
    };
    let error = decoded("decode", &plain(2, 2, 1, &[1, 2, 3, 4]), limits).expect_err("4 pixels");
    assert!(
        error
            .to_string()
            .contains("expected at most 3 pixels, found 2 x 2"),
        "{error}"
    );
}
