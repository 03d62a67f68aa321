use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{BytesKind, DType, ErrorKind, Image, ImageHeader, MediaType};

fn pipeline(text: &str) -> Pipeline {
    Pipeline::parse(text).expect(text)
}

/// An object of 50,000 bytes whose header says `width` x `height`.
fn object(media: MediaType, width: u32, height: u32, scratch_bytes_per_pixel: u8) -> Kind {
    let header = ImageHeader {
        media,
        width,
        height,
        orientation: Some(1),
        scratch_bytes_per_pixel,
        is_scalable: media == MediaType::Jpeg,
    };
    Kind::Bytes(BytesKind {
        length: Some(50_000),
        media: Some(media),
        header: Some(header),
    })
}

fn image(width: u32, height: u32) -> Sample {
    let pixels = vec![7; width as usize * height as usize * 3];
    Sample::Image(Image::new(width, height, pixels).expect("sizes agree"))
}

#[test]
fn kinds_of_a_pipeline() {
    let kinds = |text: &str| {
        pipeline(text)
            .kinds()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" > ")
    };
    assert_eq!(
        kinds("decode | resize(short=256) | center_crop(224, 100) | to_float | layout(hwc) | cast(f16)"),
        "Bytes > Image(?x?x3 u8) > Image(?x?x3 u8) > Image(100x224x3 u8) > Tensor(3x100x224 f32, chw) > \
         Tensor(100x224x3 f32, hwc) > Tensor(100x224x3 f16, hwc)"
    );
    assert_eq!(
        kinds("decode | resize(8, 4) | encode(png) | decode | to_tensor"),
        "Bytes > Image(?x?x3 u8) > Image(4x8x3 u8) > Bytes(png) > Image(4x8x3 u8) > Tensor(3x4x8 u8, chw)"
    );
}

#[test]
fn kinds_for_an_object() {
    let sizes = |text: &str, kind: Kind| {
        pipeline(text)
            .kinds_for(&kind)
            .expect("kinds fit")
            .iter()
            .map(Kind::bytes)
            .collect::<Vec<_>>()
    };
    let photo = || object(MediaType::Jpeg, 500, 375, 0);
    assert_eq!(
        sizes("decode | resize(short=256)", photo()),
        [Some(50_000), Some(562_500), Some(341 * 256 * 3)]
    );
    assert_eq!(
        sizes("decode(min_short=100)", photo()),
        [Some(50_000), Some(250 * 188 * 3)]
    );
    assert_eq!(
        sizes("decode(min_short=10)", photo()),
        [Some(50_000), Some(63 * 47 * 3)]
    );
    assert_eq!(
        sizes("decode(min_short=10)", object(MediaType::Png, 500, 375, 7)),
        [Some(50_000), Some(562_500)]
    );
    assert_eq!(
        sizes("decode | encode(jpeg)", photo()),
        [Some(50_000), Some(562_500), None]
    );
}

#[test]
fn smallest_stages() {
    let smallest = |text: &str, kind: &Kind| match kind {
        Kind::Bytes(bytes) => pipeline(text).smallest_stage(bytes),
        other => panic!("{other} is not an object"),
    };
    let small = object(MediaType::Jpeg, 500, 375, 0);
    let large = Kind::Bytes(BytesKind {
        length: Some(4_000_000),
        ..match object(MediaType::Jpeg, 4000, 3000, 0) {
            Kind::Bytes(bytes) => bytes,
            other => panic!("{other} is not an object"),
        }
    });
    let text = "decode | resize(short=256) | center_crop(224) | to_float | normalize(imagenet)";
    assert_eq!(
        smallest(text, &small),
        0,
        "150,528 bytes are more than the object has"
    );
    assert_eq!(smallest(text, &large), 3);
    assert_eq!(
        smallest("decode | center_crop(64) | to_tensor", &small),
        3,
        "the last of equals"
    );
    assert_eq!(
        smallest("decode | resize(9, 9) | encode(png)", &small),
        2,
        "an encoded size is unknown"
    );
    assert_eq!(smallest(text, &Kind::object()), 0, "the object is unknown");
    let unknown = Kind::Bytes(BytesKind {
        length: Some(200_000),
        ..BytesKind::default()
    });
    assert_eq!(
        smallest(text, &unknown),
        3,
        "the size of the crop does not depend on the object"
    );
}

#[test]
fn peak_memory_of_pipelines() {
    let peak = |text: &str, kind: &Kind| {
        let pipeline = pipeline(text);
        pipeline.peak_memory(0..pipeline.len(), kind)
    };
    let progressive = object(MediaType::Jpeg, 1000, 500, 6);
    assert_eq!(
        peak("decode | to_float", &progressive),
        Some(PeakMemory {
            working_bytes: 7_500_000,
            output_bytes: 6_000_000
        }),
        "the image and its floats are larger than the image and the coefficients of the decoder"
    );
    assert_eq!(
        peak("decode", &progressive),
        Some(PeakMemory {
            working_bytes: 4_500_000,
            output_bytes: 1_500_000
        })
    );
    assert_eq!(peak("decode", &Kind::object()), None);
    let encoded = peak("decode | encode(png)", &progressive).expect("bounded by the input");
    assert_eq!(encoded.output_bytes, 1_500_000);
    // A header may contain any number: no sum overflows.
    let hostile = object(MediaType::Png, u32::MAX, u32::MAX, u8::MAX);
    for text in [
        "decode",
        "decode(orient=exif) | resize(short=65535) | to_float",
        "decode | random_resized_crop(8)",
        "decode | encode(webp)",
    ] {
        let pipeline = pipeline(text);
        let _peak = pipeline.peak_memory(0..pipeline.len(), &hostile);
        let _stages = pipeline.kinds_for(&hostile);
        assert!(
            pipeline
                .check(0..pipeline.len(), &hostile, &Limits::default())
                .is_err()
        );
    }
}

