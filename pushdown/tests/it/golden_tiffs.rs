//! TIFFs of every layout and colour: what Pillow makes of them (`scripts/golden_tiffs.py`), and what of broken ones.

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
fn every_tiff_is_as_the_references_have_it() {
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

/// A crop by itself, fused with `decode`, and after a resize, is that of the whole.
#[test]
fn crops_are_those_of_the_whole() {
    for case in cases() {
        let whole = Sample::Image(decode(&case.file).unwrap());
        for text in [
            "decode | crop(3, 2, 15, 9)",
            "decode | resize(short=20) | crop(7, 4, 11, 13)",
        ] {
            let pipeline = Pipeline::parse(text).unwrap();
            let context = Context::new(b"");
            let apart = pipeline.run(1..pipeline.len(), whole.clone(), &context).unwrap();
            let fused = run(text, fixture(&case.file), Limits::default()).unwrap();
            assert_eq!(Sample::Image(fused), apart, "{}: {text}", case.file);
        }
    }
}

/// Whatever is cut off or changed: pixels within the limits, or an error of the object.
#[test]
fn broken_tiffs_are_decoded_or_refused() {
    let limits = Limits {
        max_pixels: 100_000,
        ..Limits::default()
    };
    let mut random = StdRng::seed_from_u64(28);
    let look_at = |file: Vec<u8>, name: &str| match run("decode(orient=exif)", file.into(), limits) {
        Ok(image) => assert!(u64::from(image.width()) * u64::from(image.height()) <= limits.max_pixels),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Undecodable, "{name}: {error}"),
    };
    for case in cases() {
        let file = fixture(&case.file);
        for part in 0..40 {
            look_at(file[..file.len() * part / 40].to_vec(), &case.file);
        }
        for _ in 0..200 {
            let mut changed = file.to_vec();
            for _ in 0..random.random_range(1..4) {
                let place = random.random_range(0..file.len());
                changed[place] = if random.random() {
                    random.random()
                } else {
                    changed[place] ^ 1 << random.random_range(0..8)
                };
            }
            look_at(changed, &case.file);
        }
    }
}
