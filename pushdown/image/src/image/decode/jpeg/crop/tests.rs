mod encode;

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use turbojpeg::raw;

use super::{super::decode, *};

const DIVISORS: [u32; 4] = [1, 2, 4, 8];

/// The pixels of `region` of a window that may have more.
fn pixels(window: &Window, region: Region) -> Vec<u8> {
    let rows = region.y..region.y + region.height;
    rows.flat_map(|y| window.rows(region.x, y).0[..3 * region.width as usize].to_vec())
        .collect()
}

/// A region of an image: of a few pixels as often as of any size, and at each edge.
fn random_region(width: u32, height: u32, random: &mut StdRng) -> Region {
    let mut axis = |side: u32| {
        let longest = if random.random() { side } else { side.min(20) };
        let length = random.random_range(1..=longest);
        let start = match random.random_range(0..4) {
            0 => 0,
            1 => side - length,
            _ => random.random_range(0..=side - length),
        };
        (start, length)
    };
    let (x, width) = axis(width);
    let (y, height) = axis(height);
    Region { x, y, width, height }
}

fn header(file: &[u8]) -> ImageHeader {
    ImageHeader::read(file).expect("a JPEG")
}

/// The cropped JPEG of a region, if there is one.
fn cropped_or_not(file: &[u8], divisor: u32, wanted: Region) -> Option<CroppedJpeg> {
    match crop(file, &header(file), divisor, wanted, Cancellation::NEVER) {
        Ok(crop) => crop,
        Err(error) => panic!("{error}"),
    }
}

/// The same, after its pixels have been compared with those of decoding that region, and the whole.
fn cropped(file: &[u8], divisor: u32, wanted: Region) -> Option<CroppedJpeg> {
    let crop = cropped_or_not(file, divisor, wanted)?;
    assert!(crop.bytes().len() + POSITION_BYTES <= file.len());
    assert_same_pixels(file, &crop, divisor, wanted);
    Some(crop)
}

fn assert_same_pixels(file: &[u8], crop: &CroppedJpeg, divisor: u32, wanted: Region) {
    let never = Cancellation::NEVER;
    let found = decode_crop(crop, divisor, wanted, never).expect("a cropped JPEG");
    for region in [Some(wanted), None] {
        let expected = decode(file, &header(file), divisor, region, never).expect("a whole JPEG");
        assert!(
            pixels(&found, wanted) == pixels(&expected, wanted),
            "{wanted:?}, {:?}, at 1/{divisor}",
            crop.position()
        );
    }
}

#[test]
fn pixels_are_those_of_the_whole_file() {
    let mut random = StdRng::seed_from_u64(1);
    let (mut made, total) = (0, 1_500);
    for _ in 0..total {
        let (width, height) = (random.random_range(1..200), random.random_range(1..200));
        let parameters = encode::random_parameters(&mut random);
        let file = encode::jpeg(width, height, &parameters, &mut random);
        let divisor = DIVISORS[random.random_range(0..4)];
        let wanted = random_region(width.div_ceil(divisor), height.div_ceil(divisor), &mut random);
        made += u32::from(cropped(&file, divisor, wanted).is_some());
    }
    assert!(made > total / 3, "{made} of {total} files are cropped");
}

/// Where upsampling is plain for narrow components, and where blocks are cut by the edge of the image.
#[test]
fn small_regions_at_every_edge_have_the_pixels_of_the_whole() {
    let mut random = StdRng::seed_from_u64(2);
    for sampling in encode::SAMPLINGS {
        for (width, height) in [(83, 67), (64, 96)] {
            let file = encode::jpeg(width, height, &encode::parameters(sampling, 60), &mut random);
            for divisor in DIVISORS {
                let (wide, high) = (width.div_ceil(divisor), height.div_ceil(divisor));
                for length in 1..=20 {
                    let (columns, rows) = (length.min(wide), length.min(high));
                    for (x, y) in [
                        (0, 0),
                        (wide - columns, 0),
                        (0, high - rows),
                        (wide - columns, high - rows),
                    ] {
                        let wanted = Region {
                            x,
                            y,
                            width: columns,
                            height: rows,
                        };
                        cropped(&file, divisor, wanted);
                    }
                }
            }
        }
    }
}

