//! Properties of any bytes that are decoded as an image: the result is pixels or an error, the same step by step and at once
//! (law 1), with the size that the header states, and within the limits.

use bytes::Bytes;
use pushdown::{Context, ErrorKind, Kind, Limits, Pipeline, Sample};

/// Pipelines whose steps read regions of the image.
pub(crate) const PIPELINES: [&str; 8] = [
    "decode | crop(3, 5, 20, 12)",
    "decode | crop(0, 0, 9, 9)",
    "decode | center_crop(30, 20)",
    "decode(orient=exif) | crop(8, 8, 24, 16)",
    "decode(min_short=8) | crop(2, 1, 6, 6)",
    "decode | random_resized_crop(16)",
    "decode | resize(short=20) | center_crop(16)",
    "decode(min_long=16) | resize(5, 7)",
];

/// Small enough for inputs to reach them, and for excessive claims of a file to be visible in the memory of the process.
pub(crate) const LIMITS: Limits = Limits {
    max_pixels: 1 << 20,
    max_object_bytes: 1 << 20,
    max_value_bytes: 4 << 20,
    tables: super::LIMITS,
};

/// Errors that an image may cause. Any other error is a defect.
const EXPECTED_ERRORS: [ErrorKind; 3] = [ErrorKind::Undecodable, ErrorKind::Unsuitable, ErrorKind::TooLarge];

/// Checks an image of any format. The first byte of `input` selects the pipeline.
pub fn image(input: &[u8]) {
    let Some((choice, object)) = input.split_first() else {
        return;
    };
    let text = PIPELINES[usize::from(*choice) % PIPELINES.len()];
    let pipeline: Pipeline = match text.parse() {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{text}: {error}"),
    };
    let context = Context {
        limits: LIMITS,
        ..Context::new(b"object").with_randomness(7, 0)
    };
    let object = Bytes::copy_from_slice(object);
    let kinds = pipeline.kinds_for(&Kind::of_object(Some(object.len() as u64), &object));
    let mut step_by_step = Ok(Sample::Bytes(object.clone()));
    for step in 0..pipeline.len() {
        step_by_step = step_by_step.and_then(|value| pipeline.run(step..step + 1, value, &context));
        let (Ok(value), Ok(kinds)) = (&step_by_step, &kinds) else {
            continue;
        };
        assert!(
            value.bytes() <= LIMITS.max_value_bytes,
            "{text}: {} bytes",
            value.bytes()
        );
        let (expected, found) = (kinds[step + 1].fixed_shape(), Kind::from(value).fixed_shape());
        assert!(
            expected.is_none() || expected == found,
            "{text}: the header states {expected:?}, the pixels have {found:?}"
        );
    }
    let at_once = pipeline.run(0..pipeline.len(), Sample::Bytes(object), &context);
    match (at_once, step_by_step) {
        (Ok(at_once), Ok(step_by_step)) => {
            assert!(at_once == step_by_step, "{text}: pixels differ step by step");
        }
        (Err(at_once), Err(step_by_step)) => {
            assert_eq!(at_once.kind(), step_by_step.kind(), "{text}");
            assert!(EXPECTED_ERRORS.contains(&at_once.kind()), "{text}: {at_once:?}");
        }
        (at_once, step_by_step) => panic!(
            "{text}: at once {:?}, step by step {:?}",
            at_once.map(drop),
            step_by_step.map(drop)
        ),
    }
}
