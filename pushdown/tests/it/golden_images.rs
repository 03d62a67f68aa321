//! Comparison with Pillow for files of every variant, damaged ones included (`scripts/golden_images.py`).

use std::{collections::BTreeSet, fs, path::Path};

use bytes::Bytes;
use pushdown::{Context, ErrorKind, Image, Pipeline, Result, Sample};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

#[derive(Deserialize)]
struct Case {
    input: String,
    pipeline: String,
    #[serde(flatten)]
    check: Check,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Check {
    Pixels { width: u32, height: u32, sha256: String },
    Error { error: String },
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/images.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn fixture(name: &str) -> Bytes {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/images");
    fs::read(folder.join(name)).unwrap().into()
}

fn run(text: &str, file: Bytes, context: &Context<'_>) -> Result<Image> {
    let pipeline = Pipeline::parse(text).unwrap();
    match pipeline.run(0..pipeline.len(), Sample::Bytes(file), context)? {
        Sample::Image(image) => Ok(image),
        other => panic!("expected an image, found {other:?}"),
    }
}

/// The difference from the case, if any.
fn fault(case: &Case) -> Option<String> {
    let found = run(&case.pipeline, fixture(&case.input), &Context::new(b""));
    match (&case.check, found) {
        (
            Check::Pixels {
                width,
                height,
                sha256,
            },
            Ok(image),
        ) => {
            if (image.width(), image.height()) != (*width, *height) {
                return Some(format!(
                    "expected {width} x {height}, found {} x {}",
                    image.width(),
                    image.height()
                ));
            }
            let digest = hex::encode(Sha256::digest(image.pixels()));
            (digest != *sha256).then(|| "other pixels".to_owned())
        }
        (Check::Pixels { .. }, Err(error)) => Some(error.to_string()),
        (Check::Error { error }, Ok(_)) => Some(format!("expected {error}, found pixels")),
        (Check::Error { error }, Err(found)) => (error != "undecodable"
            || found.kind() != ErrorKind::Undecodable)
            .then(|| format!("expected {error}, found {:?}: {found}", found.kind())),
    }
}

#[test]
fn every_image_agrees_with_pillow() {
    let cases = cases();
    assert!(cases.len() > 400, "only {} cases", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| fault(case).map(|fault| format!("{}: {}: {fault}", case.input, case.pipeline)))
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
fn every_image_has_a_case() {
    let inputs: BTreeSet<String> = cases().into_iter().map(|case| case.input).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/images");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(files, inputs);
}

/// Crops at positions with any alignment to blocks, and errors of files that are refused.
#[test]
fn fused_crops_equal_crops_of_the_whole_image() {
    let names: BTreeSet<String> = cases().into_iter().map(|case| case.input).collect();
    for name in names {
        let file = fixture(&name);
        // Other files are always decoded as a whole.
        let windows: u32 = if name.starts_with("jpeg_") && !name.contains("progressive") {
            30
        } else {
            2
        };
        for (decode, divisor) in [
            ("decode", 1),
            ("decode(orient=exif)", 1),
            ("decode(min_short=20)", 2),
            ("decode(min_short=12)", 4),
        ] {
            let whole = run(decode, file.clone(), &Context::new(b""));
            for window in 0..windows {
                // Pseudorandom positions within 101 x 61 pixels. Some crops extend beyond the image.
                let (x, y) = (window * 37 % 101 / divisor, window * 23 % 61 / divisor);
                let (w, h) = (1 + window * 13 % 70 / divisor, 1 + window * 7 % 45 / divisor);
                let crop = format!("crop({x}, {y}, {w}, {h})");
                assert_fused(&format!("{decode} | {crop}"), &whole, &file, &name, window);
                assert_fused(
                    &format!("{decode} | random_resized_crop(16)"),
                    &whole,
                    &file,
                    &name,
                    window,
                );
            }
        }
    }
}

/// Compares `decode` fused with the next step to the next step on the whole decoded image.
fn assert_fused(text: &str, whole: &Result<Image>, file: &Bytes, name: &str, seed: u32) {
    let context = Context::new(name.as_bytes()).with_randomness(seed.into(), 0);
    let pipeline = Pipeline::parse(text).unwrap();
    let expected = whole.clone().map_err(|error| error.kind()).and_then(|image| {
        pipeline
            .run(1..2, Sample::Image(image), &context)
            .map_err(|error| error.kind())
    });
    let found = pipeline
        .run(0..2, Sample::Bytes(file.clone()), &context)
        .map_err(|error| error.kind());
    assert!(
        found == expected,
        "{text} of {name}, seed {seed}: {:?}",
        found.err()
    );
}