/// Pixels or the error of decoding `wanted`, from a cropped JPEG if there is one. Also whether there is one.
fn through_a_crop(file: &[u8], divisor: u32, wanted: Region) -> (Result<Vec<u8>>, bool) {
    let crop = ImageHeader::read(file).and_then(|_| cropped_or_not(file, divisor, wanted));
    let Some(crop) = crop else {
        return (plain(file, divisor, wanted), false);
    };
    let window = decode_crop(&crop, divisor, wanted, Cancellation::NEVER);
    (window.map(|window| pixels(&window, wanted)), true)
}

fn plain(file: &[u8], divisor: u32, wanted: Region) -> Result<Vec<u8>> {
    let header = ImageHeader::read(file).ok_or_else(|| Error::undecodable("no header"))?;
    let window = decode(file, &header, divisor, Some(wanted), Cancellation::NEVER)?;
    Ok(pixels(&window, wanted))
}

/// Files cut, and changed in a bit or in some bytes, at about every row of blocks. The result is that of decoding the region of
/// the same file, and so is the message of an error.
#[test]
fn faulty_files_have_the_result_of_the_whole_file() {
    let mut random = StdRng::seed_from_u64(4);
    let (mut crops, mut errors, mut total) = (0, 0, 0);
    let restart = encode::restart(5);
    let progressive = encode::PROGRESSIVE;
    for (sampling, more) in [
        (raw::TJSAMP_TJSAMP_420, None),
        (raw::TJSAMP_TJSAMP_420, Some(restart)),
        (raw::TJSAMP_TJSAMP_422, None),
        (raw::TJSAMP_TJSAMP_440, None),
        (raw::TJSAMP_TJSAMP_444, Some(progressive)),
        (raw::TJSAMP_TJSAMP_GRAY, None),
    ] {
        let (width, height) = (120, 160);
        let parameters: Vec<_> = encode::parameters(sampling, 70).into_iter().chain(more).collect();
        let file = encode::jpeg(width, height, &parameters, &mut random);
        for at in (2..file.len()).step_by(file.len() / 80) {
            let mut flipped = file.clone();
            flipped[at] ^= 1 << random.random_range(0..8);
            let mut zeroed = file.clone();
            zeroed[at..].iter_mut().take(6).for_each(|byte| *byte = 0);
            for faulty in [&file[..at], &flipped, &zeroed] {
                for divisor in [1, 2] {
                    let wanted = random_region(width / divisor, height / divisor, &mut random);
                    let (found, is_cropped) = through_a_crop(faulty, divisor, wanted);
                    let expected = plain(faulty, divisor, wanted);
                    assert!(
                        found == expected,
                        "{wanted:?} at {at}: {:?}, {:?}",
                        found.err(),
                        expected.err()
                    );
                    total += 1;
                    crops += u32::from(is_cropped);
                    errors += u32::from(expected.is_err());
                }
            }
        }
    }
    assert!(
        crops > total / 20 && errors > total / 20,
        "{crops} crops, {errors} errors of {total}"
    );
}

/// The segments of a file with their markers and data, so that they can be changed.
fn segments(file: &[u8]) -> Vec<Vec<u8>> {
    let starts = file
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff | 0xd0..=0xd7));
    let starts: Vec<usize> = starts.map(|(start, _)| start).chain([file.len()]).collect();
    starts
        .windows(2)
        .map(|ends| file[ends[0]..ends[1]].to_vec())
        .collect()
}

const MIDDLE: Region = Region {
    x: 40,
    y: 40,
    width: 30,
    height: 30,
};

