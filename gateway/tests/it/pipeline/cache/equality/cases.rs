//! Random pipelines over real photos, whose steps never fail.

use proptest::{
    prelude::*,
    sample::{Index, select},
};
use pushdown::Pipeline;

/// The header of each is in its first half, which the store sends before it stalls.
const PHOTOS: [&str; 4] = [
    "jpeg_large.jpg",
    "jpeg_large_progressive.jpg",
    "png_rgb.png",
    "gif_interlaced.gif",
];
const DECODES: [&str; 3] = ["decode", "decode(orient=exif)", "decode(min_short=40)"];
/// No step makes a side of less than 24 pixels, so that all steps can follow each other.
const IMAGE_STEPS: [&str; 6] = [
    "resize(40, 32)",
    "resize(short=48, filter=bicubic)",
    "center_crop(24)",
    "crop(0, 0, 24, 24)",
    "encode(png) | decode",
    "encode(jpeg, quality=80) | decode",
];
const RANDOM_STEPS: [&str; 4] = [
    "random_resized_crop(30)",
    "random_crop(24)",
    "flip_h",
    "color_jitter(0.4, contrast=0.4, saturation=0.4, hue=0.1)",
];
const ENDINGS: [&str; 4] = ["to_float", "to_tensor", "grayscale", "encode(jpeg)"];
const TENSOR_STEPS: [&str; 6] = [
    "to_float",
    "normalize(imagenet)",
    "layout(hwc)",
    "cast(f16)",
    "cast(i32)",
    "quantize(int8, scale=0.02)",
];

/// A pipeline over a photo, and what its random steps depend on.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) pipeline: Pipeline,
    /// The stage of the value that is cached first, before the last one.
    pub(super) cut: usize,
    /// The name of its file.
    pub(super) photo: &'static str,
    pub(super) seed: u64,
    pub(super) epoch: u32,
}

/// A pipeline of at least two steps. Steps that do not accept the output before them are left out.
fn pipeline() -> impl Strategy<Value = Pipeline> {
    let image_step = prop_oneof![3 => select(&IMAGE_STEPS), 2 => select(&RANDOM_STEPS)];
    let steps = (
        prop::collection::vec(image_step, 1..4),
        prop::collection::vec(select(&ENDINGS), 0..2),
        prop::collection::vec(select(&TENSOR_STEPS), 0..3),
    );
    (select(&DECODES), steps).prop_filter_map("a pipeline", |(decode, (image, ending, tensor))| {
        let steps = [image, ending, tensor].concat();
        let text = steps.iter().fold(decode.to_owned(), |text, step| {
            let longer = format!("{text} | {step}");
            if Pipeline::parse(&longer).is_ok() {
                longer
            } else {
                text
            }
        });
        Pipeline::parse(&text).ok()
    })
}

/// A case with any cut before the last stage.
pub(super) fn case() -> impl Strategy<Value = Case> {
    let randomness = (any::<u64>(), any::<u32>());
    let parts = (pipeline(), any::<Index>(), select(&PHOTOS), randomness);
    parts.prop_map(|(pipeline, cut, photo, (seed, epoch))| {
        let cut = 1 + cut.index(pipeline.len() - 1);
        Case {
            pipeline,
            cut,
            photo,
            seed,
            epoch,
        }
    })
}

/// A step with a mistake would be left out of all pipelines.
#[test]
fn every_step_is_one() {
    for step in [&IMAGE_STEPS[..], &RANDOM_STEPS, &ENDINGS].concat() {
        Pipeline::parse(&format!("decode | {step}")).expect(step);
    }
    for step in TENSOR_STEPS {
        Pipeline::parse(&format!("decode | to_tensor | {step}"))
            .or_else(|_| Pipeline::parse(&format!("decode | to_float | {step}")))
            .expect(step);
    }
}
