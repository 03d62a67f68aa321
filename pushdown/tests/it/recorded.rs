//! Requests and answers of earlier versions (`scripts/record_answers.py`): this version parses the requests and reads the answers.

use std::{collections::BTreeMap, fs, path::PathBuf};

use pushdown::{
    Context, Limits, Pipeline, Sample, available_engine,
    part::{Label, PartRow, PartWriter},
    pipeline::NoModels,
    wire::{self, BatchReader, BatchRequest, Row, TableDecoder},
};

/// The batches with a row per sample.
const BATCHES: [&str; 5] = ["fixed", "random", "quantized", "bytes", "smallest"];

/// The folders of recordings: of version 0.1.0, of requests that state their store, of requests for cropped JPEGs, of requests that
/// state the demand of their reader, of requests for no values, and of requests for parts of data sets.
const VERSION_0_1_0: &str = "v0_1_0";
const STORES: &str = "stores";
const CROPS: &str = "crops";
const DEMAND: &str = "demand";
const DELIVER: &str = "deliver";
const PARTS: &str = "parts";

fn recorded(folder: &str, name: &str) -> Vec<u8> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    fs::read(golden.join(folder).join(name)).expect(name)
}

fn request(folder: &str, name: &str) -> BatchRequest {
    let json = recorded(folder, &format!("{name}.json"));
    BatchRequest::parse(&json, 4096, &NoModels).expect(name)
}

/// The object of a sample, from its path; `None` for one that did not exist.
fn object(path: &str) -> Option<Sample> {
    let file = match path.strip_prefix("/photos").unwrap_or(path) {
        "/a.jpg" => "photos/jpeg_420.jpg",
        "/b.png" => "photos/png_rgb.png",
        _ => return None,
    };
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures");
    Some(Sample::Bytes(fs::read(fixtures.join(file)).expect(file).into()))
}

/// Checks a value of the stage `stage` against what this version computes, if the engine that computed it is compatible.
fn check_value(
    pipeline: &Pipeline,
    engine: &str,
    stage: usize,
    path: &str,
    context: &Context<'_>,
    value: &Sample,
) {
    assert!(pipeline.accepts(stage, value), "{path}: stage {stage}");
    let engine = engine.parse().expect("an engine");
    let object = object(path).expect("an object");
    if let Sample::CroppedJpeg(_) = value {
        let steps = pipeline.crop_steps().expect("steps that crop");
        if available_engine(&pipeline.steps()[..steps]).is_compatible_with(&engine) {
            let run = |sample: Sample| pipeline.run(0..pipeline.len(), sample, context);
            assert_eq!(run(value.clone()), run(object), "{path}: {pipeline}");
        }
        return;
    }
    if available_engine(&pipeline.steps()[..stage]).is_compatible_with(&engine) {
        let expected = pipeline.run(0..stage, object, context).expect("a value");
        assert_eq!(*value, expected, "{path}: stage {stage} of {pipeline}");
    }
}

/// Checks the rows of a recorded batch, and returns the values.
fn check_rows(folder: &str, name: &str, expected_engine: &str) -> Vec<Option<Sample>> {
    let request = request(folder, name);
    let mut reader = BatchReader::new(Limits::default());
    let rows = reader
        .push(recorded(folder, &format!("{name}.arrow")).into())
        .expect(name);
    let engine = reader.engine().expect("an engine").to_owned();
    assert_eq!(engine, expected_engine);
    reader.finish().expect(name);
    assert_eq!(rows.len(), request.samples.len(), "{name}");
    let mut values = vec![None; rows.len()];
    for Row {
        row, stage, value, ..
    } in rows
    {
        let path = &request.samples[row as usize].path;
        match value {
            Ok(value) => {
                let id = wire::sample_id(request.store.as_ref(), path, None);
                let context = Context {
                    seed: request.seed,
                    epoch: request.epoch,
                    ..Context::new(&id)
                };
                check_value(&request.pipeline, &engine, stage.into(), path, &context, &value);
                values[row as usize] = Some(value);
            }
            Err(error) => assert_eq!((error.code.as_str(), object(path)), ("NoSuchKey", None)),
        }
    }
    values
}

#[test]
fn rows_of_recorded_batches_are_read() {
    for name in BATCHES {
        check_rows(VERSION_0_1_0, name, "4");
    }
}

/// Where the bucket is named changes no value.
#[test]
fn rows_of_recorded_batches_for_a_stated_store_are_read() {
    for (name, engine) in [
        ("fixed", "decode=4 resample=4"),
        ("random", "decode=4 resample=4 tensor=4 random=4"),
    ] {
        let [path, host] =
            ["path", "virtual"].map(|style| check_rows(STORES, &format!("{style}-{name}"), engine));
        assert_eq!(path, host, "{name}");
        assert_eq!(path.iter().flatten().count(), 2, "{name}");
    }
}

