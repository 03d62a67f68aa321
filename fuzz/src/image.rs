//! What holds for an object of any bytes that is decoded as an image: pixels or an error, the same step by step and at once
//! (law 1), of the size that its header says, within the limits.

use bytes::Bytes;
use pushdown::{Context, ErrorKind, Kind, Limits, Pipeline, Sample};

/// Pipelines of an image, whose steps look at parts of it.
pub(crate) const QUERIES: [&str; 8] = [
    "decode | crop(3, 5, 20, 12)",
    "decode | crop(0, 0, 9, 9)",
    "decode | center_crop(30, 20)",
    "decode(orient=exif) | crop(8, 8, 24, 16)",
    "decode(min_short=8) | crop(2, 1, 6, 6)",
    "decode | random_resized_crop(16)",
    "decode | resize(short=20) | center_crop(16)",
    "decode(min_long=16) | resize(5, 7)",
];

/// So small that inputs reach them, and that what a file claims beyond them would show in the memory of the process.
const LIMITS: Limits = Limits {
    max_pixels: 1 << 20,
    max_object_bytes: 1 << 20,
    max_value_bytes: 4 << 20,
    tables: super::LIMITS,
};

/// What may be wrong with an image: everything else is a defect.
const FAULTS: [ErrorKind; 3] = [ErrorKind::Undecodable, ErrorKind::Unsuitable, ErrorKind::TooLarge];

/// An image of any format; the first byte of `input` chooses the pipeline.
pub fn image(input: &[u8]) {
    let Some((choice, object)) = input.split_first() else {
        return;
    };
    let query = QUERIES[usize::from(*choice) % QUERIES.len()];
    let pipeline: Pipeline = match query.parse() {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{query}: {error}"),
    };
    let context = Context {
        limits: LIMITS,
        ..Context::new(b"object").with_randomness(7, 0)
    };
    let object = Bytes::copy_from_slice(object);
    let kinds = pipeline.kinds_for(&Kind::of_object(Some(object.len() as u64), &object));
    let mut by_steps = Ok(Sample::Bytes(object.clone()));
    for step in 0..pipeline.len() {
        by_steps = by_steps.and_then(|value| pipeline.run(step..step + 1, value, &context));
        let (Ok(value), Ok(kinds)) = (&by_steps, &kinds) else {
            continue;
        };
        assert!(
            value.bytes() <= LIMITS.max_value_bytes,
            "{query}: {} bytes",
            value.bytes()
        );
        let (expected, found) = (kinds[step + 1].fixed_shape(), Kind::from(value).fixed_shape());
        assert!(
            expected.is_none() || expected == found,
            "{query}: the header says {expected:?}, the pixels are {found:?}"
        );
    }
    let at_once = pipeline.run(0..pipeline.len(), Sample::Bytes(object), &context);
    match (at_once, by_steps) {
        (Ok(at_once), Ok(by_steps)) => assert!(at_once == by_steps, "{query}: other pixels step by step"),
        (Err(at_once), Err(by_steps)) => {
            assert_eq!(at_once.kind(), by_steps.kind(), "{query}");
            assert!(FAULTS.contains(&at_once.kind()), "{query}: {at_once:?}");
        }
        (at_once, by_steps) => panic!(
            "{query}: at once {:?}, step by step {:?}",
            at_once.map(drop),
            by_steps.map(drop)
        ),
    }
}
