//! Requests and answers of earlier versions (`scripts/record_answers.py`): this version parses the requests and reads the answers.

use std::{collections::BTreeMap, fs, path::PathBuf};

use pushdown::{
    Context, Limits, Pipeline, Sample, available_engine,
    pipeline::NoModels,
    wire::{self, BatchReader, BatchRequest, Row, TableDecoder},
};

/// The batches with a row per sample.
const BATCHES: [&str; 5] = ["fixed", "random", "quantized", "bytes", "smallest"];

fn recorded(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v0_1_0");
    fs::read(folder.join(name)).expect(name)
}

fn request(name: &str) -> BatchRequest {
    let json = recorded(&format!("{name}.json"));
    BatchRequest::parse(&json, 4096, &NoModels).expect(name)
}

/// The object of a sample, from its path; `None` for one that did not exist.
fn object(path: &str) -> Option<Sample> {
    let file = match path {
        "/photos/a.jpg" => "photos/jpeg_420.jpg",
        "/photos/b.png" => "photos/png_rgb.png",
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
    if available_engine(&pipeline.steps()[..stage]).is_compatible_with(&engine) {
        let object = object(path).expect("an object");
        let expected = pipeline.run(0..stage, object, context).expect("a value");
        assert_eq!(*value, expected, "{path}: stage {stage} of {pipeline}");
    }
}

#[test]
fn rows_of_recorded_batches_are_read() {
    for name in BATCHES {
        let request = request(name);
        let mut reader = BatchReader::new(Limits::default());
        let rows = reader
            .push(recorded(&format!("{name}.arrow")).into())
            .expect(name);
        let engine = reader.engine().expect("an engine").to_owned();
        assert_eq!(engine, "4");
        reader.finish().expect(name);
        assert_eq!(rows.len(), request.samples.len(), "{name}");
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
                }
                Err(error) => assert_eq!((error.code.as_str(), object(path)), ("NoSuchKey", None)),
            }
        }
    }
}

#[test]
fn the_fields_of_recorded_requests_have_their_meaning() {
    use wire::{Compression, OnError, Order, Split};
    let fixed = request("fixed");
    assert_eq!(
        (fixed.split, fixed.samples[0].split),
        (Split::Full, Some(Split::At(1)))
    );
    assert_eq!((fixed.on_error, fixed.order), (OnError::Row, Order::Request));
    assert_eq!(request("quantized").on_error, OnError::Fail);
    let random = request("random");
    assert_eq!(
        (random.seed, random.epoch, random.order),
        (Some(7), Some(2), Order::Any)
    );
    assert_eq!(random.compression, Compression::Lz4);
    assert_eq!(request("bytes").samples[0].max_bytes, Some(50));
    assert_eq!(request("smallest").split, Split::Smallest);
    assert!(request("table").table.is_some());
}

#[test]
fn a_recorded_table_of_several_objects_is_read() {
    let mut decoder = TableDecoder::new();
    let batches = decoder.push(recorded("table.arrow").into()).expect("rows");
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

#[test]
fn a_recorded_get_is_read() {
    let headers = String::from_utf8(recorded("get.headers")).expect("text");
    let headers: BTreeMap<&str, &str> = headers.lines().filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| headers.get(name).copied();
    let body = recorded("get.npy").into();
    let content_type = header("content-type").expect("a content type");
    let value = wire::decode(content_type, header, body, &Limits::default()).expect("a value");
    let stage = header(wire::header::STAGE).and_then(|stage| stage.parse().ok());
    assert_eq!(stage, Some(2));
    let pipeline = Pipeline::parse("decode | resize(8, 6) | to_float").expect("a pipeline");
    let engine = header(wire::header::ENGINE).expect("an engine");
    check_value(&pipeline, engine, 2, "/photos/a.jpg", &Context::new(b""), &value);
}