/// The first sample is a photo that was cropped, and the second one has no such form.
#[test]
fn recorded_cropped_jpegs_have_the_values_of_their_objects() {
    for (name, engine) in [
        ("fixed", "decode=4 resample=4 tensor=4"),
        ("random", "decode=4 resample=4 random=4"),
    ] {
        let values = check_rows(CROPS, name, engine);
        assert!(
            matches!(
                values[..],
                [Some(Sample::CroppedJpeg(_)), Some(Sample::Bytes(_)), None]
            ),
            "{name}: {values:?}"
        );
        let request = request(CROPS, name);
        let forms = request.samples.iter().map(|sample| sample.form);
        let cropped = Some(wire::ObjectForm::CroppedJpeg);
        assert!(forms.eq([cropped, cropped, None]), "{name}");
    }
}

/// The values are those of the same request without a demand.
#[test]
fn the_demand_of_a_recorded_request_has_its_meaning() {
    let expected = wire::Demand {
        reader: "trainer-0".to_owned(),
        cores: 3.2,
    };
    assert_eq!(request(DEMAND, "fixed").demand, Some(expected));
    assert_eq!(request(VERSION_0_1_0, "fixed").demand, None);
    let values = check_rows(DEMAND, "fixed", "decode=4 resample=4");
    assert_eq!(values, check_rows(VERSION_0_1_0, "fixed", "4"));
    assert_eq!(values.iter().flatten().count(), 2);
}

/// Two values are stored, and the third object does not exist.
#[test]
fn a_recorded_answer_without_values_says_what_is_stored() {
    let [request, earlier] = [DELIVER, VERSION_0_1_0].map(|folder| request(folder, "fixed"));
    let pin = Some(wire::Pin { keep_seconds: 86_400 });
    assert_eq!((request.deliver, request.pin), (false, pin));
    let answer = recorded(DELIVER, "fixed.arrow");
    let mut reader = BatchReader::without_values(Limits::default());
    let rows = reader.push(answer.clone().into()).expect("rows");
    reader.finish().expect("a whole stream");
    let stored: Vec<_> = rows.iter().map(|row| (row.stage, row.stored)).collect();
    assert_eq!(stored, [(1, Some(true)), (2, Some(true)), (0, None)]);
    let error = rows[2].value.as_ref().expect_err("no object");
    assert_eq!(error.code, "NoSuchKey");
    // A reader that asked for values does not take it for an answer.
    let refused = BatchReader::new(Limits::default()).push(answer.into());
    assert!(refused.is_err());
    // Requests of earlier readers have all values delivered.
    assert_eq!((earlier.deliver, earlier.pin), (true, None));
}

#[test]
fn recorded_requests_for_parts_and_their_events_are_read() {
    for (name, path) in [("trial", None), ("part", Some("/photos/sets/part-00000.tar"))] {
        let request = request(PARTS, name);
        let part = request.part.as_ref().expect("a part");
        assert_eq!(part.target.as_ref().map(|target| target.path.as_str()), path);
        assert_eq!(part.labels, [0, 1].map(Label::Int));
        let events = String::from_utf8(recorded(PARTS, &format!("{name}.ndjson"))).expect("text");
        let events = events.lines().map(serde_json::from_str::<wire::PartEvent>);
        let events: Vec<_> = events.collect::<Result<_, _>>().expect("events");
        assert_eq!(events.first(), Some(&wire::PartEvent::Progress { samples: 0 }));
        let Some(wire::PartEvent::Written(written)) = events.last() else {
            panic!("{name}: {events:?}");
        };
        assert_eq!(
            (written.samples, written.bytes, written.errors.len()),
            (2, 5120, 0)
        );
        let engine = part
            .engine
            .as_ref()
            .expect("an engine")
            .parse()
            .expect("an engine");
        if available_engine(request.pipeline.steps()).is_compatible_with(&engine) {
            assert!(part_of(&request) == recorded(PARTS, "part.tar"), "{name}");
        }
    }
    // Requests of earlier readers ask for rows.
    assert_eq!(request(DELIVER, "fixed").part, None);
}