/// A file of 128 x 128 pixels.
fn square(parameters: &[encode::Parameter]) -> Vec<u8> {
    let all: Vec<_> = encode::parameters(raw::TJSAMP_TJSAMP_420, 80)
        .into_iter()
        .chain(parameters.iter().copied())
        .collect();
    encode::jpeg(128, 128, &all, &mut StdRng::seed_from_u64(5))
}

#[test]
fn files_without_exact_parts_are_sent_whole() {
    let baseline = square(&[]);
    assert!(cropped(&baseline, 1, MIDDLE).is_some());
    let progressive = square(&[encode::PROGRESSIVE]);
    assert!(cropped(&progressive, 1, MIDDLE).is_some());

    let arithmetic = square(&[encode::ARITHMETIC]);
    let cmyk = square(&[encode::CMYK]);
    let ycck = square(&[encode::YCCK]);
    let lossless = square(&[encode::LOSSLESS, (raw::TJPARAM_TJPARAM_LOSSLESSPSV, 1)]);
    let frame = baseline
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .expect("a frame");
    let with_byte = |at: usize, value: u8| {
        let mut file = baseline.clone();
        file[frame + at] = value;
        file
    };
    let unnamed_sampling = with_byte(11, 0x31);
    let extraneous = {
        let mut parts = segments(&baseline);
        let scan = parts.len() - 2;
        parts[scan].extend_from_slice(b"extraneous");
        parts.concat()
    };
    let future_jfif = {
        let mut file = baseline.clone();
        let version = file.windows(5).position(|name| name == b"JFIF\0").expect("JFIF") + 5;
        file[version] = 9;
        file
    };
    // libjpeg smooths blocks whose coefficients are not all known.
    let unrefined = {
        let mut parts = segments(&progressive);
        let last_scan = parts.len() - 2;
        parts.remove(last_scan);
        parts.concat()
    };
    // No file of one scan has both tables.
    let with_second_table = |change: u8| {
        let mut parts = segments(&progressive);
        let table = parts.iter().find(|part| part[1] == 0xdb);
        let mut table = table.expect("a table").clone();
        table[5] ^= change;
        parts.insert(parts.len() - 2, table);
        parts.concat()
    };
    assert!(cropped(&with_second_table(0), 1, MIDDLE).is_some());
    let redefined_table = with_second_table(1);
    let bottom = Region { y: 98, ..MIDDLE };
    for (what, file, wanted, decodes) in [
        ("arithmetic coding", arithmetic, MIDDLE, true),
        ("CMYK", cmyk, MIDDLE, true),
        ("YCCK", ycck, MIDDLE, true),
        ("lossless", lossless, MIDDLE, true),
        ("12 bits", with_byte(4, 12), MIDDLE, false),
        ("a sampling without a name", unnamed_sampling, MIDDLE, true),
        ("bytes before the end marker", extraneous, bottom, true),
        ("a warning in the header", future_jfif, MIDDLE, true),
        ("coefficients without all bits", unrefined, MIDDLE, true),
        (
            "a table that changes between scans",
            redefined_table,
            MIDDLE,
            true,
        ),
        (
            "no end marker",
            baseline[..baseline.len() - 2].to_vec(),
            MIDDLE,
            false,
        ),
    ] {
        assert!(cropped_or_not(&file, 1, wanted).is_none(), "{what}");
        let whole = decode(&file, &header(&file), 1, None, Cancellation::NEVER);
        assert_eq!(whole.is_ok(), decodes, "{what}");
    }
}

