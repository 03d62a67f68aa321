use super::*;

/// A JPEG up to its first scan, with `marker` as the start of frame.
fn jpeg(marker: u8, width: u16, height: u16, components: u8, before: &[u8], scan: &[u8]) -> Vec<u8> {
    let [h1, h0] = height.to_be_bytes();
    let [w1, w0] = width.to_be_bytes();
    let mut bytes = vec![0xff, 0xd8];
    bytes.extend_from_slice(before);
    bytes.extend_from_slice(&[0xff, marker, 0, 8 + 3 * components, 8, h1, h0, w1, w0, components]);
    bytes.extend((1..=components).flat_map(|component| [component, 0x11, 0]));
    bytes.extend_from_slice(scan);
    bytes
}

/// An APP1 segment with an EXIF directory of one entry, the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xe1, 0, 34];
    bytes.extend_from_slice(b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0");
    bytes.extend_from_slice(&[orientation, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

const ALL_IN_ONE: &[u8] = &[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0];
const FIRST_OF_THREE: &[u8] = &[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0];

#[test]
fn jpeg_headers_are_read() {
    let read = |bytes: &[u8]| ImageHeader::read(bytes);
    let plain = read(&jpeg(0xc0, 640, 480, 3, &[], ALL_IN_ONE)).expect("a header");
    let expected = ImageHeader {
        media: MediaType::Jpeg,
        width: 640,
        height: 480,
        orientation: Some(1),
        scratch_bytes_per_pixel: 0,
        is_scalable: true,
    };
    assert_eq!(plain, expected);
    let progressive = read(&jpeg(0xc2, 640, 480, 3, &exif(6), ALL_IN_ONE)).expect("a header");
    assert_eq!(
        progressive,
        ImageHeader {
            orientation: Some(6),
            scratch_bytes_per_pixel: 6,
            ..expected
        }
    );
    let separate = read(&jpeg(0xc0, 640, 480, 3, &[], FIRST_OF_THREE)).expect("a header");
    assert_eq!(
        separate,
        ImageHeader {
            scratch_bytes_per_pixel: 6,
            ..expected
        },
        "one scan per component"
    );
    let unknown = read(&jpeg(0xc0, 640, 480, 3, &[], &[])).expect("a header");
    assert_eq!(
        unknown,
        ImageHeader {
            orientation: None,
            scratch_bytes_per_pixel: 6,
            ..expected
        },
        "the head ends early"
    );
    let cmyk = read(&jpeg(0xc1, 640, 480, 4, &[], &[0xff, 0xda, 0, 14, 4])).expect("a header");
    assert_eq!(cmyk.scratch_bytes_per_pixel, 4);
    let lossless = read(&jpeg(0xc3, 640, 480, 3, &[], ALL_IN_ONE)).expect("a header");
    assert!(!lossless.is_scalable, "no scaled decoding");
    let many = read(&jpeg(0xc0, 640, 480, 80, &[], &[])).expect("a header");
    assert_eq!(many.scratch_bytes_per_pixel, 160, "no overflow");
}

#[test]
fn the_first_exif_block_counts() {
    let both: Vec<u8> = [exif(3), exif(8)].concat();
    let header = ImageHeader::read(&jpeg(0xc0, 4, 4, 3, &both, ALL_IN_ONE)).expect("a header");
    assert_eq!(header.orientation, Some(3));
    let after = [exif(5), ALL_IN_ONE.to_vec()].concat();
    let header = ImageHeader::read(&jpeg(0xc0, 4, 4, 3, &[], &after)).expect("a header");
    assert_eq!(header.orientation, Some(5), "EXIF may follow the frame header");
    let invalid = ImageHeader::read(&jpeg(0xc0, 4, 4, 3, &exif(77), ALL_IN_ONE)).expect("a header");
    assert_eq!(invalid.orientation, Some(1));
}

#[test]
fn invalid_headers_are_refused() {
    assert_eq!(
        ImageHeader::read(&jpeg(0xc0, 0, 5, 3, &[], ALL_IN_ONE)),
        None,
        "no width"
    );
    assert_eq!(
        ImageHeader::read(&jpeg(0xc0, 5, 0, 3, &[], ALL_IN_ONE)),
        None,
        "height in a DNL marker"
    );
    let whole = jpeg(0xc0, 5, 5, 3, &exif(1), ALL_IN_ONE);
    let frame = whole
        .iter()
        .position(|byte| *byte == 0xc0)
        .expect("a frame header");
    assert!(
        (0..frame + 7).all(|end| ImageHeader::read(&whole[..end]).is_none()),
        "cut before the size"
    );
    for foreign in [
        &b""[..],
        b"\xff",
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"RIFF",
        b"BM",
        b"GIF89a",
        b"II*\0",
        b"\x89PNG\r\n\x1a\n",
        b"PAR1",
    ] {
        assert_eq!(ImageHeader::read(foreign), None, "{foreign:?}");
    }
}

#[test]
fn complete_jpegs_have_an_end_marker() {
    let end = |tail: &[u8]| is_complete(&jpeg(0xc0, 5, 5, 3, &[], &[ALL_IN_ONE, tail].concat()));
    assert!(end(b"\x12\x34\xff\xd9"));
    assert!(
        end(b"\x12\xff\x00\xff\xd3\x34\xff\xff\xd9trailing"),
        "stuffing, restart, fill"
    );
    assert!(!end(b"\x12\x34"));
    assert!(!end(b"\x12\x34\xff"));
    assert!(
        !end(b"\x12\xff\xe1\x00\x10\xff\xd9"),
        "inside a truncated segment"
    );
    assert!(!is_complete(b"\x89PNG"));
}

#[test]
fn single_scans_end_the_image() {
    let one = |frame: u8, scan: &[u8]| is_one_scan(&jpeg(frame, 5, 5, 3, &[], scan));
    let with = |tail: &[u8]| [ALL_IN_ONE, tail].concat();
    let end = b"\x12\xff\x00\xff\xd3\x34\xff\xff\xd9trailing";
    assert!(one(0xc0, &with(end)) && one(0xc1, &with(end)));
    for other in [0xc2, 0xc3, 0xc9] {
        assert!(!one(other, &with(end)), "progressive, lossless, arithmetic");
    }
    assert!(!one(0xc0, &with(b"\x12\x34")), "truncated");
    assert!(
        !one(0xc0, &with(b"\x12\xff\xc4\x00\x02\xff\xd9")),
        "a segment after the data"
    );
    assert!(!one(0xc0, &with(b"\x12\xff\xd8\xff\xd9")), "a second image in it");
    assert!(
        !one(0xc0, &[FIRST_OF_THREE, end].concat()),
        "one component of three"
    );
    assert!(!is_one_scan(b"\x89PNG"));

    let file = jpeg(0xc0, 5, 5, 3, &[], &with(end));
    assert_eq!(one_scan_length(&file), Some(file.len() - b"trailing".len()));
}

#[test]
fn samplings_with_parts_have_a_name() {
    let subsampling = |components: &[u8]| {
        let count = u8::try_from(components.len()).unwrap();
        let mut frame = vec![8, 0, 5, 0, 5, count];
        frame.extend(components.iter().flat_map(|factors| [1, *factors, 0]));
        let length = u16::try_from(frame.len() + 2).unwrap().to_be_bytes();
        let file = [&b"\xff\xd8\xff\xc0"[..], &length, &frame].concat();
        let header = JpegHeader::read(&file).unwrap();
        assert_eq!(header.components(), count);
        header
            .subsampling()
            .map(|found| (found.block_width(), found.block_height()))
    };
    assert_eq!(subsampling(&[0x22, 0x11, 0x11]), Some((16, 16)), "4:2:0");
    assert_eq!(subsampling(&[0x21, 0x11, 0x11]), Some((16, 8)), "4:2:2");
    assert_eq!(subsampling(&[0x14, 0x11, 0x11]), Some((8, 32)));
    assert_eq!(subsampling(&[0x11, 0x11, 0x11]), Some((8, 8)));
    assert_eq!(subsampling(&[0x22, 0x11, 0x11, 0x22]), Some((16, 16)), "CMYK");
    assert_eq!(subsampling(&[0x22]), Some((8, 8)), "grey: nothing is coarser");
    for other in [
        &[0x31, 0x11, 0x11][..],
        &[0x42, 0x11, 0x11],
        &[0x22, 0x21, 0x11],
        &[0x22, 0x22, 0x22],
        &[0x11, 0x11],
        &[0x22, 0x11, 0x11, 0x11],
        &[],
    ] {
        assert_eq!(subsampling(other), None, "{other:?}");
    }
}

#[test]
fn names_and_content_types_agree() {
    let names = [
        MediaType::Jpeg,
        MediaType::Png,
        MediaType::Webp,
        MediaType::Gif,
        MediaType::Bmp,
        MediaType::Tiff,
    ];
    assert_eq!(
        names.map(|media| media.to_string()),
        ["jpeg", "png", "webp", "gif", "bmp", "tiff"]
    );
    assert!(
        names
            .iter()
            .all(|media| media.content_type() == media.format().to_mime_type())
    );
}
