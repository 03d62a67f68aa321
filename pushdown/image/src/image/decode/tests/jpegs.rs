use super::*;

/// Pillow refuses each of these as truncated, too.
#[test]
fn jpegs_without_an_end_marker_are_truncated() {
    let whole = jpeg(64, 64);
    for cut in [whole.len() - 1, whole.len() - 2, whole.len() - 10] {
        let error = decode(&whole[..cut]).expect_err("no end of image");
        assert_eq!(
            error.to_string(),
            "the JPEG ends before its end-of-image marker: it is truncated"
        );
    }
}

#[test]
fn jpegs_with_warnings_decode() {
    let whole = jpeg(64, 64);
    let trailing = [&whole[..], b"\0\0trailing junk\xff\xd8\xff"].concat();
    assert_eq!(
        decode(&trailing).expect("junk after the end"),
        decode(&whole).expect("a photo")
    );
    let scan = whole
        .windows(2)
        .position(|pair| pair == [0xff, 0xda])
        .expect("a scan")
        + 14;
    let mut lost = whole.clone();
    lost.drain(scan + 40..whole.len() - 2);
    let image = decode(&lost).expect("libjpeg warns of a premature end of the data segment");
    assert_eq!((image.width(), image.height()), (64, 64));
    let mut extra = whole.clone();
    let end = whole.len() - 2;
    extra.splice(end..end, *b"extraneous");
    assert_eq!(
        decode(&extra).expect("bytes before the end marker"),
        decode(&whole).expect("a photo")
    );
}

/// TurboJPEG reports warnings and fatal errors with the same status.
#[test]
fn a_fatal_error_after_a_warning_is_fatal() {
    let whole = jpeg(64, 64);
    let scan = whole
        .windows(2)
        .position(|pair| pair == [0xff, 0xda])
        .expect("a scan")
        + 14;
    // A JFIF version that causes a warning, then a quantisation table that causes a fatal error.
    let mut bytes = whole.clone();
    let version = bytes.windows(5).position(|name| name == b"JFIF\0").expect("JFIF") + 5;
    bytes[version] = 9;
    assert!(decode(&bytes).is_ok(), "a warning only");
    let table = bytes
        .windows(2)
        .position(|pair| pair == [0xff, 0xdb])
        .expect("a table");
    assert!(table < scan);
    bytes[table + 4] = 0x0f;
    let error = decode(&bytes).expect_err("table 15");
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
}

#[test]
fn min_short_and_min_long_select_the_scale() {
    let file = jpeg(500, 375);
    let size = |text: &str| {
        let image = decoded(text, &file, Limits::default()).expect(text);
        (image.width(), image.height())
    };
    assert_eq!(size("decode(min_short=376)"), (500, 375));
    assert_eq!(size("decode(min_short=188)"), (250, 188));
    assert_eq!(size("decode(min_short=189)"), (500, 375));
    assert_eq!(size("decode(min_short=94)"), (125, 94));
    assert_eq!(size("decode(min_short=47)"), (63, 47));
    assert_eq!(size("decode(min_short=1)"), (63, 47));
    assert_eq!(size("decode(min_long=250)"), (250, 188));
    assert_eq!(size("decode(min_long=251)"), (500, 375));
    let png = encoded(
        ImageBuffer::from_pixel(50, 40, Rgb([1_u8, 2, 3])),
        ImageFormat::Png,
    );
    let image = decoded("decode(min_short=4)", &png, Limits::default()).expect("a png");
    assert_eq!((image.width(), image.height()), (50, 40), "only JPEG scales");
}

#[test]
fn exif_rotates_the_image() {
    let file = jpeg(16, 8);
    let stored = decode(&file).expect("a photo");
    for orientation in 1..=8_u8 {
        let mut rotated = file[..2].to_vec();
        rotated.extend_from_slice(b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0");
        rotated.extend_from_slice(&[orientation, 0, 0, 0, 0, 0, 0, 0]);
        rotated.extend_from_slice(&file[2..]);
        assert_eq!(decode(&rotated).expect("as stored"), stored);
        let upright = decoded("decode(orient=exif)", &rotated, Limits::default()).expect("upright");
        let size = if orientation < 5 { (16, 8) } else { (8, 16) };
        assert_eq!(
            (upright.width(), upright.height()),
            size,
            "orientation {orientation}"
        );
        assert_eq!(upright == stored, orientation == 1);
        // The corner that is the first row and column in EXIF's terms.
        let corner: [u8; 3] = upright.pixels()[..3].try_into().expect("a pixel");
        let (x, y) = [(0, 0), (15, 0), (15, 7), (0, 7), (0, 0), (0, 7), (15, 7), (15, 0)]
            [usize::from(orientation) - 1];
        assert_eq!(
            corner,
            stored.pixels()[(y * 16 + x) * 3..][..3],
            "orientation {orientation}"
        );
    }
}

/// Equals Pillow's `CMYK` to `RGB`, for the inverted values in Adobe's files.
#[test]
fn cmyk_is_converted_like_pillow() {
    assert_eq!(
        jpeg::cmyk_to_rgb(&[255, 255, 255, 255]),
        [255, 255, 255],
        "no ink"
    );
    assert_eq!(jpeg::cmyk_to_rgb(&[255, 255, 255, 0]), [0, 0, 0], "all black");
    assert_eq!(jpeg::cmyk_to_rgb(&[0, 128, 255, 255]), [0, 128, 255]);
    assert_eq!(jpeg::cmyk_to_rgb(&[100, 128, 200, 90]), [35, 45, 71]);
}

/// Only EXIF determines the orientation. Pillow falls back to XMP.
#[test]
fn xmp_orientation_is_ignored() {
    let file = jpeg(16, 8);
    let xmp = b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation=\"6\"/>";
    let length = u16::try_from(xmp.len() + 2)
        .expect("a short segment")
        .to_be_bytes();
    let tagged = [&file[..2], b"\xff\xe1", &length, xmp, &file[2..]].concat();
    let image = decoded("decode(orient=exif)", &tagged, Limits::default()).expect("a photo");
    assert_eq!((image.width(), image.height()), (16, 8));
}