#[test]
fn values_past_the_limits_are_errors() {
    let limits = Limits {
        max_pixels: 100,
        max_value_bytes: 400,
        ..Limits::default()
    };
    let context = Context {
        limits,
        ..Context::new(b"")
    };
    let kind = |text: &str, sample: Sample| {
        pipeline(text)
            .run(1..2, sample, &context)
            .map_err(|error| error.kind())
    };
    assert_eq!(
        kind("decode | resize(11, 10)", image(1, 1)),
        Err(ErrorKind::TooLarge)
    );
    assert_eq!(
        kind("decode | center_crop(11, 10)", image(1, 1)),
        Err(ErrorKind::TooLarge)
    );
    assert!(kind("decode | resize(10, 10)", image(1, 1)).is_ok());
    assert_eq!(kind("decode | to_float", image(10, 10)), Err(ErrorKind::TooLarge));
    assert!(kind("decode | to_tensor", image(10, 10)).is_ok());
    let huge = pipeline("decode | resize(65535, 65535)")
        .run(1..2, image(1, 1), &Context::new(b""))
        .expect_err("too large");
    assert_eq!(
        huge.to_string(),
        "the image from `resize` is too large: expected at most 100000000 pixels, found 65535 x 65535"
    );
}

#[test]
fn random_steps_need_seed_and_epoch() {
    let flip = pipeline("decode | flip_h | flip_h(seed=7)");
    let run = |step: usize, seed, epoch| {
        let context = Context {
            seed,
            epoch,
            ..Context::new(b"id")
        };
        flip.run(step..step + 1, image(2, 2), &context)
            .map_err(|error| error.to_string())
    };
    assert!(run(1, Some(1), Some(0)).is_ok());
    assert!(run(2, None, Some(0)).is_ok(), "the seed argument is enough");
    assert_eq!(
        run(1, None, Some(0)),
        Err(
            "at 10: `flip_h` is random and needs a seed: set `seed=` of the step or the seed of the request"
                .to_owned()
        )
    );
    assert_eq!(
        run(2, Some(1), None),
        Err("at 19: `flip_h` is random and needs an epoch: set the epoch of the request".to_owned())
    );
    assert!(
        flip.check_randomness(1, None, None).is_ok(),
        "decode is not random"
    );
    assert!(!flip.is_random(1));
    assert!(flip.is_random(2));
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    let pipeline = pipeline("decode | resize(short=8) | center_crop(4) | to_float | normalize(imagenet)");
    let context = Context::new(b"");
    let foreign = Sample::Bytes(bytes::Bytes::from_static(b"abc"));
    for stage in 1..5 {
        assert_eq!(
            pipeline
                .run(stage..5, foreign.clone(), &context)
                .expect_err("no image")
                .kind(),
            ErrorKind::Unsuitable,
            "stage {stage}"
        );
    }
    let (backwards, beyond) = (Range { start: 3, end: 2 }, 2..6);
    assert_eq!(
        pipeline
            .run(backwards, image(2, 2), &context)
            .expect_err("backwards")
            .kind(),
        ErrorKind::InvalidWire
    );
    assert_eq!(
        pipeline
            .run(beyond, image(2, 2), &context)
            .expect_err("beyond")
            .kind(),
        ErrorKind::InvalidWire
    );
    assert_eq!(
        pipeline.run(2..2, image(2, 2), &context).expect("nothing to do"),
        image(2, 2)
    );
}

#[test]
fn cancellation_ends_the_run_before_the_next_step() {
    let pipeline = pipeline("decode | resize(8, 8) | resize(9, 9) | resize(7, 7)");
    for allowed_steps in 0..3 {
        let started_steps = AtomicUsize::new(0);
        let is_cancelled = || started_steps.fetch_add(1, Ordering::Relaxed) == allowed_steps;
        let context = Context {
            cancellation: crate::Cancellation::when(&is_cancelled),
            ..Context::new(b"")
        };
        let error = pipeline.run(1..4, image(9, 9), &context).expect_err("cancelled");
        assert_eq!(
            error.to_string(),
            "cancelled: the caller no longer waits for the result"
        );
        assert_eq!(
            started_steps.into_inner(),
            allowed_steps + 1,
            "no step runs after that"
        );
    }
}

#[test]
fn fused_steps_are_timed_as_one() {
    let pipeline =
        pipeline("decode | resize(short=8) | center_crop(4) | to_float | normalize(imagenet) | cast(f16)");
    let mut second = 0;
    let (value, groups) = pipeline
        .run_timed(1..6, image(9, 9), &Context::new(b""), || {
            second += 1;
            Duration::from_secs(second * second)
        })
        .unwrap();
    let timed = |steps, seconds| StepTiming {
        steps,
        time: Duration::from_secs(seconds),
    };
    assert_eq!(groups, [timed(1..3, 3), timed(3..5, 7), timed(5..6, 11)]);
    match value {
        Sample::Tensor(tensor) => {
            assert_eq!((tensor.dtype(), tensor.shape()), (DType::F16, &[3, 4, 4][..]));
        }
        other => panic!("expected a tensor, found {other:?}"),
    }
}
