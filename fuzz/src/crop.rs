//! Properties of any bytes of which a part is sent as a cropped JPEG: the pixels of a pipeline are those of the whole, and any
//! bytes in the place of a cropped JPEG are pixels or an error.

use bytes::Bytes;
use pushdown::{Context, CropPosition, CroppedJpeg, ErrorKind, Pipeline, Sample};

/// Bytes that choose a pipeline and a region, before those of the object.
const CHOICES: usize = 6;

/// Checks any bytes as an object, and as a cropped JPEG of an image of any size. Returns whether a part of the object was made.
pub(crate) fn check(input: &[u8]) -> bool {
    let Some((&[choice, x, y, width, height, side], object)) = input.split_first_chunk::<CHOICES>() else {
        return false;
    };
    let (decode, divisor) = [
        ("decode", 1),
        ("decode(min_short=8)", 2),
        ("decode(orient=exif)", 1),
    ][usize::from(choice) % 3];
    let text = match choice / 3 % 4 {
        0 => format!(
            "{decode} | crop({}, {}, {}, {})",
            x / divisor,
            y / divisor,
            1 + u16::from(width),
            1 + u16::from(height)
        ),
        1 => format!(
            "{decode} | center_crop({}, {})",
            1 + u16::from(width) / 4,
            1 + u16::from(height) / 4
        ),
        2 => format!(
            "{decode} | resize(short={}) | center_crop({})",
            1 + u16::from(side),
            1 + u16::from(side) / 2
        ),
        _ => format!(
            "{decode} | random_resized_crop({}, scale=[0.05, 0.7])",
            1 + u16::from(side)
        ),
    };
    let pipeline: Pipeline = match text.parse() {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{text}: {error}"),
    };
    let context = Context {
        limits: super::image::LIMITS,
        ..Context::new(b"object").with_randomness(u64::from(x), u32::from(y))
    };
    let object = Bytes::copy_from_slice(object);
    let run = |value| pipeline.run(0..pipeline.len(), value, &context);

    let position = CropPosition {
        crop_x: u32::from(x) * 8,
        crop_y: u32::from(y) * 8,
        image_width: u32::from(width) * 8,
        image_height: u32::from(height) * 8,
    };
    if let Ok(foreign) = CroppedJpeg::new(object.clone(), position)
        && let Err(error) = run(Sample::CroppedJpeg(foreign))
    {
        let expected = [ErrorKind::Undecodable, ErrorKind::Unsuitable, ErrorKind::TooLarge];
        assert!(expected.contains(&error.kind()), "{text}: {error:?}");
    }

    let crop = match pipeline.crop_jpeg(&object, &context) {
        Ok(Some(crop)) => crop,
        Ok(None) => return false,
        Err(error) => panic!("{text}: {error}"),
    };
    assert!(
        crop.bytes().len() < object.len(),
        "{text}: the part is larger than the whole"
    );
    let (of_object, of_crop) = (run(Sample::Bytes(object)), run(Sample::CroppedJpeg(crop)));
    match (of_object, of_crop) {
        (Ok(of_object), Ok(of_crop)) => assert!(of_object == of_crop, "{text}: pixels differ"),
        (of_object, of_crop) => assert_eq!(of_object.err(), of_crop.err(), "{text}"),
    }
    true
}

/// Checks any bytes.
pub fn crop(input: &[u8]) {
    check(input);
}
