//! Values behind the layers of a model: equal to the stored one byte for byte, to others within a tolerance.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{
    GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, distance, eventually, model_folder, onnxruntime,
    signed_by,
};
use tempfile::TempDir;

use super::{
    super::super::models::floats, CacheLab, DISK, LIMIT, MEMORY, PATH, cache_dir, ensure_equal, headers,
    launch, origin, photo,
};

/// The steps before the model.
const PREPARATION: &str = "decode | resize(28, 28) | grayscale | to_float";
const PIPELINE: &str = "decode | resize(28, 28) | grayscale | to_float | model(digits)";
/// The tolerance of law 1.
const TOLERANCE: f32 = 1e-5;

/// The flags for the models of a folder.
fn model_flags(folder: &TempDir) -> [String; 2] {
    [
        format!("--models={}", folder.path().display()),
        format!("--onnxruntime={}", onnxruntime().display()),
    ]
}

fn get(gateway: &Gateway, pipeline: &str) -> Result<Response> {
    let request = Request::new("GET", PATH)
        .header("Host", "store")
        .header("x-pushdown-pipeline", pipeline)
        .header("Accept", "application/octet-stream");
    let answer = signed_by(request, "first", GOOD_SIGNATURE).send(gateway.listen())?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(answer)
}

/// Asks until the answer is on the disk.
fn get_from_disk(gateway: &Gateway, pipeline: &str) -> Result<Response> {
    eventually("the value is on the disk", LIMIT, || {
        let answer = get(gateway, pipeline)?;
        Ok((origin(&answer)? == "disk").then_some(answer))
    })
}

/// The model `digits` with the opposite signs of the weights of its last layer.
fn negated(mut model: Vec<u8>) -> Result<Vec<u8>> {
    // The field `raw_data` of 31,360 bytes: the only matrix of 784 x 10 f32, little-endian.
    const RAW_DATA: [u8; 4] = [0x4a, 0x80, 0xf5, 0x01];
    let found = model.windows(RAW_DATA.len()).position(|bytes| bytes == RAW_DATA);
    let start = found.context("no matrix of 784 x 10 elements")? + RAW_DATA.len();
    for byte in model[start..].iter_mut().skip(3).step_by(4).take(784 * 10) {
        *byte ^= 0x80;
    }
    Ok(model)
}

#[test]
fn a_cached_value_of_a_model_is_the_stored_one() -> Result<()> {
    let folder = model_folder(&["tiny/digits"])?;
    let [models, library] = model_flags(&folder);
    let lab = CacheLab::new(&[MEMORY, &models, &library])?;
    let mut stored = lab.get(PIPELINE)?;
    let cached = eventually("the value is cached", LIMIT, || {
        let answer = lab.get(PIPELINE)?;
        if origin(&answer)? == "memory" {
            return Ok(Some(answer));
        }
        stored = answer;
        Ok(None)
    })?;
    ensure_equal(&cached, &stored)?;
    let again = lab.get(PIPELINE)?;
    ensure!(origin(&again)? == "memory");
    ensure_equal(&again, &stored)?;

    let uncached = launch(&lab.store, &[&models, &library])?;
    let computed = get(&uncached, PIPELINE)?;
    ensure!(origin(&computed)? == "computed");
    ensure!(headers(&computed) == headers(&cached));
    let (found, expected) = (floats(&cached.body), floats(&computed.body));
    ensure!(expected.iter().any(|score| *score != 0.0), "{expected:?}");
    let difference = distance(&found, &expected);
    ensure!(difference <= TOLERANCE, "{difference}");

    // Other layers of the same model.
    let other = lab.get(&format!("{PREPARATION} | model(digits, until=cut:1)"))?;
    ensure!(origin(&other)? == "computed", "{}", origin(&other)?);
    Ok(())
}

/// The value before the model is found after the restart, and the value of the earlier model of this name is not.
#[test]
fn a_model_of_the_same_name_with_other_weights_is_a_miss() -> Result<()> {
    let (store, cache) = (PolicyStore::start()?, tempfile::tempdir()?);
    store.put(PATH, "\"1\"", photo(600, 400, "jpeg"));
    let (folder, changed_folder) = (model_folder(&["tiny/digits"])?, tempfile::tempdir()?);
    let changed = negated(fs::read(folder.path().join("digits.onnx"))?)?;
    fs::write(changed_folder.path().join("digits.onnx"), changed)?;
    let serve = |folder: &TempDir| {
        let [models, library] = model_flags(folder);
        launch(&store, &[&cache_dir(&cache), DISK, &models, &library])
    };

    let mut gateway = serve(&folder)?;
    let stored = get_from_disk(&gateway, PIPELINE)?;
    get_from_disk(&gateway, PREPARATION)?;
    gateway.terminate()?;
    gateway.wait(LIMIT)?;
    let gateway = serve(&changed_folder)?;
    let answer = get(&gateway, PIPELINE)?;
    ensure!(origin(&answer)? == "prefix=4", "{}", origin(&answer)?);
    ensure!(answer.header("etag") != stored.header("etag"));
    let negative: Vec<f32> = floats(&stored.body).iter().map(|score| -score).collect();
    let difference = distance(&floats(&answer.body), &negative);
    ensure!(difference <= TOLERANCE, "{difference}");
    Ok(())
}
