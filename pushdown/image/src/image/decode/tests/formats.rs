use super::*;

#[test]
fn sixteen_bits_round_to_eight() {
    let grey = ImageBuffer::from_fn(5, 1, |x, _| Luma([[0_u16, 128, 129, 32_767, 65_535][x as usize]]));
    let image = decode(&encoded(DynamicImage::ImageLuma16(grey), ImageFormat::Png)).expect("16 bit");
    assert_eq!(
        image.pixels(),
        [0, 0, 0, 0, 0, 0, 1, 1, 1, 127, 127, 127, 255, 255, 255]
    );
}

#[test]
fn alpha_is_dropped() {
    let clear = ImageBuffer::from_fn(2, 1, |x, _| Rgba([9_u8, 8, 7, if x == 0 { 0 } else { 255 }]));
    for file in [
        encoded(clear.clone(), ImageFormat::Png),
        encoded(clear.clone(), ImageFormat::WebP),
        tiffs::plain(2, 1, 4, clear.as_raw()),
    ] {
        let image = decode(&file).expect("four channels");
        assert_eq!(
            image.pixels(),
            [9, 8, 7, 9, 8, 7],
            "{:?}",
            MediaType::sniff(&file)
        );
    }
}

#[test]
fn greys_of_1_to_4_bits_are_scaled() {
    // A zlib stream of one uncompressed deflate block.
    let zlib_stream = |row: &[u8]| {
        let length = u16::try_from(row.len()).expect("a short row");
        let (a, b) = row.iter().fold((1_u32, 0_u32), |(a, b), byte| {
            (
                (a + u32::from(*byte)) % 65_521,
                (a + u32::from(*byte) + b) % 65_521,
            )
        });
        [
            &[0x78, 0x01, 1][..],
            &length.to_le_bytes(),
            &(!length).to_le_bytes(),
            row,
            &(b << 16 | a).to_be_bytes(),
        ]
        .concat()
    };
    let pixels = |depth: u8, row: &[u8], width: u32| {
        decode(&png(width, 1, 0, depth, &zlib_stream(row)))
            .expect("grey")
            .pixels()
            .iter()
            .step_by(3)
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(pixels(4, &[0, 0x0f, 0x80], 3), [0, 255, 136]);
    assert_eq!(pixels(2, &[0, 0b0001_1011], 4), [0, 85, 170, 255]);
    assert_eq!(pixels(1, &[0, 0b0101_0000], 4), [0, 255, 0, 255]);
}

#[test]
fn the_first_frame_of_a_gif_is_decoded() {
    let mut file = Vec::new();
    {
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut file);
        for level in [10_u8, 200] {
            encoder
                .encode(&[level, 0, 0].repeat(6), 3, 2, ExtendedColorType::Rgb8)
                .expect("a frame");
        }
    }
    let image = decode(&file).expect("an animation");
    assert_eq!((image.width(), image.height()), (3, 2));
    assert_eq!(&image.pixels()[..3], [10, 0, 0]);
}

/// A negative height means that rows are stored from top to bottom.
#[test]
fn top_down_bmps_decode() {
    let rows = ImageBuffer::from_fn(1, 2, |_, y| Rgb([if y == 0 { 10_u8 } else { 200 }; 3]));
    let bottom_up = encoded(rows, ImageFormat::Bmp);
    let mut top_down = bottom_up.clone();
    top_down[22..26].copy_from_slice(&(-2_i32).to_le_bytes());
    assert_eq!(
        decode(&bottom_up).expect("a bmp").pixels(),
        [10, 10, 10, 200, 200, 200]
    );
    assert_eq!(
        decode(&top_down).expect("a bmp").pixels(),
        [200, 200, 200, 10, 10, 10]
    );
}

