//! Law 1: `suffix_k(prefix_k(sample)) == pipeline(sample)`, bit for bit, errors included.

use bytes::Bytes;
use proptest::prelude::*;
use pushdown::{
    Context, Error, ErrorKind, Kind, Limits, Pipeline, Sample,
    wire::{self, BatchReader, BatchWriter, CacheStatus, Compression, Form, OptionalColumns, Row, ValueType},
};

use super::generate;

/// The part of a result that must not depend on where the steps run.
fn outcome(result: Result<Sample, Error>) -> Result<Sample, ErrorKind> {
    result.map_err(|error| error.kind())
}

/// Runs the steps one by one, without fusion.
fn run_one_by_one(pipeline: &Pipeline, object: Sample, context: &Context<'_>) -> Result<Sample, Error> {
    (0..pipeline.len()).try_fold(object, |sample, step| {
        pipeline.run(step..step + 1, sample, context)
    })
}

/// Encodes `sample` as the body of an answer, in one of the offered forms, and decodes it.
fn through_a_form(sample: Sample, choice: prop::sample::Index) -> Result<Sample, Error> {
    let kind = Kind::from(&sample);
    let form = *choice.get(Form::offered(&kind));
    let encoded = wire::encode(sample, form, &kind)?;
    let header = |name: &str| {
        let found = encoded.metadata.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    };
    wire::decode(
        encoded.content_type,
        header,
        encoded.parts.concat().into(),
        &Limits::default(),
    )
}

/// Encodes `sample`, the value of stage `stage`, as a row of a batch answer, and decodes it.
fn through_a_batch(pipeline: &Pipeline, stage: usize, sample: Sample) -> Result<Option<Sample>, Error> {
    let mut writer = BatchWriter::new(
        ValueType::for_kinds([&pipeline.kinds()[stage]]),
        Compression::default(),
        &pushdown::engine_of(pipeline.steps())?,
        &pipeline.digest(),
        OptionalColumns::default(),
    )?;
    let mut stream = writer.start().to_vec();
    let row = Row {
        row: 0,
        stage: u8::try_from(stage).unwrap_or(u8::MAX),
        seconds: 0.0,
        cache: CacheStatus::Computed,
        value: Ok(sample),
        columns: Vec::new(),
        stored: None,
    };
    stream.extend(writer.rows(vec![row])?.concat());
    stream.extend(writer.finish()?);
    let mut reader = BatchReader::new(Limits::default());
    let rows = reader.push(stream.into())?;
    reader.finish()?;
    Ok(rows.into_iter().next().and_then(|row| row.value.ok()))
}

