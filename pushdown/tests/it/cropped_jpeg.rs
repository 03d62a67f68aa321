//! Cropped JPEGs in place of objects: the result of a pipeline is that of the whole object, bit for bit, errors included.

use std::{fs, path::Path};

use bytes::Bytes;
use image::RgbImage;
use proptest::{prelude::*, sample::select};
use pushdown::{
    BytesKind, Context, CropPosition, CroppedJpeg, Error, ErrorKind, Kind, Limits, Pipeline, Result, Sample,
    Subsampling, engine_of,
};
use turbojpeg::{Compressor, PixelFormat, Subsamp};

use super::generate;

fn pipeline(text: &str) -> Pipeline {
    Pipeline::parse(text).unwrap()
}

fn run(pipeline: &Pipeline, value: Sample, context: &Context<'_>) -> Result<Sample> {
    pipeline.run(0..pipeline.len(), value, context)
}

/// Compares all of `pipeline` on a cropped JPEG with the same on the object. Returns whether the object is cropped.
fn is_cropped(pipeline: &Pipeline, object: &Bytes, context: &Context<'_>) -> bool {
    let Some(crop) = pipeline.crop_jpeg(object, context).unwrap() else {
        return false;
    };
    let steps = pipeline.crop_steps().unwrap();
    assert!(crop.bytes().len() < object.len());
    let kind = Kind::of_object(Some(object.len() as u64), object);
    let Kind::Bytes(kind) = kind else {
        panic!("an object")
    };
    let header = kind.header.unwrap();
    let position = crop.position();
    assert_eq!(
        (position.image_width, position.image_height),
        (header.width, header.height)
    );
    let whole = run(pipeline, Sample::Bytes(object.clone()), context);
    let value = Sample::CroppedJpeg(crop);
    assert!(pipeline.accepts(0, &value) && !pipeline.accepts(1, &value));
    assert!(run(pipeline, value.clone(), context) == whole, "{pipeline}");
    // Split anywhere after the steps that read it.
    for split in steps..pipeline.len() {
        let parts = pipeline
            .run(0..split, value.clone(), context)
            .and_then(|value| pipeline.run(split..pipeline.len(), value, context));
        assert!(parts == whole, "{pipeline} at {split}");
    }
    true
}

fn jpeg(picture: &RgbImage, subsampling: Subsamp, quality: i32, progressive: bool) -> Bytes {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let mut compressor = Compressor::new().unwrap();
    compressor.set_subsamp(subsampling).unwrap();
    compressor.set_quality(quality).unwrap();
    compressor.set_progressive(progressive).unwrap();
    let image = turbojpeg::Image {
        pixels: picture.as_raw().as_slice(),
        width,
        pitch: width * 3,
        height,
        format: PixelFormat::RGB,
    };
    compressor.compress_to_vec(image).unwrap().into()
}

/// 500 x 375 pixels, 4:2:0.
fn photo() -> Bytes {
    jpeg(&generate::picture(500, 375, 7, false), Subsamp::Sub2x2, 85, false)
}

fn side() -> impl Strategy<Value = u32> {
    prop_oneof![1_u32..20, 1_u32..200]
}

/// Pipelines that read a part of a JPEG.
fn cropping_pipeline() -> impl Strategy<Value = Pipeline> {
    let decode = prop_oneof![
        3 => Just("decode".to_owned()),
        1 => (1_u32..100).prop_map(|side| format!("decode(min_short={side})")),
        1 => (1_u32..100).prop_map(|side| format!("decode(orient=exif, min_long={side})")),
    ];
    let transform = prop_oneof![
        (0_u32..150, 0_u32..150, side(), side()).prop_map(|(x, y, w, h)| format!("crop({x}, {y}, {w}, {h})")),
        (side(), side()).prop_map(|(w, h)| format!("center_crop({w}, {h})")),
        (side(), side(), side())
            .prop_map(|(short, w, h)| format!("resize(short={short}) | center_crop({w}, {h})")),
        (side(), side(), side())
            .prop_map(|(long, w, h)| format!("resize(long={long}, filter=bicubic) | crop(3, 1, {w}, {h})")),
        (side(), side(), 0_u32..20)
            .prop_map(|(w, h, padding)| format!("random_crop({w}, {h}, padding={padding})")),
        (side(), side(), 0.01..0.5_f64)
            .prop_map(|(w, h, low)| format!("random_resized_crop({w}, {h}, scale=[{low}, 0.6])")),
    ];
    let rest = select(&[
        "",
        " | flip_h | to_float | normalize(imagenet)",
        " | resize(9, 5) | center_crop(4)",
    ]);
    (decode, transform, rest)
        .prop_map(|(decode, transform, rest)| pipeline(&format!("{decode} | {transform}{rest}")))
}

