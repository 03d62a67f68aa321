use std::{io::Cursor, path::Path};

use image::{DynamicImage, ExtendedColorType, ImageBuffer, ImageEncoder as _, ImageFormat, Luma, Rgb, Rgba};

use super::*;
use pushdown::Pipeline;
use pushdown_core::{Context, ErrorKind, Limits, Sample};

mod formats;
mod jpegs;
mod scans;
mod tiffs;

/// A file that `scripts/golden.py` wrote.
fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/fixtures/photos");
    std::fs::read(folder.join(name)).expect("the file is in the repository")
}

fn decoded(text: &str, object: &[u8], limits: Limits) -> Result<Image> {
    let context = Context {
        limits,
        ..Context::new(b"")
    };
    let object = Sample::Bytes(Bytes::copy_from_slice(object));
    match Pipeline::parse(text)?.run(0..1, object, &context)? {
        Sample::Image(image) => Ok(image),
        other => panic!("expected an image, found {other:?}"),
    }
}

fn decode(object: &[u8]) -> Result<Image> {
    decoded("decode", object, Limits::default())
}

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image.into().write_to(&mut out, format).expect("a small image");
    out.into_inner()
}

/// A smooth picture, encoded as JPEG by the `encode` step.
fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let pixels =
        (0..height).flat_map(|y| (0..width).flat_map(move |x| [x * 255 / width, y * 255 / height, 77]));
    let pixels: Vec<u8> = pixels
        .map(|level| u8::try_from(level).unwrap_or(u8::MAX))
        .collect();
    let image = Sample::Image(Image::new(width, height, pixels).expect("sizes agree"));
    let encode = Pipeline::parse("decode | encode(jpeg)").expect("a pipeline");
    match encode.run(1..2, image, &Context::new(b"")) {
        Ok(Sample::Bytes(bytes)) => bytes.to_vec(),
        other => panic!("expected bytes, found {other:?}"),
    }
}

/// `bytes` with `width` x `height` in the frame header.
fn with_frame_size(bytes: &[u8], width: u16, height: u16) -> Vec<u8> {
    let frame = bytes
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .expect("a baseline frame");
    let mut bytes = bytes.to_vec();
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

/// A PNG with `width` x `height` in its header, and `data` as its pixels.
fn png(width: u32, height: u32, colour: u8, depth: u8, data: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], body: &[u8]| {
        let length = u32::try_from(body.len()).expect("a short chunk").to_be_bytes();
        let checked = [&kind[..], body].concat();
        [&length[..], &checked, &crc32(&checked).to_be_bytes()].concat()
    };
    let header = [
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        &[depth, colour, 0, 0, 0],
    ]
    .concat();
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &header),
        &chunk(b"IDAT", data),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// A GIF of one pixel with a stated screen of 65,535 x 65,535.
fn gif_with_huge_screen() -> Vec<u8> {
    let mut gif = encoded(
        ImageBuffer::from_pixel(1, 1, Rgba([1_u8, 2, 3, 255])),
        ImageFormat::Gif,
    );
    gif[6..10].fill(0xff);
    gif
}

#[test]
fn decompression_bombs_are_refused_before_decoding() {
    let bombs = [
        (png(100_000, 100_000, 2, 8, b""), "100000 x 100000"),
        (png(100_000, 100_000, 6, 16, b""), "100000 x 100000"),
        (with_frame_size(&jpeg(8, 8), 65_535, 65_535), "65535 x 65535"),
        (gif_with_huge_screen(), "65535 x 65535"),
    ];
    for (bomb, size) in bombs {
        let error = decode(&bomb).expect_err(size);
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(
            error.to_string().contains(size) && error.to_string().contains("100000000 pixels"),
            "{error}"
        );
        // The scaled image would fit, but the limit applies to the stored size.
        assert_eq!(
            decoded("decode(min_short=1)", &bomb, Limits::default())
                .expect_err(size)
                .kind(),
            ErrorKind::Undecodable
        );
    }
    let limits = Limits {
        max_pixels: 99,
        ..Limits::default()
    };
    assert_eq!(
        decoded("decode", &jpeg(10, 10), limits)
            .expect_err("100 pixels")
            .kind(),
        ErrorKind::Undecodable
    );
    assert!(decoded("decode", &jpeg(9, 11), limits).is_ok());
}