fn limits() -> impl Strategy<Value = Limits> {
    let tight = Limits {
        max_pixels: 2_000,
        max_object_bytes: 1 << 20,
        max_value_bytes: 20_000,
        ..Limits::default()
    };
    prop_oneof![5 => Just(Limits::default()), 1 => Just(tight)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3 * ProptestConfig::default().cases / 2))]

    #[test]
    fn every_split_has_the_same_result(
        pipeline in generate::pipeline(),
        object in generate::object(),
        id in "[a-z]{0,8}",
        seed in any::<u64>(),
        epoch in any::<u32>(),
        limits in limits(),
    ) {
        let object = Sample::Bytes(object);
        let context = Context { limits, ..Context::new(id.as_bytes()).with_randomness(seed, epoch) };
        let whole = outcome(pipeline.run(0..pipeline.len(), object.clone(), &context));
        for split in 0..=pipeline.len() {
            let parts = pipeline
                .run(0..split, object.clone(), &context)
                .and_then(|value| pipeline.run(split..pipeline.len(), value, &context));
            prop_assert_eq!(&outcome(parts), &whole, "split {} of {}", split, &pipeline);
        }
        prop_assert_eq!(&outcome(run_one_by_one(&pipeline, object, &context)), &whole, "one by one: {}", &pipeline);
    }

    /// Values of every stage survive encoding and decoding, in every form and as a row of a batch.
    #[test]
    fn wire_formats_preserve_values(
        pipeline in generate::pipeline(),
        object in generate::object(),
        seed in any::<u64>(),
        form in any::<prop::sample::Index>(),
    ) {
        let context = Context::new(b"id").with_randomness(seed, 1);
        let whole = outcome(pipeline.run(0..pipeline.len(), Sample::Bytes(object.clone()), &context));
        for split in 0..=pipeline.len() {
            let Ok(value) = pipeline.run(0..split, Sample::Bytes(object.clone()), &context) else { break };
            let row = through_a_batch(&pipeline, split, value.clone());
            prop_assert_eq!(row.as_ref().ok().and_then(Option::as_ref), Some(&value), "a row of {}: {:?}", &pipeline, &row);
            let parts = through_a_form(value, form)
                .and_then(|value| pipeline.run(split..pipeline.len(), value, &context));
            prop_assert_eq!(&outcome(parts), &whole, "split {} of {}", split, &pipeline);
        }
    }

    /// The kinds that a pipeline predicts are those of its values.
    #[test]
    fn values_have_the_predicted_kinds(pipeline in generate::pipeline(), object in generate::object(), seed in any::<u64>()) {
        let context = Context::new(b"id").with_randomness(seed, 0);
        let kinds = pipeline.kinds_for(&Kind::of_object(Some(object.len() as u64), &object));
        let mut sample = Sample::Bytes(object);
        for stage in 0..pipeline.len() {
            let Ok(next) = pipeline.run(stage..stage + 1, sample, &context) else { return Ok(()) };
            prop_assert!(pipeline.accepts(stage + 1, &next));
            let kinds = kinds.as_ref().map_err(|error| TestCaseError::fail(error.to_string()))?;
            let (expected, found) = (&kinds[stage + 1], Kind::from(&next));
            if let Some(shape) = expected.fixed_shape() {
                prop_assert_eq!(Some(shape), found.fixed_shape(), "stage {} of {}", stage + 1, &pipeline);
            }
            if let Some(bytes) = expected.bytes() {
                prop_assert_eq!(bytes, next.bytes());
            }
            sample = next;
        }
    }
}

/// Crops inside the image, at its edges and beyond them, with and without fusion.
#[test]
fn fused_crops_equal_separate_ones_at_the_edges() {
    let picture = generate::picture(97, 61, 5, true);
    let object = Sample::Bytes(generate::ObjectFormat::Png.encode(&picture));
    for size in [
        "64, 48", "200, 150", "97, 30", "40, 61", "97, 61", "1, 1", "3, 300",
    ] {
        for filter in ["bilinear", "bicubic", "lanczos", "nearest"] {
            for crop in [
                "crop(0, 0, 10, 10)",
                "crop(30, 20, 40, 40)",
                "center_crop(1)",
                "center_crop(33, 47)",
                "center_crop(400)",
            ] {
                let text = format!("decode | resize({size}, filter={filter}) | {crop}");
                let pipeline = Pipeline::parse(&text).expect(&text);
                let context = Context::new(b"");
                let whole = pipeline.run(0..3, object.clone(), &context).expect(&text);
                let parts = run_one_by_one(&pipeline, object.clone(), &context).expect(&text);
                assert!(whole == parts, "{text}");
            }
        }
    }
}

/// Decodes regions only, at positions that are not aligned to the blocks of a JPEG.
#[test]
fn regions_equal_those_of_the_whole_image() {
    let picture = generate::picture(211, 137, 9, false);
    for format in generate::ObjectFormat::ALL {
        let object = Sample::Bytes(format.encode(&picture));
        for (decode, divisor) in [
            ("decode", 1),
            ("decode(min_short=60)", 2),
            ("decode(min_short=30)", 4),
        ] {
            for (x, y) in (0..211).step_by(23).zip((0..137).cycle().step_by(31)) {
                let (x, y) = (x / divisor, y / divisor);
                for step in [
                    format!("crop({x}, {y}, 37, 29)"),
                    "random_resized_crop(20)".to_owned(),
                ] {
                    let text = format!("{decode} | {step}");
                    let pipeline = Pipeline::parse(&text).expect(&text);
                    let context = Context::new(b"").with_randomness(x.into(), y);
                    let whole = pipeline.run(0..2, object.clone(), &context).expect(&text);
                    let parts = run_one_by_one(&pipeline, object.clone(), &context).expect(&text);
                    assert!(whole == parts, "{text} of {format:?}");
                }
            }
        }
    }
}

