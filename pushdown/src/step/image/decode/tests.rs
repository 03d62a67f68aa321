use std::io::Cursor;

use image::{DynamicImage, ExtendedColorType, ImageBuffer, ImageEncoder as _, ImageFormat, Luma, Rgb, Rgba};

use super::*;
use crate::{Context, ErrorKind, Limits, Pipeline, Sample};

fn decoded(text: &str, object: &[u8], limits: Limits) -> Result<Image> {
    let context = Context { limits, ..Context::new(b"") };
    let object = Sample::Bytes(Bytes::copy_from_slice(object));
    match Pipeline::parse(text)?.run(0..1, object, &context)? {
        Sample::Image(image) => Ok(image),
        other => panic!("expected an image, found {other:?}"),
    }
}

fn decode(object: &[u8]) -> Result<Image> {
    decoded("decode", object, Limits::default())
}

fn written(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image.into().write_to(&mut out, format).expect("a small image");
    out.into_inner()
}

/// A smooth picture as our own JPEG.
fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| [x * 255 / width, y * 255 / height, 77]));
    let pixels: Vec<u8> = pixels.map(|level| u8::try_from(level).unwrap_or(u8::MAX)).collect();
    let image = Sample::Image(Image::new(width, height, pixels).expect("sizes agree"));
    let encode = Pipeline::parse("decode | encode(jpeg)").expect("a pipeline");
    match encode.run(1..2, image, &Context::new(b"")) {
        Ok(Sample::Bytes(bytes)) => bytes.to_vec(),
        other => panic!("expected bytes, found {other:?}"),
    }
}

/// `bytes` with its frame header saying `width` x `height`.
fn resized_header(bytes: &[u8], width: u16, height: u16) -> Vec<u8> {
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("a baseline frame");
    let mut bytes = bytes.to_vec();
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

/// A PNG whose header says `width` x `height`, with `data` as its pixels.
fn png(width: u32, height: u32, colour: u8, depth: u8, data: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], body: &[u8]| {
        let length = u32::try_from(body.len()).expect("a short chunk").to_be_bytes();
        let checked = [&kind[..], body].concat();
        [&length[..], &checked, &crc32(&checked).to_be_bytes()].concat()
    };
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, 0]].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &header), &chunk(b"IDAT", data), &chunk(b"IEND", b"")].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// A GIF of one pixel whose screen is said to be 65,535 x 65,535.
fn lying_gif() -> Vec<u8> {
    let mut gif = written(ImageBuffer::from_pixel(1, 1, Rgba([1_u8, 2, 3, 255])), ImageFormat::Gif);
    gif[6..10].fill(0xff);
    gif
}

#[test]
fn bombs_are_refused_before_any_pixel() {
    let bombs = [
        (png(100_000, 100_000, 2, 8, b""), "100000 x 100000"),
        (png(100_000, 100_000, 6, 16, b""), "100000 x 100000"),
        (resized_header(&jpeg(8, 8), 65_535, 65_535), "65535 x 65535"),
        (lying_gif(), "65535 x 65535"),
    ];
    for (bomb, size) in bombs {
        let error = decode(&bomb).expect_err(size);
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(error.to_string().contains(size) && error.to_string().contains("100000000 pixels"), "{error}");
        // The scaled image would fit: the limit is on what is decoded.
        assert_eq!(
            decoded("decode(min_short=1)", &bomb, Limits::default()).expect_err(size).kind(),
            ErrorKind::Undecodable
        );
    }
    let limits = Limits { max_pixels: 99, ..Limits::default() };
    assert_eq!(decoded("decode", &jpeg(10, 10), limits).expect_err("100 pixels").kind(), ErrorKind::Undecodable);
    assert!(decoded("decode", &jpeg(9, 11), limits).is_ok());
}