/// The stated sizes are within the limits, but wrong.
#[test]
fn false_headers_are_undecodable() {
    let two_frames = {
        let inner = jpeg(64, 64);
        let frame = inner
            .windows(2)
            .position(|pair| pair == [0xff, 0xc0])
            .expect("a frame");
        let mut bytes = inner.clone();
        bytes.splice(frame..frame, inner[frame..frame + 19].to_vec());
        with_frame_size(&bytes, 8, 8)
    };
    for (what, bytes) in [
        ("two frame headers", two_frames),
        ("no pixels", png(9_000, 9_000, 2, 8, b"")),
        ("an unknown colour type", png(9, 9, 5, 8, b"")),
        (
            "more pixels than data",
            with_frame_size(&jpeg(8, 8)[..300], 8_000, 8_000),
        ),
    ] {
        assert_eq!(
            decode(&bytes).expect_err(what).kind(),
            ErrorKind::Undecodable,
            "{what}"
        );
    }
}

#[test]
fn errors_quote_unknown_formats() {
    let message = |bytes: &[u8]| decode(bytes).expect_err("not an image").to_string();
    assert_eq!(message(b""), "the object is empty, expected an image");
    assert_eq!(
        message(b"PAR1\0\xff\"'xyz"),
        "the object starts with `PAR1\\x00\\xff\\\"\\'`, expected JPEG, PNG, WebP, GIF, BMP or TIFF"
    );
    assert_eq!(
        message(b"\xff\xd8\xff\xe0"),
        "the jpeg header is broken or incomplete"
    );
    assert_eq!(
        message(b"\x89PNG\r\n\x1a\n"),
        "the png header is broken or incomplete"
    );
}

#[test]
fn truncated_files_are_undecodable() {
    let picture = ImageBuffer::from_fn(61, 47, |x, y| {
        Rgb([x, y, x * y].map(|level| u8::try_from(level % 256).unwrap_or(0)))
    });
    let mut files = vec![jpeg(61, 47)];
    files.extend(
        [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Bmp]
            .map(|format| encoded(picture.clone(), format)),
    );
    files.push(tiffs::plain(61, 47, 3, picture.as_raw()));
    files.push(encoded(
        DynamicImage::from(picture).into_rgba8(),
        ImageFormat::Gif,
    ));
    for file in files {
        assert!(decode(&file).is_ok());
        for cut in [0, 1, 3, 20, file.len() / 2, file.len() * 3 / 4] {
            let result = decode(&file[..cut]);
            assert_eq!(
                result.expect_err("truncated").kind(),
                ErrorKind::Undecodable,
                "{:?} at {cut}",
                MediaType::sniff(&file)
            );
        }
    }
}

#[test]
fn encoded_images_decode_again() {
    let picture = decode(&jpeg(33, 17)).expect("a photo");
    let round_trip = |text: &str| {
        let pipeline = Pipeline::parse(&format!("decode | {text} | decode")).expect(text);
        match pipeline.run(1..3, Sample::Image(picture.clone()), &Context::new(b"")) {
            Ok(Sample::Image(image)) => image,
            other => panic!("expected an image, found {other:?}"),
        }
    };
    assert_eq!(round_trip("encode(png)"), picture);
    assert_eq!(round_trip("encode(webp)"), picture, "lossless");
    let lossy = round_trip("encode(jpeg, quality=95)");
    let worst = lossy
        .pixels()
        .iter()
        .zip(picture.pixels())
        .map(|(a, b)| a.abs_diff(*b))
        .max();
    assert!(worst.is_some_and(|worst| worst < 40), "{worst:?}");
}

/// The maximum side of a WebP has 14 bits.
#[test]
fn images_too_large_to_encode_are_unsuitable() {
    let wide = Sample::Image(Image::new(20_000, 1, vec![0; 60_000]).expect("sizes agree"));
    let pipeline = Pipeline::parse("decode | encode(webp)").expect("a pipeline");
    assert_eq!(
        pipeline
            .run(1..2, wide, &Context::new(b""))
            .expect_err("too wide")
            .kind(),
        ErrorKind::Unsuitable
    );
}

/// EXIF, profiles and comments are dropped.
#[test]
fn encoding_writes_pixels_only() {
    let file = fixture("jpeg_exif_6.jpg");
    assert_eq!(ImageHeader::read(&file).expect("a photo").orientation, Some(6));
    for format in ["jpeg", "png", "webp"] {
        let text = format!("decode | encode({format})");
        let pipeline = Pipeline::parse(&text).expect("a pipeline");
        let object = Sample::Bytes(Bytes::from(file.clone()));
        let Ok(Sample::Bytes(encoded)) = pipeline.run(0..2, object, &Context::new(b"")) else {
            panic!("no bytes")
        };
        assert!(!encoded.windows(4).any(|window| window == b"Exif"), "{format}");
    }
}