/// All fixtures, broken files included.
#[test]
fn fixtures_have_the_same_results_step_by_step() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/fixtures/photos");
    let files = std::fs::read_dir(folder)
        .expect("fixtures")
        .map(|file| file.expect("a file").path());
    let objects: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension != "md"))
        .map(|file| (file.display().to_string(), std::fs::read(&file).expect("a file")))
        .collect();
    assert!(objects.len() >= 30);
    for (name, object) in objects {
        let object = Sample::Bytes(object.into());
        for text in [
            "decode | crop(33, 21, 40, 30)",
            "decode(orient=exif) | center_crop(20)",
            "decode(min_short=20) | random_resized_crop(16)",
            "decode | resize(short=40) | center_crop(24)",
        ] {
            let pipeline = Pipeline::parse(text).expect(text);
            let context = Context::new(name.as_bytes()).with_randomness(3, 0);
            let whole = outcome(pipeline.run(0..pipeline.len(), object.clone(), &context));
            let parts = outcome(run_one_by_one(&pipeline, object.clone(), &context));
            assert!(whole == parts, "{text} of {name}");
        }
    }
}

/// An intermediate value that exceeds the limits is an error, also if a fused crop keeps only a small part. The size is unknown
/// until the orientation is read.
#[test]
fn limits_apply_to_intermediate_values_of_fused_steps() {
    let object = Sample::Bytes(generate::ObjectFormat::Png.encode(&generate::picture(2, 300, 1, false)));
    let pipeline =
        Pipeline::parse("decode(orient=exif) | resize(short=26) | crop(0, 0, 1, 1)").expect("a pipeline");
    let limits = Limits {
        max_value_bytes: 20_000,
        ..Limits::default()
    };
    let context = Context {
        limits,
        ..Context::new(b"")
    };
    let whole = outcome(pipeline.run(0..3, object.clone(), &context));
    assert_eq!(whole, Err(ErrorKind::TooLarge));
    assert_eq!(outcome(run_one_by_one(&pipeline, object, &context)), whole);
}

/// JPEGs with a wrong byte or an early end at any position.
#[test]
fn broken_jpegs_have_the_same_results_step_by_step() {
    let picture = generate::picture(160, 120, 3, true);
    for format in [generate::ObjectFormat::Jpeg, generate::ObjectFormat::Jpeg420] {
        let whole = format.encode(&picture);
        for offset in (0..whole.len() - 1).step_by(97) {
            let mut broken = whole.to_vec();
            broken[offset] ^= 0x55;
            assert_same_in_parts(broken.into(), &format!("byte {offset} of {format:?}"));
            assert_same_in_parts(whole.slice(..offset), &format!("{offset} bytes of {format:?}"));
        }
    }
}

/// Markers in the data that make libjpeg fail or that end the data, after the last row that is read.
#[test]
fn jpegs_with_markers_in_their_data_have_the_same_results() {
    let picture = generate::picture(160, 120, 3, true);
    for format in [generate::ObjectFormat::Jpeg, generate::ObjectFormat::Jpeg420] {
        let whole = format.encode(&picture);
        for offset in (700..whole.len() - 4).step_by(419) {
            for marker in [
                0x01, 0x02, 0xc0, 0xc4, 0xc9, 0xd3, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xe1, 0xfe,
            ] {
                let mut broken = whole.to_vec();
                broken[offset..offset + 2].copy_from_slice(&[0xff, marker]);
                assert_same_in_parts(
                    broken.into(),
                    &format!("FF{marker:02X} at {offset} of {format:?}"),
                );
            }
        }
    }
}

fn assert_same_in_parts(object: Bytes, what: &str) {
    let object = Sample::Bytes(object);
    for text in ["decode | crop(70, 50, 20, 20)", "decode | crop(0, 0, 160, 9)"] {
        let pipeline = Pipeline::parse(text).expect(text);
        let context = Context::new(b"");
        let fused = outcome(pipeline.run(0..2, object.clone(), &context));
        let parts = outcome(run_one_by_one(&pipeline, object.clone(), &context));
        assert!(fused == parts, "{text} of {what}");
    }
}
