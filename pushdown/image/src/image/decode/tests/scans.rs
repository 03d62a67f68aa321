//! The limit on the scans of a JPEG: they cost time, however few bytes they have.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use pushdown_core::Cancellation;

/// A start of frame: its marker, and the number of components.
#[derive(Clone, Copy)]
struct Frame(u8, u8);

const PROGRESSIVE: Frame = Frame(0xc2, 3);

fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 2).expect("a short segment");
    [&[0xff, marker][..], &length.to_be_bytes(), body].concat()
}

/// A scan of `components` without data.
fn scan(components: &[u8], parameters: [u8; 3]) -> Vec<u8> {
    let count = u8::try_from(components.len()).expect("few components");
    let selected = components
        .iter()
        .flat_map(|component| [*component, 0])
        .collect::<Vec<_>>();
    segment(0xda, &[&[count], &selected[..], &parameters].concat())
}

/// A JPEG whose tables have one code each. Without data in `scans` it is grey.
fn with_scans(Frame(marker, components): Frame, (width, height): (u16, u16), scans: &[u8]) -> Vec<u8> {
    let [h1, h0] = height.to_be_bytes();
    let [w1, w0] = width.to_be_bytes();
    let mut frame = vec![8, h1, h0, w1, w0, components];
    frame.extend((1..=components).flat_map(|component| [component, 0x11, 0]));
    let code = |class: u8, symbol: u8| {
        let lengths = [&[class, 1][..], &[0; 15], &[symbol]].concat();
        segment(0xc4, &lengths)
    };
    [
        &b"\xff\xd8"[..],
        &segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        &segment(marker, &frame),
        // DC: no difference. AC: 16,384 blocks without coefficients.
        &code(0, 0),
        &code(0x10, 0xe0),
        scans,
        b"\xff\xd9",
    ]
    .concat()
}

/// A JPEG with a scan of DC coefficients, and `count - 1` scans that refine the AC coefficients of a component.
fn progressive(size: (u16, u16), count: usize) -> Vec<u8> {
    let first = scan(&[1, 2, 3], [0, 0, 0]);
    let more = scan(&[1], [1, 63, 0x10]).repeat(count - 1);
    with_scans(PROGRESSIVE, size, &[first, more].concat())
}

#[test]
fn scans_times_pixels_have_a_limit() {
    // 2,500,000,000 / (8,000 * 4,000) is 78.
    for (size, max) in [((8_000, 4_000), 78), ((2_000, 1_000), 500), ((8, 8), 500)] {
        let image = decode(&progressive(size, max)).expect("the maximum number of scans");
        assert_eq!((image.width(), image.height()), (size.0.into(), size.1.into()));
        let error = decode(&progressive(size, max + 1)).expect_err("one scan more");
        assert_eq!(error.kind(), ErrorKind::Undecodable);
        assert_eq!(
            error.to_string(),
            format!(
                "JPEG: expected at most {max} scans for {} x {} pixels, found {}",
                size.0,
                size.1,
                max + 1
            )
        );
    }
}

/// 100 megapixels with the 10 scans of libjpeg's default script, with 20 and with 25. Decoding would take seconds, so scans are
/// only counted.
#[test]
fn large_photos_are_within_the_limit() {
    for count in [10, 20, 25] {
        let file = progressive((10_000, 10_000), count);
        let scans = media::Scans::count(&file).expect("a frame and scans");
        assert_eq!(scans.limit(10_000, 10_000), Ok(25), "{count} scans");
    }
}

/// Decoding a region or a reduced image processes all scans, too.
#[test]
fn regions_have_the_same_limit() {
    let file = Bytes::from(progressive((8_000, 4_000), 79));
    for text in [
        "decode | crop(0, 0, 8, 8)",
        "decode(min_short=1) | crop(0, 0, 8, 8)",
        "decode | resize(short=8) | center_crop(8)",
    ] {
        let error = Pipeline::parse(text)
            .and_then(|pipeline| {
                pipeline.run(0..pipeline.len(), Sample::Bytes(file.clone()), &Context::new(b""))
            })
            .expect_err("79 scans");
        assert!(error.to_string().ends_with("found 79"), "{error}");
    }
}