/// Headers that agree with the limits and lie about what follows.
#[test]
fn lying_headers_are_undecodable() {
    let two_frames = {
        let inner = jpeg(64, 64);
        let frame = inner.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("a frame");
        let mut bytes = inner.clone();
        bytes.splice(frame..frame, inner[frame..frame + 19].to_vec());
        resized_header(&bytes, 8, 8)
    };
    for (what, bytes) in [
        ("two frame headers", two_frames),
        ("no pixels", png(9_000, 9_000, 2, 8, b"")),
        ("a colour type that is none", png(9, 9, 5, 8, b"")),
        ("more than there is", resized_header(&jpeg(8, 8)[..300], 8_000, 8_000)),
    ] {
        assert_eq!(decode(&bytes).expect_err(what).kind(), ErrorKind::Undecodable, "{what}");
    }
}

#[test]
fn foreign_bytes_are_named() {
    let message = |bytes: &[u8]| decode(bytes).expect_err("no image").to_string();
    assert_eq!(message(b""), "the object is empty, expected an image");
    assert_eq!(
        message(b"PAR1\0\xff\"'xyz"),
        "the object starts with `PAR1\\x00\\xff\\\"\\'`, expected JPEG, PNG, WebP, GIF, BMP or TIFF"
    );
    assert_eq!(message(b"\xff\xd8\xff\xe0"), "the jpeg header is broken or incomplete");
    assert_eq!(message(b"\x89PNG\r\n\x1a\n"), "the png header is broken or incomplete");
}

#[test]
fn truncated_files_are_undecodable() {
    let picture = ImageBuffer::from_fn(61, 47, |x, y| Rgb([x, y, x * y].map(|level| u8::try_from(level % 256).unwrap_or(0))));
    let mut files = vec![jpeg(61, 47)];
    files.extend([ImageFormat::Png, ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Tiff].map(|format| written(picture.clone(), format)));
    files.push(written(DynamicImage::from(picture).into_rgba8(), ImageFormat::Gif));
    for file in files {
        assert!(decode(&file).is_ok());
        for cut in [0, 1, 3, 20, file.len() / 2, file.len() * 3 / 4] {
            let result = decode(&file[..cut]);
            assert_eq!(result.expect_err("cut short").kind(), ErrorKind::Undecodable, "{:?} at {cut}", MediaType::sniff(&file));
        }
    }
}

/// Pillow calls every one of these truncated, too.
#[test]
fn a_jpeg_without_its_end_is_truncated() {
    let whole = jpeg(64, 64);
    for cut in [whole.len() - 1, whole.len() - 2, whole.len() - 10] {
        let error = decode(&whole[..cut]).expect_err("no end of image");
        assert_eq!(error.to_string(), "the JPEG ends before its end-of-image marker: it is truncated");
    }
}

#[test]
fn a_jpeg_with_warnings_decodes() {
    let whole = jpeg(64, 64);
    let trailing = [&whole[..], b"\0\0trailing junk\xff\xd8\xff"].concat();
    assert_eq!(decode(&trailing).expect("junk after the end"), decode(&whole).expect("a photo"));
    let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).expect("a scan") + 14;
    let mut lost = whole.clone();
    lost.drain(scan + 40..whole.len() - 2);
    let image = decode(&lost).expect("libjpeg warns of a premature end of the data segment");
    assert_eq!((image.width(), image.height()), (64, 64));
    let mut extra = whole.clone();
    let end = whole.len() - 2;
    extra.splice(end..end, *b"extraneous");
    assert_eq!(decode(&extra).expect("bytes before the end marker"), decode(&whole).expect("a photo"));
}

/// A fatal error that follows a warning is fatal: TurboJPEG reports the two alike.
#[test]
fn a_fatal_error_after_a_warning_is_fatal() {
    let whole = jpeg(64, 64);
    let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).expect("a scan") + 14;
    // A JFIF version that libjpeg warns of, then a quantisation table that ends the decoding.
    let mut bytes = whole.clone();
    let version = bytes.windows(5).position(|name| name == b"JFIF\0").expect("JFIF") + 5;
    bytes[version] = 9;
    assert!(decode(&bytes).is_ok(), "a warning only");
    let table = bytes.windows(2).position(|pair| pair == [0xff, 0xdb]).expect("a table");
    assert!(table < scan);
    bytes[table + 4] = 0x0f;
    let error = decode(&bytes).expect_err("table 15");
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
}