#[test]
fn parts_that_are_hardly_smaller_are_sent_whole() {
    let file = square(&[]);
    let whole = Region::all(128, 128);
    // 7 of 8 columns of blocks are 0.875, 8 are all.
    let seven = Region { width: 110, ..whole };
    assert!(cropped(&file, 1, seven).is_some());
    let eight = Region { width: 111, ..whole };
    assert!(cropped_or_not(&file, 1, eight).is_none());
    // Almost all bytes of this file are in one corner: the lower eighth of the blocks has fewer than 64.
    let mut pixels = vec![128; 128 * 128 * 3];
    let mut random = StdRng::seed_from_u64(6);
    for (index, level) in pixels.iter_mut().enumerate() {
        if index / 3 % 128 < 16 && index / (3 * 128) < 16 {
            *level = random.random();
        }
    }
    let parameters = [
        (raw::TJPARAM_TJPARAM_SUBSAMP, raw::TJSAMP_TJSAMP_444),
        (raw::TJPARAM_TJPARAM_QUALITY, 95),
    ];
    let file = encode::rgb(&pixels, (128, 128), &parameters);
    let upper = Region { height: 112, ..whole };
    assert!(cropped_or_not(&file, 1, upper).is_none());
    let corner = Region {
        x: 64,
        y: 64,
        width: 60,
        height: 60,
    };
    assert!(cropped(&file, 1, corner).is_some_and(|crop| crop.bytes().len() * 2 < file.len()));
}

/// Metadata, restart markers and what follows the image are left out.
#[test]
fn a_cropped_jpeg_has_one_scan_and_nothing_else() {
    let file = square(&[encode::restart(3)]);
    let comment = b"\xff\xfe\0\x09comment";
    let file = [&file[..2], comment, &file[2..], b"trailing", &file].concat();
    let crop = cropped(&file, 1, MIDDLE).expect("the first image can be cropped");
    let markers: Vec<u8> = segments(crop.bytes()).iter().map(|part| part[1]).collect();
    // SOI, JFIF, two quantization tables, the frame, four Huffman tables, the scan, EOI.
    assert_eq!(
        markers,
        [0xd8, 0xe0, 0xdb, 0xdb, 0xc0, 0xc4, 0xc4, 0xc4, 0xc4, 0xda, 0xd9]
    );
    assert_eq!(media::one_scan_length(crop.bytes()), Some(crop.bytes().len()));
}

/// The colour space of three components follows from JFIF, Adobe's marker, or the names of the components.
#[test]
fn the_colour_space_is_that_of_the_whole() {
    let ycbcr = square(&[]);
    let rgb = square(&[encode::RGB]);
    let without_marker = |file: &[u8]| {
        let mut parts = segments(file);
        parts.retain(|part| !matches!(part[1], 0xe0 | 0xee));
        parts.concat()
    };
    for file in [&ycbcr, &rgb, &without_marker(&ycbcr), &without_marker(&rgb)] {
        assert!(cropped(file, 1, MIDDLE).is_some());
    }
}