#[test]
fn animated_pngs_decode_to_the_default_image() {
    let picture = ImageBuffer::from_fn(9, 7, |x, y| {
        Rgb([x * 20, y * 30, 5].map(|level| u8::try_from(level).unwrap_or(0)))
    });
    let mut plain = Vec::new();
    image::codecs::png::PngEncoder::new(&mut plain)
        .write_image(picture.as_raw(), 9, 7, ExtendedColorType::Rgb8)
        .expect("a png");
    // An animation control chunk before the pixels. The default image is decoded.
    let control = [&b"acTL"[..], &2_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    let chunk = [&8_u32.to_be_bytes()[..], &control, &crc32(&control).to_be_bytes()].concat();
    let mut animated = plain.clone();
    animated.splice(33..33, chunk);
    assert_eq!(
        decode(&animated).expect("an animation").pixels(),
        picture.as_raw()
    );
    assert_eq!(decode(&plain).expect("a png").pixels(), picture.as_raw());
}

/// A GIF of 4 x 2 pixels whose first frame is 2 x 1 pixels at (1, 1). As in Pillow, the rest has the first colour.
#[test]
fn pixels_outside_the_first_frame_have_the_first_colour() {
    let palette = [10, 20, 30, 40, 50, 60, 70, 80, 90, 200, 210, 220];
    // Codes of three bits: clear, colour 2, colour 3, end.
    let codes: u16 = 4 | 2 << 3 | 3 << 6 | 5 << 9;
    let mut gif = b"GIF89a\x04\0\x02\0\x81\x01\0".to_vec();
    gif.extend_from_slice(&palette);
    gif.extend_from_slice(b"\x2c\x01\0\x01\0\x02\0\x01\0\0\x02\x02");
    gif.extend_from_slice(&codes.to_le_bytes());
    gif.extend_from_slice(b"\0\x3b");
    let image = decode(&gif).expect("a gif");
    assert_eq!((image.width(), image.height()), (4, 2));
    let mut expected: Vec<u8> = palette[..3].repeat(8);
    expected[15..21].copy_from_slice(&palette[6..]);
    assert_eq!(image.pixels(), expected);
}

#[test]
fn colour_profiles_and_gamma_are_ignored() {
    let plain = encoded(
        ImageBuffer::from_pixel(2, 2, Rgb([100_u8, 150, 200])),
        ImageFormat::Png,
    );
    let gamma = [&b"gAMA"[..], &100_000_u32.to_be_bytes()].concat();
    let chunk = [&4_u32.to_be_bytes()[..], &gamma, &crc32(&gamma).to_be_bytes()].concat();
    let mut tagged = plain.clone();
    tagged.splice(33..33, chunk);
    assert_eq!(decode(&tagged).expect("a png"), decode(&plain).expect("a png"));
}

/// Pillow rotates TIFFs upright when it reads them.
#[test]
fn tiffs_are_not_rotated_by_default() {
    let file = fixture("tiff_exif_6.tif");
    let stored = decode(&file).expect("a tiff");
    let upright = decoded("decode(orient=exif)", &file, Limits::default()).expect("a tiff");
    assert_eq!(
        (stored.width(), stored.height()),
        (upright.height(), upright.width())
    );
    assert_ne!(stored, upright);
}

/// Two pages of one grey pixel each.
#[test]
fn the_first_page_of_a_tiff_is_decoded() {
    let page = |offset: u32, next: u32, level: u32| {
        let entries: [[u32; 2]; 8] = [
            [256, 1],
            [257, 1],
            [258, 8],
            [259, 1],
            [262, 1],
            [273, offset + 102],
            [278, 1],
            [279, 1],
        ];
        let mut bytes = 8_u16.to_le_bytes().to_vec();
        for [tag, value] in entries {
            // One LONG each.
            bytes.extend_from_slice(&u16::try_from(tag).expect("a tag").to_le_bytes());
            bytes.extend_from_slice(&4_u16.to_le_bytes());
            bytes.extend_from_slice(&[1_u32.to_le_bytes(), value.to_le_bytes()].concat());
        }
        bytes.extend_from_slice(&next.to_le_bytes());
        bytes.extend_from_slice(&level.to_le_bytes());
        bytes
    };
    let first = page(8, 8 + 106, 50);
    assert_eq!(first.len(), 106);
    let file = [&b"II*\0\x08\0\0\0"[..], &first, &page(8 + 106, 0, 60)].concat();
    assert_eq!(decode(&file).expect("two pages").pixels(), [50; 3]);
}