#[test]
fn min_short_and_min_long() {
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
    let png = written(ImageBuffer::from_pixel(50, 40, Rgb([1_u8, 2, 3])), ImageFormat::Png);
    let image = decoded("decode(min_short=4)", &png, Limits::default()).expect("a png");
    assert_eq!((image.width(), image.height()), (50, 40), "only JPEG scales");
}

#[test]
fn sixteen_bits_round_to_eight() {
    let grey = ImageBuffer::from_fn(5, 1, |x, _| Luma([[0_u16, 128, 129, 32_767, 65_535][x as usize]]));
    let image = decode(&written(DynamicImage::ImageLuma16(grey), ImageFormat::Png)).expect("16 bit");
    assert_eq!(image.pixels(), [0, 0, 0, 0, 0, 0, 1, 1, 1, 127, 127, 127, 255, 255, 255]);
}

#[test]
fn alpha_is_dropped() {
    let clear = ImageBuffer::from_fn(2, 1, |x, _| Rgba([9_u8, 8, 7, if x == 0 { 0 } else { 255 }]));
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff] {
        let image = decode(&written(clear.clone(), format)).expect("four channels");
        assert_eq!(image.pixels(), [9, 8, 7, 9, 8, 7], "{format:?}");
    }
}

#[test]
fn greys_and_palettes() {
    // 4-bit grey 0, 15 and 2-bit palette-less grey; 1-bit black and white, one deflate block each.
    let stored = |row: &[u8]| {
        let length = u16::try_from(row.len()).expect("a short row");
        let (a, b) = row.iter().fold((1_u32, 0_u32), |(a, b), byte| ((a + u32::from(*byte)) % 65_521, (a + u32::from(*byte) + b) % 65_521));
        [&[0x78, 0x01, 1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), row, &(b << 16 | a).to_be_bytes()].concat()
    };
    let pixels = |depth: u8, row: &[u8], width: u32| {
        decode(&png(width, 1, 0, depth, &stored(row))).expect("grey").pixels().iter().step_by(3).copied().collect::<Vec<_>>()
    };
    assert_eq!(pixels(4, &[0, 0x0f, 0x80], 3), [0, 255, 136]);
    assert_eq!(pixels(2, &[0, 0b0001_1011], 4), [0, 85, 170, 255]);
    assert_eq!(pixels(1, &[0, 0b0101_0000], 4), [0, 255, 0, 255]);
}

#[test]
fn the_first_frame_of_a_gif() {
    let mut file = Vec::new();
    {
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut file);
        for level in [10_u8, 200] {
            encoder.encode(&[level, 0, 0].repeat(6), 3, 2, ExtendedColorType::Rgb8).expect("a frame");
        }
    }
    let image = decode(&file).expect("an animation");
    assert_eq!((image.width(), image.height()), (3, 2));
    assert_eq!(&image.pixels()[..3], [10, 0, 0]);
}

/// Rows stored from the top, as a negative height says.
#[test]
fn a_bmp_from_the_top() {
    let rows = ImageBuffer::from_fn(1, 2, |_, y| Rgb([if y == 0 { 10_u8 } else { 200 }; 3]));
    let upward = written(rows, ImageFormat::Bmp);
    let mut downward = upward.clone();
    downward[22..26].copy_from_slice(&(-2_i32).to_le_bytes());
    assert_eq!(decode(&upward).expect("a bmp").pixels(), [10, 10, 10, 200, 200, 200]);
    assert_eq!(decode(&downward).expect("a bmp").pixels(), [200, 200, 200, 10, 10, 10]);
}

