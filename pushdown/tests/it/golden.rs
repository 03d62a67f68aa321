//! Comparison with values of Pillow, PyTorch and torchvision (`scripts/golden.py`) for small real photos.

use std::{collections::BTreeSet, fs, path::Path};

use half::{bf16, f16};
use pushdown::{Context, DType, ErrorKind, Pipeline, Sample};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    adjust: Vec<Adjust>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: String,
    pipeline: String,
    check: Check,
}

/// The expected result of a case.
#[derive(Deserialize)]
#[serde(untagged)]
enum Check {
    Digest { sha256: String, shape: Vec<usize> },
    Tensor { tensor: String, max_abs: f64 },
    Error { error: String },
}

/// One adjustment of `color_jitter` with a fixed factor.
#[derive(Deserialize)]
struct Adjust {
    input: String,
    operation: String,
    factor: f64,
    tensor: String,
    max_abs: f64,
}

impl From<Adjust> for Case {
    fn from(
        Adjust {
            input,
            operation,
            factor,
            tensor,
            max_abs,
        }: Adjust,
    ) -> Self {
        // A range of one number always draws that number.
        let pipeline = format!("decode | color_jitter({operation}=[{factor}, {factor}])");
        Self {
            name: format!("{input}: {pipeline}"),
            input,
            pipeline,
            check: Check::Tensor { tensor, max_abs },
        }
    }
}

/// A value in the form that is compared.
struct ComparedValue {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

#[test]
fn every_case_agrees_with_the_references() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden: Golden = serde_json::from_slice(&fs::read(folder.join("cases.json")).unwrap()).unwrap();
    let expected = fs::read(folder.join("expected.safetensors")).unwrap();
    let expected = SafeTensors::deserialize(&expected).unwrap();

    let cases: Vec<Case> = golden
        .cases
        .into_iter()
        .chain(golden.adjust.into_iter().map(Case::from))
        .collect();
    assert!(cases.len() > 100, "only {} cases", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            check(case, &expected)
                .err()
                .map(|fault| format!("{}\n    {fault}", case.name))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases differ:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// A fixture without a case would test nothing.
#[test]
fn every_fixture_has_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden: Golden =
        serde_json::from_slice(&fs::read(root.join("tests/golden/cases.json")).unwrap()).unwrap();
    let inputs: BTreeSet<String> = golden.cases.into_iter().map(|case| case.input).collect();
    let files = fs::read_dir(root.join("../testkit/fixtures/photos")).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(files, inputs);
}

fn check(case: &Case, expected: &SafeTensors<'_>) -> Result<(), String> {
    let found = run(case);
    match &case.check {
        Check::Error { error } => match found {
            Ok(value) => Err(format!("returned {:?}, expected {error}", value.shape)),
            Err(fault) if *error == "undecodable" && fault.kind() == ErrorKind::Undecodable => Ok(()),
            Err(fault) => Err(format!("{fault}, expected {error}")),
        },
        Check::Digest { sha256, shape } => {
            let found = found.map_err(|fault| fault.to_string())?;
            if found.shape != *shape {
                return Err(format!("shape {:?}, expected {shape:?}", found.shape));
            }
            let digest = hex::encode(Sha256::digest(&found.bytes));
            if digest == *sha256 {
                Ok(())
            } else {
                Err("other bytes (only their digest is stored)".to_owned())
            }
        }
        Check::Tensor { tensor, max_abs } => {
            let found = found.map_err(|fault| fault.to_string())?;
            compare(
                &found,
                &expected.tensor(tensor).map_err(|fault| fault.to_string())?,
                *max_abs,
            )
        }
    }
}

fn run(case: &Case) -> Result<ComparedValue, pushdown::Error> {
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    let object = fs::read(photos.join(&case.input)).unwrap();
    let pipeline = Pipeline::parse(&case.pipeline)?;
    let context = Context::new(b"id").with_randomness(0, 0);
    let sample = pipeline.run(0..pipeline.len(), Sample::Bytes(object.into()), &context)?;
    Ok(match sample {
        Sample::Table(table) => panic!("expected no table, found {}", table.schema()),
        Sample::CroppedJpeg(_) => panic!("no step computes a cropped JPEG"),
        Sample::Bytes(bytes) => ComparedValue {
            dtype: Dtype::U8,
            shape: vec![bytes.len()],
            bytes: bytes.to_vec(),
        },
        Sample::Image(image) => {
            let shape = vec![image.height() as usize, image.width() as usize, 3];
            ComparedValue {
                dtype: Dtype::U8,
                shape,
                bytes: image.into_pixels(),
            }
        }
        Sample::Tensor(tensor) => ComparedValue {
            dtype: safetensors_dtype(tensor.dtype()),
            shape: tensor.shape().to_vec(),
            bytes: tensor.data().as_slice().to_vec(),
        },
    })
}

fn safetensors_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
    }
}

fn compare(found: &ComparedValue, expected: &TensorView<'_>, max_abs: f64) -> Result<(), String> {
    if (found.dtype, found.shape.as_slice()) != (expected.dtype(), expected.shape()) {
        return Err(format!(
            "{:?} {:?}, expected {:?} {:?}",
            found.dtype,
            found.shape,
            expected.dtype(),
            expected.shape()
        ));
    }
    if found.bytes == expected.data() {
        return Ok(());
    }
    let pairs = numbers(found.dtype, &found.bytes)
        .into_iter()
        .zip(numbers(expected.dtype(), expected.data()));
    let differences: Vec<f64> = pairs.map(|(found, expected)| (found - expected).abs()).collect();
    // A NaN counts as the largest difference.
    let worst = differences.iter().copied().fold(
        0.0,
        |worst: f64, difference| if difference <= worst { worst } else { difference },
    );
    if max_abs > 0.0 && worst <= max_abs {
        return Ok(());
    }
    let too_large = differences
        .iter()
        .filter(|difference| **difference > max_abs || difference.is_nan())
        .count();
    Err(format!(
        "differs by {worst}, allowed {max_abs}; {too_large} of {} elements",
        differences.len()
    ))
}

fn numbers(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    fn to_f64<T: bytemuck::Pod>(bytes: &[u8], number: impl Fn(T) -> f64) -> Vec<f64> {
        bytemuck::pod_collect_to_vec::<u8, T>(bytes)
            .into_iter()
            .map(number)
            .collect()
    }
    match dtype {
        Dtype::U8 => to_f64(bytes, |value: u8| value.into()),
        Dtype::I8 => to_f64(bytes, |value: i8| value.into()),
        Dtype::I32 => to_f64(bytes, |value: i32| value.into()),
        #[expect(clippy::cast_precision_loss, reason = "only for a message")]
        Dtype::I64 => to_f64(bytes, |value: i64| value as f64),
        Dtype::F16 => to_f64(bytes, |value: f16| value.into()),
        Dtype::BF16 => to_f64(bytes, |value: bf16| value.into()),
        Dtype::F32 => to_f64(bytes, |value: f32| value.into()),
        other => panic!("unexpected element type {other:?}"),
    }
}
