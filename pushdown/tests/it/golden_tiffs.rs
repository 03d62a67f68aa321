//! TIFFs of every layout and colour compared with Pillow (`scripts/golden_tiffs.py`), and broken TIFFs.

use std::{collections::BTreeSet, fs, path::Path};

use bytes::Bytes;
use pushdown::{Context, ErrorKind, Image, Limits, Pipeline, Result, Sample};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

#[derive(Deserialize)]
struct Case {
    file: String,
    width: u32,
    height: u32,
    sha256: String,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tiffs.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn fixture(name: &str) -> Bytes {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/tiffs");
    fs::read(folder.join(name)).unwrap().into()
}

fn run(text: &str, file: Bytes, limits: Limits) -> Result<Image> {
    let pipeline = Pipeline::parse(text).unwrap();
    let context = Context {
        limits,
        ..Context::new(b"")
    };
    match pipeline.run(0..pipeline.len(), Sample::Bytes(file), &context)? {
        Sample::Image(image) => Ok(image),
        other => panic!("expected an image, found {other:?}"),
    }
}

fn decode(name: &str) -> Result<Image> {
    run("decode", fixture(name), Limits::default())
}

#[test]
fn every_tiff_agrees_with_the_references() {
    let cases = cases();
    assert!(cases.len() > 200, "only {} cases", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| match decode(&case.file) {
            Ok(image) => {
                let same = (image.width(), image.height()) == (case.width, case.height)
                    && hex::encode(Sha256::digest(image.pixels())) == case.sha256;
                (!same).then(|| format!("{}: other pixels", case.file))
            }
            Err(error) => Some(format!("{}: {error}", case.file)),
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

#[test]
fn every_tiff_has_a_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/tiffs");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(files, cases().into_iter().map(|case| case.file).collect());
}

/// Crops that are fused with `decode` or with a resize.
#[test]
fn fused_crops_equal_crops_of_the_whole_tiff() {
    for case in cases() {
        let whole = Sample::Image(decode(&case.file).unwrap());
        for text in [
            "decode | crop(3, 2, 15, 9)",
            "decode | resize(short=20) | crop(7, 4, 11, 13)",
        ] {
            let pipeline = Pipeline::parse(text).unwrap();
            let context = Context::new(b"");
            let separate = pipeline.run(1..pipeline.len(), whole.clone(), &context).unwrap();
            let fused = run(text, fixture(&case.file), Limits::default()).unwrap();
            assert_eq!(Sample::Image(fused), separate, "{}: {text}", case.file);
        }
    }
}

/// Truncated and changed files result in pixels within the limits, or in an error.
#[test]
fn broken_tiffs_are_decoded_or_refused() {
    let limits = Limits {
        max_pixels: 100_000,
        ..Limits::default()
    };
    let mut random = StdRng::seed_from_u64(28);
    let check = |file: Vec<u8>, name: &str| match run("decode(orient=exif)", file.into(), limits) {
        Ok(image) => assert!(u64::from(image.width()) * u64::from(image.height()) <= limits.max_pixels),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Undecodable, "{name}: {error}"),
    };
    for case in cases() {
        let file = fixture(&case.file);
        for part in 0..40 {
            check(file[..file.len() * part / 40].to_vec(), &case.file);
        }
        for _ in 0..200 {
            let mut changed = file.to_vec();
            for _ in 0..random.random_range(1..4) {
                let index = random.random_range(0..file.len());
                changed[index] = if random.random() {
                    random.random()
                } else {
                    changed[index] ^ 1 << random.random_range(0..8)
                };
            }
            check(changed, &case.file);
        }
    }
}