fn jpeg_object() -> impl Strategy<Value = Bytes> {
    let subsampling = select(&[
        Subsamp::None,
        Subsamp::Sub2x1,
        Subsamp::Sub2x2,
        Subsamp::Sub1x2,
        Subsamp::Sub4x1,
        Subsamp::Gray,
    ]);
    (
        1_u32..=200,
        1_u32..=200,
        any::<u64>(),
        subsampling,
        1..=100,
        any::<bool>(),
    )
        .prop_map(|(width, height, seed, subsampling, quality, progressive)| {
            jpeg(
                &generate::picture(width, height, seed, true),
                subsampling,
                quality,
                progressive,
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn pipelines_on_cropped_jpegs_have_the_results_of_the_objects(
        pipeline in cropping_pipeline(),
        object in jpeg_object(),
        seed in any::<u64>(),
        max_pixels in prop_oneof![4 => Just(Limits::default().max_pixels), 1 => 1_u64..40_000],
    ) {
        let context = Context::new(b"id").with_randomness(seed, 3);
        let context = Context { limits: Limits { max_pixels, ..Limits::default() }, ..context };
        is_cropped(&pipeline, &object, &context);
    }

    /// Whatever the pipeline and the object are.
    #[test]
    fn any_pipeline_on_a_cropped_jpeg_has_the_result_of_the_object(
        pipeline in generate::pipeline(),
        object in generate::object(),
        seed in any::<u64>(),
    ) {
        is_cropped(&pipeline, &object, &Context::new(b"id").with_randomness(seed, 3));
    }
}

/// The files that are compared with Pillow, several regions of each.
#[test]
fn fixtures_have_the_pixels_of_the_whole_files() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures");
    let files = ["images", "photos"].into_iter().flat_map(|folder| {
        fs::read_dir(fixtures.join(folder))
            .unwrap()
            .map(|file| file.unwrap().path())
    });
    let (mut found, mut cropped) = (0, 0);
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "jpg")) {
        found += 1;
        let object = Bytes::from(fs::read(&path).unwrap());
        let mut is_part = false;
        for text in [
            "decode | crop(20, 10, 16, 8)",
            "decode | crop(37, 21, 30, 22)",
            "decode(orient=exif) | crop(0, 40, 50, 3)",
            "decode | center_crop(40)",
            "decode(min_short=20) | center_crop(16, 9)",
            "decode(min_short=12) | crop(9, 2, 7, 8)",
            "decode | resize(short=32) | center_crop(20)",
            "decode | random_crop(24)",
            "decode | random_resized_crop(16) | to_float",
        ] {
            let pipeline = pipeline(text);
            for seed in 0..5 {
                let context = Context::new(path.as_os_str().as_encoded_bytes()).with_randomness(seed, 0);
                is_part |= is_cropped(&pipeline, &object, &context);
            }
        }
        cropped += u32::from(is_part);
    }
    assert!(
        found > 150 && cropped > 90,
        "{cropped} of {found} files are cropped"
    );
}