/// The part of a request as this version makes it.
fn part_of(request: &BatchRequest) -> Vec<u8> {
    let part = request.part.as_ref().expect("a part");
    let spec = request.part_spec().expect("a spec").expect("a part");
    let mut writer = PartWriter::new(spec, ["a.jpg", "b.png"]).expect("a writer");
    for (index, sample) in request.samples.iter().enumerate() {
        let object = object(&sample.path).expect("an object");
        let steps = 0..request.pipeline.len();
        let value = request.pipeline.run(steps, object, &Context::new(b""));
        let row = PartRow {
            index,
            label: part.labels.get(index),
            columns: Vec::new(),
            value: &value.expect("a value"),
        };
        writer.push(&row).expect("a row");
    }
    writer.finish(&[]).expect("a part")
}

#[test]
fn the_store_of_recorded_requests_has_its_meaning() {
    for (style, bucket) in [("path", None), ("virtual", Some("photos"))] {
        for name in ["fixed", "random", "table"] {
            let request = request(STORES, &format!("{style}-{name}"));
            let store = request.store.as_ref().expect("a store");
            assert_eq!(store.bucket(), bucket, "{style}");
            assert_eq!(
                store.url().host().name().map(|host| host.ends_with("localhost")),
                Some(true)
            );
            let first = &request.samples[0].path;
            let key = first.rsplit('/').next().expect("a key");
            let id = wire::sample_id(request.store.as_ref(), first, None);
            assert_eq!(
                id,
                wire::sample_id(None, &format!("/photos/{key}"), None),
                "{style}"
            );
            // A GET has the same store in its header.
            let header = String::from_utf8(recorded(STORES, &format!("{style}-get.store"))).expect("text");
            assert_eq!(
                header.trim_end().parse::<wire::StoreEndpoint>().as_ref(),
                Ok(store)
            );
        }
    }
}

#[test]
fn the_fields_of_recorded_requests_have_their_meaning() {
    use wire::{Compression, OnError, Order, Split};
    let fixed = request(VERSION_0_1_0, "fixed");
    assert_eq!(
        (fixed.split, fixed.samples[0].split),
        (Split::Full, Some(Split::At(1)))
    );
    assert_eq!((fixed.on_error, fixed.order), (OnError::Row, Order::Request));
    assert_eq!(request(VERSION_0_1_0, "quantized").on_error, OnError::Fail);
    let random = request(VERSION_0_1_0, "random");
    assert_eq!(
        (random.seed, random.epoch, random.order),
        (Some(7), Some(2), Order::Any)
    );
    assert_eq!(random.compression, Compression::Lz4);
    assert_eq!(request(VERSION_0_1_0, "bytes").samples[0].max_bytes, Some(50));
    assert_eq!(request(VERSION_0_1_0, "smallest").split, Split::Smallest);
    assert!(request(VERSION_0_1_0, "table").table.is_some());
}

#[test]
fn recorded_tables_of_several_objects_are_read() {
    for (folder, name) in [
        (VERSION_0_1_0, "table"),
        (STORES, "path-table"),
        (STORES, "virtual-table"),
    ] {
        let mut decoder = TableDecoder::new();
        let batches = decoder
            .push(recorded(folder, &format!("{name}.arrow")).into())
            .expect("rows");
        let schema = decoder.finish().expect("a whole stream");
        assert_eq!(schema.field(0).name(), "key");
        assert_eq!(
            batches
                .iter()
                .map(arrow_array::RecordBatch::num_rows)
                .sum::<usize>(),
            6
        );
    }
}

#[test]
fn recorded_gets_are_read() {
    let to_float = "decode | resize(8, 6) | to_float";
    for (folder, name, suffix, split, text) in [
        (VERSION_0_1_0, "get", "npy", 2, to_float),
        (STORES, "path-get", "npy", 2, to_float),
        (STORES, "virtual-get", "npy", 2, to_float),
        (CROPS, "get", "jpg", 0, "decode | crop(8, 8, 16, 16) | to_float"),
    ] {
        let headers = String::from_utf8(recorded(folder, &format!("{name}.headers"))).expect("text");
        let headers: BTreeMap<&str, &str> =
            headers.lines().filter_map(|line| line.split_once(": ")).collect();
        let header = |name: &str| headers.get(name).copied();
        let body = recorded(folder, &format!("{name}.{suffix}")).into();
        let content_type = header("content-type").expect("a content type");
        let value = wire::decode(content_type, header, body, &Limits::default()).expect("a value");
        let stage = header(wire::header::STAGE).and_then(|stage| stage.parse().ok());
        assert_eq!(stage, Some(split));
        let pipeline = Pipeline::parse(text).expect("a pipeline");
        let engine = header(wire::header::ENGINE).expect("an engine");
        check_value(
            &pipeline,
            engine,
            split,
            "/photos/a.jpg",
            &Context::new(b""),
            &value,
        );
    }
}