#[test]
fn lossless_and_arithmetic_scans_count_more() {
    let single_component_scans = |count: u8, parameters| {
        let scans: Vec<u8> = (0..count)
            .flat_map(|index| scan(&[1 + index % 3], parameters))
            .collect();
        scans
    };
    let message = |frame, size, scans: &[u8]| {
        decode(&with_scans(frame, size, scans))
            .expect_err("too many scans")
            .to_string()
    };
    assert_eq!(
        message(
            Frame(0xc3, 3),
            (8_000, 8_000),
            &single_component_scans(5, [1, 0, 0])
        ),
        "JPEG: expected at most 4 lossless scans for 8000 x 8000 pixels, found 5"
    );
    // An arithmetic decoder continues without end after the data.
    let whole = scan(&[1, 2, 3], [0, 63, 0]);
    assert_eq!(
        message(Frame(0xc9, 3), (8_000, 8_000), &whole),
        "JPEG: expected at most 0 arithmetic-coded scans for 8000 x 8000 pixels, found 1"
    );
    assert_eq!(
        message(
            Frame(0xca, 3),
            (1_000, 1_000),
            &single_component_scans(11, [0, 0, 0])
        ),
        "JPEG: expected at most 10 arithmetic-coded scans for 1000 x 1000 pixels, found 11"
    );
    // Sequential, with more scans than components.
    assert_eq!(
        message(
            Frame(0xc1, 3),
            (8_000, 8_000),
            &single_component_scans(40, [0, 63, 0])
        ),
        "JPEG: expected at most 39 scans for 8000 x 8000 pixels, found 40"
    );
    assert!(decode(&with_scans(Frame(0xc9, 3), (1_000, 1_000), &whole)).is_ok());
    assert!(
        decode(&with_scans(
            Frame(0xc1, 3),
            (64, 64),
            &single_component_scans(3, [0, 63, 0])
        ))
        .is_ok()
    );
}

/// Scan markers after the image and in other segments do not count.
#[test]
fn only_scans_of_the_image_count() {
    let mut file = progressive((64, 64), 2);
    let marker = scan(&[1], [1, 63, 0x10]).repeat(600);
    let comment = segment(0xfe, &marker);
    file.splice(2..2, comment);
    file.extend_from_slice(&marker);
    assert!(decode(&file).is_ok());
}

/// Segments may have 4 bytes, and restart intervals a single block. Decoding time stays linear.
#[test]
fn many_markers_and_restarts_decode() {
    let mut file = with_scans(Frame(0xc0, 3), (2_000, 2_000), &scan(&[1, 2, 3], [0, 63, 0]));
    let interval = segment(0xdd, &[0, 1]);
    let profiles = segment(0xe2, b"").repeat(1 << 20);
    file.splice(2..2, [interval, profiles].concat());
    let image = decode(&file).expect("a grey image");
    assert_eq!((image.width(), image.height()), (2_000, 2_000));
}

/// Decoding ends at the first call that reports a cancellation, and the next photo decodes as usual.
#[test]
fn cancellation_ends_a_decode_between_scans() {
    let file = Bytes::from(progressive((8_000, 4_000), 78));
    let pipeline = Pipeline::parse("decode | crop(0, 0, 8, 8)").expect("a pipeline");
    // 500 rows of blocks in each scan.
    for last in [1, 2, 700, 5_000] {
        let calls = AtomicUsize::new(0);
        let is_cancelled = || calls.fetch_add(1, Ordering::Relaxed) + 1 >= last;
        let context = Context {
            cancellation: Cancellation::when(&is_cancelled),
            ..Context::new(b"")
        };
        let error = pipeline
            .run(0..2, Sample::Bytes(file.clone()), &context)
            .expect_err("cancelled");
        assert_eq!(
            error.to_string(),
            "cancelled: the caller no longer waits for the result"
        );
        assert_eq!(calls.into_inner(), last, "nothing runs after that");
    }
    assert!(decode(&jpeg(64, 64)).is_ok());
}

/// Each strip of a TIFF, and each scan in it.
#[test]
fn cancellation_ends_a_decode_between_strips() {
    let file = Bytes::from(strips(3));
    let pipeline = Pipeline::parse("decode").expect("a pipeline");
    for last in [1, 2, 3, 50] {
        let calls = AtomicUsize::new(0);
        let is_cancelled = || calls.fetch_add(1, Ordering::Relaxed) + 1 >= last;
        let context = Context {
            cancellation: Cancellation::when(&is_cancelled),
            ..Context::new(b"")
        };
        let result = pipeline.run(0..1, Sample::Bytes(file.clone()), &context);
        assert!(result.is_err());
        assert_eq!(calls.into_inner(), last, "nothing runs after that");
    }
}

/// A TIFF of 8,000 x 8,000 pixels whose 100 strips are all the same JPEG of `count` scans.
fn strips(count: usize) -> Vec<u8> {
    let strip = progressive((8_000, 80), count);
    let length = u32::try_from(strip.len()).expect("a small file");
    tiffs::tiff_file(
        &[
            (256, &[8_000]),
            (257, &[8_000]),
            (258, &[8]),
            (259, &[7]),
            (262, &[2]),
            (273, &[tiffs::DATA_OFFSET; 100]),
            (277, &[3]),
            (278, &[80]),
            (279, &[length; 100]),
        ],
        &strip,
    )
}

/// All strips of a TIFF may share the same bytes. The limit of each strip is that of the whole image.
#[test]
fn strips_have_the_scan_limit_of_the_image() {
    // 2,500,000,000 / (8,000 * 8,000) is 39. For 8,000 x 80 pixels alone the quotient would be 3,906.
    assert!(decode(&strips(3)).is_ok());
    let error = decode(&strips(40)).expect_err("a scan too many in each strip");
    assert!(
        error
            .to_string()
            .ends_with("JPEG: expected at most 39 scans for 8000 x 8000 pixels, found 40"),
        "{error}"
    );
}