/// Real photos of the size of those in `ImageNet`.
#[test]
#[ignore = "needs the photos of `make photos`: make test-full"]
fn photos_have_the_pixels_of_the_whole_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/photos/imagenet");
    let (mut found, mut cropped) = (0, 0);
    for file in fs::read_dir(folder).expect("run `make photos`") {
        let path = file.unwrap().path();
        let object = Bytes::from(fs::read(&path).unwrap());
        for text in [
            "decode | random_resized_crop(224) | flip_h | to_float",
            "decode | resize(short=256) | center_crop(224)",
            "decode(min_short=128) | resize(short=128) | center_crop(112)",
            "decode | random_crop(224) | color_jitter(0.4, 0.4, 0.4)",
            "decode | crop(117, 53, 201, 171) | resize(64, 64)",
            "decode | random_resized_crop(96, scale=[0.05, 0.3])",
        ] {
            let pipeline = pipeline(text);
            for seed in 0..5 {
                let context = Context::new(path.as_os_str().as_encoded_bytes()).with_randomness(seed, 0);
                found += 1;
                cropped += u32::from(is_cropped(&pipeline, &object, &context));
            }
        }
    }
    assert!(found >= 6_000 && 10 * cropped > 9 * found, "{cropped} of {found}");
}

#[test]
fn only_sequences_that_decode_a_region_have_crops() {
    for (text, steps) in [
        ("decode | crop(0, 0, 8, 8)", Some(2)),
        ("decode(min_short=9) | center_crop(8) | to_float", Some(2)),
        ("decode | random_crop(8) | flip_h", Some(2)),
        ("decode | random_resized_crop(8)", Some(2)),
        ("decode | resize(short=9) | center_crop(8) | to_float", Some(3)),
        ("decode | resize(8, 8) | crop(0, 0, 4, 4)", Some(3)),
        ("decode", None),
        ("decode | resize(8, 8)", None),
        ("decode | flip_h | crop(0, 0, 8, 8)", None),
        ("decode | resize(9, 9) | random_crop(8)", None),
    ] {
        let pipeline = pipeline(text);
        assert_eq!(pipeline.crop_steps(), steps, "{text}");
        let context = Context::new(b"id").with_randomness(1, 1);
        let crop = pipeline.crop_jpeg(&photo(), &context).unwrap();
        assert_eq!(crop.is_some(), steps.is_some(), "{text}");
        let object = BytesKind {
            length: Some(100),
            header: pushdown::ImageHeader::read(&photo()),
            ..BytesKind::default()
        };
        let memory = |max_pixels| {
            let limits = Limits {
                max_pixels,
                ..Limits::default()
            };
            pipeline.crop_memory(&object, &limits)
        };
        // 512 x 384 pixels in whole blocks.
        assert_eq!(memory(500 * 375), steps.map(|_| 512 * 384 * 6 + 100));
        assert_eq!(memory(500 * 375 - 1), None, "no more pixels than are decoded");
    }
}

/// The steps that fix the region are those on which a crop depends.
#[test]
fn a_crop_depends_on_the_families_of_its_steps() {
    let engine = |text: &str| {
        let pipeline = pipeline(text);
        let steps = pipeline.crop_steps().unwrap();
        (
            engine_of(&pipeline.steps()[..steps]).unwrap().to_string(),
            pipeline.is_random(steps),
        )
    };
    assert_eq!(
        engine("decode | resize(short=9) | center_crop(8) | to_float").0,
        "decode=4 resample=4"
    );
    assert_eq!(
        engine("decode | random_resized_crop(8) | to_float | cast(f16)"),
        ("decode=4 resample=4 random=4".to_owned(), true)
    );
    assert_eq!(
        engine("decode | random_crop(8) | to_float"),
        ("decode=4 random=4".to_owned(), true)
    );
    assert!(!engine("decode | center_crop(8) | flip_h").1);
}

#[test]
fn other_steps_refuse_a_cropped_jpeg() {
    let cropping = pipeline("decode | resize(short=256) | center_crop(224) | encode(png) | decode");
    let crop = cropping.crop_jpeg(&photo(), &Context::new(b"")).unwrap().unwrap();
    let fault = |pipeline: &Pipeline, steps| {
        let error = pipeline
            .run(steps, Sample::CroppedJpeg(crop.clone()), &Context::new(b""))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidWire);
        error.to_string()
    };
    let expected = "found a cropped JPEG, expected an object: the steps to run do not decode a region of it";
    for steps in [0..0, 0..1, 0..2, 1..3, 4..5] {
        assert_eq!(fault(&cropping, steps.clone()), expected, "{steps:?}");
    }
    for text in ["decode", "decode | resize(8, 8)", "decode | flip_h"] {
        let whole = pipeline(text);
        assert_eq!(fault(&whole, 0..whole.len()), expected);
        assert!(!whole.accepts(0, &Sample::CroppedJpeg(crop.clone())));
    }
}