/// A file from the other end may be any.
#[test]
fn other_files_than_the_crop_are_refused() {
    let file = square(&[]);
    let crop = cropped(&file, 1, MIDDLE).expect("a crop");
    let position = crop.position();
    let decoded = |bytes: &[u8], position: CropPosition| {
        CroppedJpeg::new(Bytes::copy_from_slice(bytes), position)
            .and_then(|crop| decode_crop(&crop, 1, MIDDLE, Cancellation::NEVER))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(decoded(crop.bytes(), position), Ok(()));
    let misplaced =
        "cropped JPEG: expected 48 x 48 pixels at 32, 32 for this region of 128 x 128 pixels, found ";
    let refused = |bytes: &[u8], position: CropPosition, fault: &str| {
        assert_eq!(decoded(bytes, position), Err(fault.to_owned()));
    };
    let moved = CropPosition {
        crop_x: 16,
        ..position
    };
    refused(
        crop.bytes(),
        moved,
        &format!("{misplaced}48 x 48 pixels at 16, 32"),
    );
    let larger = Region { width: 40, ..MIDDLE };
    let other = cropped(&file, 1, larger).expect("a crop");
    refused(
        other.bytes(),
        other.position(),
        &format!("{misplaced}64 x 48 pixels at 32, 32"),
    );
    refused(&file, position, &format!("{misplaced}128 x 128 pixels at 32, 32"));
    let not_one = "cropped JPEG: expected one image in one scan, grey or in colour";
    refused(b"", position, not_one);
    refused(b"\x89PNG\r\n\x1a\n", position, not_one);
    refused(&crop.bytes()[..crop.bytes().len() - 1], position, not_one);
    refused(
        &[crop.bytes(), crop.bytes()].map(|bytes| &bytes[..]).concat(),
        position,
        not_one,
    );
    refused(&[crop.bytes(), &b"\0"[..]].concat(), position, not_one);
    for coding in [encode::PROGRESSIVE, encode::ARITHMETIC, encode::CMYK] {
        refused(&square(&[coding]), position, not_one);
    }
    // Without data the last blocks are grey: libjpeg warns.
    let mut parts = segments(crop.bytes());
    let scan = parts.len() - 2;
    let length = parts[scan].len();
    parts[scan].truncate(length / 2);
    refused(&parts.concat(), position, "cropped JPEG: its data is broken");
}

/// Reading and writing end at the first call that reports a cancellation.
#[test]
fn cancellation_ends_a_crop_within_a_row_of_blocks() {
    for parameters in [&[][..], &[encode::PROGRESSIVE]] {
        let file = square(parameters);
        let header = header(&file);
        let run = |last: usize| {
            let calls = AtomicUsize::new(0);
            let is_cancelled = || calls.fetch_add(1, Ordering::Relaxed) + 1 >= last;
            let result = crop(&file, &header, 1, MIDDLE, Cancellation::when(&is_cancelled));
            (result, calls.into_inner())
        };
        let (result, calls) = run(usize::MAX);
        assert!(result.is_ok_and(|crop| crop.is_some()));
        // At least 5 rows of blocks are read, and 3 moved and written.
        assert!(calls >= 5 + 3 + 3, "{calls}");
        for last in 1..=calls {
            let (result, calls) = run(last);
            assert_eq!(result, Err(Cancellation::error()));
            assert_eq!(calls, last, "nothing runs after that");
        }
    }
}

/// A grey file of 64 x 64 pixels whose blocks have DC coefficients of 4095 and 0 in turn. Its Huffman tables have one code each:
/// for differences of 12 bits, and for the end of a block.
fn with_large_coefficients() -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        let length = u16::try_from(body.len() + 2).expect("a short segment");
        [&[0xff, marker][..], &length.to_be_bytes(), body].concat()
    };
    let table = |class: u8, symbol: u8| segment(0xc4, &[&[class, 1][..], &[0; 15], &[symbol]].concat());
    let bits: String = ["01111111111110", "00000000000000"].concat().repeat(32);
    let codes = bits.as_bytes().chunks(8).flat_map(|bits| {
        let byte = bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
        if byte == 0xff { vec![byte, 0] } else { vec![byte] }
    });
    [
        b"\xff\xd8".to_vec(),
        // Longer than the tables of a cropped file.
        segment(0xfe, &[b' '; 2_000]),
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(0xc0, &[8, 0, 64, 0, 64, 1, 1, 0x11, 0]),
        table(0, 12),
        table(0x10, 0),
        segment(0xda, &[1, 1, 0, 0, 63, 0]),
        codes.collect(),
        b"\xff\xd9".to_vec(),
    ]
    .concat()
}

/// The tables of a cropped file have codes for what an encoder may write, not for all that a decoder reads.
#[test]
fn coefficients_without_a_code_are_sent_whole() {
    let file = with_large_coefficients();
    for block in 0..8 {
        let wanted = Region {
            x: 8 * block,
            y: 8,
            width: 8,
            height: 8,
        };
        assert_eq!(cropped(&file, 1, wanted).is_some(), block % 2 == 1, "{block}");
    }
}