#[test]
fn exif_turns_the_image() {
    let file = jpeg(16, 8);
    let stored = decode(&file).expect("a photo");
    for orientation in 1..=8_u8 {
        let mut turned = file[..2].to_vec();
        turned.extend_from_slice(b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0");
        turned.extend_from_slice(&[orientation, 0, 0, 0, 0, 0, 0, 0]);
        turned.extend_from_slice(&file[2..]);
        assert_eq!(decode(&turned).expect("as stored"), stored);
        let upright = decoded("decode(orient=exif)", &turned, Limits::default()).expect("upright");
        let size = if orientation < 5 { (16, 8) } else { (8, 16) };
        assert_eq!((upright.width(), upright.height()), size, "orientation {orientation}");
        assert_eq!(upright == stored, orientation == 1);
        // The corner that EXIF calls the first row's first column.
        let corner: [u8; 3] = upright.pixels()[..3].try_into().expect("a pixel");
        let (x, y) = [(0, 0), (15, 0), (15, 7), (0, 7), (0, 0), (0, 7), (15, 7), (15, 0)][usize::from(orientation) - 1];
        assert_eq!(corner, stored.pixels()[(y * 16 + x) * 3..][..3], "orientation {orientation}");
    }
}

#[test]
fn encoders_read_back() {
    let picture = decode(&jpeg(33, 17)).expect("a photo");
    let round = |text: &str| {
        let pipeline = Pipeline::parse(&format!("decode | {text} | decode")).expect(text);
        match pipeline.run(1..3, Sample::Image(picture.clone()), &Context::new(b"")) {
            Ok(Sample::Image(image)) => image,
            other => panic!("expected an image, found {other:?}"),
        }
    };
    assert_eq!(round("encode(png)"), picture);
    assert_eq!(round("encode(webp)"), picture, "lossless");
    let lossy = round("encode(jpeg, quality=95)");
    let worst = lossy.pixels().iter().zip(picture.pixels()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst.is_some_and(|worst| worst < 40), "{worst:?}");
}

/// WebP has 14 bits for a side.
#[test]
fn too_large_to_encode() {
    let wide = Sample::Image(Image::new(20_000, 1, vec![0; 60_000]).expect("sizes agree"));
    let pipeline = Pipeline::parse("decode | encode(webp)").expect("a pipeline");
    assert_eq!(pipeline.run(1..2, wide, &Context::new(b"")).expect_err("too wide").kind(), ErrorKind::Unsuitable);
}

/// As Pillow's `CMYK` to `RGB`, over the inverted values of Adobe's files.
#[test]
fn cmyk() {
    assert_eq!(jpeg::cmyk_to_rgb(&[255, 255, 255, 255]), [255, 255, 255], "no ink");
    assert_eq!(jpeg::cmyk_to_rgb(&[255, 255, 255, 0]), [0, 0, 0], "all black");
    assert_eq!(jpeg::cmyk_to_rgb(&[0, 128, 255, 255]), [0, 128, 255]);
    assert_eq!(jpeg::cmyk_to_rgb(&[100, 128, 200, 90]), [35, 45, 71]);
}

#[test]
fn interlaced_and_animated_pngs() {
    let picture = ImageBuffer::from_fn(9, 7, |x, y| Rgb([x * 20, y * 30, 5].map(|level| u8::try_from(level).unwrap_or(0))));
    let mut plain = Vec::new();
    image::codecs::png::PngEncoder::new(&mut plain)
        .write_image(picture.as_raw(), 9, 7, ExtendedColorType::Rgb8)
        .expect("a png");
    // An animation control chunk before the pixels: the default image is the one that counts.
    let control = [&b"acTL"[..], &2_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    let chunk = [&8_u32.to_be_bytes()[..], &control, &crc32(&control).to_be_bytes()].concat();
    let mut animated = plain.clone();
    animated.splice(33..33, chunk);
    assert_eq!(decode(&animated).expect("an animation").pixels(), picture.as_raw());
    assert_eq!(decode(&plain).expect("a png").pixels(), picture.as_raw());
}