fn error_on_a_crop(pipeline: &Pipeline, crop: &CroppedJpeg, context: &Context<'_>) -> Error {
    run(pipeline, Sample::CroppedJpeg(crop.clone()), context).unwrap_err()
}

/// A crop for another region of the same size of image, and a false size of the whole.
#[test]
fn crops_for_other_regions_are_undecodable() {
    let cropping = pipeline("decode | crop(100, 100, 50, 50)");
    let context = Context::new(b"id").with_randomness(1, 1);
    let crop = cropping.crop_jpeg(&photo(), &context).unwrap().unwrap();
    for text in [
        "decode | crop(100, 80, 50, 50)",
        "decode | crop(100, 100, 80, 50)",
        "decode | center_crop(50)",
    ] {
        let error = error_on_a_crop(&pipeline(text), &crop, &context);
        assert_eq!(error.kind(), ErrorKind::Undecodable);
        assert!(
            error.to_string().starts_with("cropped JPEG: expected "),
            "{error}"
        );
    }
    let of_whole = |image_width, image_height| {
        let position = CropPosition {
            image_width,
            image_height,
            ..crop.position()
        };
        CroppedJpeg::new(crop.bytes().clone(), position).unwrap()
    };
    let center = pipeline("decode | center_crop(50)");
    let crop = center.crop_jpeg(&photo(), &context).unwrap().unwrap();
    let found = error_on_a_crop(&center, &of_whole(1_000, 800), &context);
    assert_eq!(found.kind(), ErrorKind::Undecodable);
    assert!(run(&center, Sample::CroppedJpeg(crop), &context).is_ok());
    // Padding is not fused: the whole image would be read.
    let padded = pipeline("decode | resize(short=40) | center_crop(50)");
    let error = error_on_a_crop(&padded, &of_whole(500, 375), &context);
    assert_eq!(
        error.to_string(),
        "cropped JPEG: expected the whole object, since the steps read all of its 500 x 375 pixels"
    );
}

/// Divisors, draws and limits are those of the whole.
#[test]
fn the_size_is_that_of_the_whole() {
    let object = photo();
    let random = Context::new(b"id").with_randomness(1, 1);
    let halved = pipeline("decode(min_short=180) | center_crop(64)");
    assert!(is_cropped(&halved, &object, &random));
    let cropping = pipeline("decode | center_crop(64)");
    let crop = cropping.crop_jpeg(&object, &random).unwrap().unwrap();
    let Kind::Bytes(kind) = Kind::from(&Sample::CroppedJpeg(crop.clone())) else {
        panic!("bytes")
    };
    assert_eq!(kind.length, Some(crop.bytes().len() as u64));
    assert_eq!(kind.header.map(|header| header.pixels()), Some(500 * 375));
    let limits = Limits {
        max_pixels: 500 * 375 - 1,
        ..Limits::default()
    };
    let limited = Context {
        limits,
        ..random.clone()
    };
    let of_object = run(&cropping, Sample::Bytes(object.clone()), &limited).unwrap_err();
    assert_eq!(error_on_a_crop(&cropping, &crop, &limited), of_object);
    assert_eq!(cropping.crop_jpeg(&object, &limited).unwrap(), None);
    let of_object = run(&halved, Sample::Bytes(object.clone()), &limited).unwrap_err();
    let crop = halved.crop_jpeg(&object, &random).unwrap().unwrap();
    assert_eq!(error_on_a_crop(&halved, &crop, &limited), of_object);
}

