//! Models with weights in external files: they run, are listed with their files, and each file can be fetched.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{distance, model_folder};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    models::{floats, launch, request_models},
    photo,
};

#[test]
fn a_model_of_one_channel_runs_on_grey_images_with_embedded_and_external_weights() -> Result<()> {
    let folder = model_folder(&["tiny/digits", "tiny/external"])?;
    let lab = launch(&folder, &[])?;
    lab.put("cat.jpg", photo(60, 40, "jpeg"))?;
    let scores = |model: &str| -> Result<Vec<f32>> {
        let text = format!("decode | resize(28, 28) | grayscale | to_float | {model}");
        let answer = lab.get("cat.jpg", &text, &[("accept", "application/octet-stream")])?;
        ensure!(answer.status == 200, "{model}: {}", answer.text());
        Ok(floats(&answer.body))
    };
    let embedded = scores("model(digits)")?;
    ensure!(
        embedded.len() == 10 && embedded.iter().any(|score| *score != 0.0),
        "{embedded:?}"
    );
    for model in [
        "model(external)",
        "model(external, until=cut:1) | model(external, from=cut:1)",
    ] {
        let difference = distance(&scores(model)?, &embedded);
        ensure!(difference <= 1e-5, "{model}: {difference}");
    }
    let grey = lab.get(
        "cat.jpg",
        "decode | resize(28, 28) | grayscale",
        &[("accept", "application/octet-stream")],
    )?;
    ensure!(
        grey.header("x-pushdown-shape") == Some("1,28,28"),
        "{:?}",
        grey.header("x-pushdown-shape")
    );
    ensure!(grey.body.len() == 28 * 28, "{} bytes", grey.body.len());
    Ok(())
}

#[test]
fn each_file_of_a_model_is_listed_and_served_by_its_digest() -> Result<()> {
    let folder = model_folder(&["tiny/external_each"])?;
    let lab = launch(&folder, &[])?;
    let list: Value = serde_json::from_slice(&request_models(&lab, "GET", "")?.body)?;
    let model = &list["models"][0];
    let files = model["files"].as_array().context("no files")?;
    ensure!(files.len() == 6, "{files:?}");
    let mut total = 0;
    let mut fetched = vec![(
        model["digest"].as_str().context("no digest")?,
        "external_each.onnx",
    )];
    for file in files {
        fetched.push((
            file["digest"].as_str().context("no digest")?,
            file["name"].as_str().context("no name")?,
        ));
    }
    for (digest, name) in &fetched {
        let stored = fs::read(folder.path().join(name))?;
        total += stored.len() as u64;
        let answer = request_models(&lab, "GET", &format!("/{digest}"))?;
        ensure!(
            answer.status == 200 && answer.body == stored,
            "{name}: {}",
            answer.status
        );
        ensure!(answer.header("etag") == Some(format!("\"{digest}\"").as_str()));
        let file_digest = hex::encode(Sha256::digest(&stored));
        // The digest of the model covers all its files.
        ensure!(
            (file_digest == *digest) == (*name != "external_each.onnx"),
            "{name}"
        );
        let head = request_models(&lab, "HEAD", &format!("/{digest}"))?;
        ensure!(head.status == 200 && head.body.is_empty());
    }
    ensure!(model["bytes"] == total, "{model:?}");
    // A file that was replaced by a symbolic link is not followed.
    let (digest, name) = fetched[3];
    let file = folder.path().join(name);
    fs::rename(&file, folder.path().join("elsewhere"))?;
    std::os::unix::fs::symlink("elsewhere", &file)?;
    ensure!(request_models(&lab, "GET", &format!("/{digest}"))?.status == 500);
    drop(lab);
    fs::remove_file(&file)?;
    fs::rename(folder.path().join("elsewhere"), &file)?;
    let private = launch(&folder, &["--serve-weights=false"])?;
    for (digest, name) in fetched {
        ensure!(
            request_models(&private, "GET", &format!("/{digest}"))?.status == 501,
            "{name}"
        );
    }
    Ok(())
}