#[test]
fn random_regions_need_a_seed_and_an_epoch() {
    let random = pipeline("decode | random_resized_crop(32)");
    let (object, context) = (photo(), Context::new(b"id").with_randomness(1, 1));
    let crop = random.crop_jpeg(&object, &context).unwrap().unwrap();
    let lacking = Context::new(b"id");
    let error = random.crop_jpeg(&object, &lacking).unwrap_err();
    assert_eq!(
        error,
        run(&random, Sample::Bytes(object.clone()), &lacking).unwrap_err()
    );
    assert_eq!(error_on_a_crop(&random, &crop, &lacking), error);
    assert_eq!(
        random.crop_share((500, 375), Subsampling::YUV_420, &lacking),
        None
    );
    // Another epoch has another region.
    let later = Context::new(b"id").with_randomness(1, 2);
    assert_eq!(
        error_on_a_crop(&random, &crop, &later).kind(),
        ErrorKind::Undecodable
    );
    // An error of the transform is reported for the whole object.
    let too_large = pipeline("decode | random_crop(600)");
    assert_eq!(too_large.crop_jpeg(&object, &context).unwrap(), None);
}

#[test]
fn turned_photos_are_sent_whole() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    for orientation in 1..=8 {
        let object = Bytes::from(fs::read(fixtures.join(format!("jpeg_exif_{orientation}.jpg"))).unwrap());
        let cropped = |text: &str| pipeline(text).crop_jpeg(&object, &Context::new(b"")).unwrap();
        let as_stored = cropped("decode | crop(0, 0, 8, 8)").unwrap();
        assert!(!as_stored.bytes().windows(4).any(|window| window == b"Exif"));
        let upright = cropped("decode(orient=exif) | crop(0, 0, 8, 8)");
        assert_eq!(upright.is_some(), orientation == 1, "{orientation}");
    }
}

#[test]
fn other_objects_are_sent_whole() {
    let cropping = pipeline("decode | crop(0, 0, 8, 8)");
    let picture = generate::picture(100, 100, 1, true);
    for format in generate::ObjectFormat::ALL {
        let object = format.encode(&picture);
        let crop = cropping.crop_jpeg(&object, &Context::new(b"")).unwrap();
        assert_eq!(crop.is_some(), object.starts_with(b"\xff\xd8"), "{format:?}");
    }
    for object in [&b""[..], b"\xff\xd8", b"\xff\xd8\xff\xd9", b"a,b\n1,2\n"] {
        let crop = cropping
            .crop_jpeg(&Bytes::from_static(object), &Context::new(b""))
            .unwrap();
        assert_eq!(crop, None);
    }
}

/// What the planner expects, for the usual photo of ImageNet. The share of the bytes is about that of the blocks.
#[test]
fn the_share_of_blocks_is_about_half() {
    let share = |text: &str, size| {
        let share = pipeline(text).expected_crop_share(size, Subsampling::YUV_420, 4_000);
        share.unwrap()
    };
    let training = share("decode | random_resized_crop(224)", (500, 375));
    assert!((0.4..=0.48).contains(&training), "{training}");
    let evaluation = share("decode | resize(short=256) | center_crop(224)", (500, 375));
    assert!((0.5..=0.64).contains(&evaluation), "{evaluation}");
    let large = share("decode | random_resized_crop(224)", (4_000, 3_000));
    assert!(large < training, "blocks are small: {large}");
    let whole = share("decode | center_crop(500, 375)", (500, 375));
    assert!(whole > 0.999, "the whole: {whole}");
    assert_eq!(
        pipeline("decode").expected_crop_share((500, 375), Subsampling::YUV_420, 9),
        None
    );
    // One sample's own share.
    let context = Context::new(b"id").with_randomness(1, 1);
    let cropping = pipeline("decode | random_resized_crop(224)");
    let crop = cropping.crop_jpeg(&photo(), &context).unwrap().unwrap();
    let header = pushdown::JpegHeader::read(crop.bytes()).unwrap();
    let blocks = |width: u32, height: u32| f64::from(width.div_ceil(16) * height.div_ceil(16));
    let size = header.summary();
    assert_eq!(
        cropping.crop_share((500, 375), header.subsampling().unwrap(), &context),
        Some(blocks(size.width, size.height) / blocks(500, 375))
    );
}
