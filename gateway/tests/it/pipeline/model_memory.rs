//! Peak memory of models, reached while they are loaded.

use std::{fs, os::unix::fs::symlink, thread};

use anyhow::{Context as _, Result, anyhow, ensure};
use pushdown_testkit::model_folder;
use serde_json::Value;

use super::{
    models::{launch, request_models},
    photo,
};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 64 * MIB;
/// The file, the copy that ONNX Runtime makes of it, and the weights packed for the CPU.
const COPIES: u64 = 3;

/// The check at start and the first run each read all 244 MB.
#[test]
#[ignore = "a model of 244 MB: make test-full"]
fn loading_a_model_takes_three_times_its_weights() -> Result<()> {
    let folder = model_folder(&["alexnet"])?;
    let budget = format!("--memory-budget={BUDGET}");
    // The check takes seconds, and longer when other tests run.
    let lab = launch(&folder, &[budget.as_str(), "--threads=2", "--queue-wait=2m"])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let list: Value = serde_json::from_slice(&request_models(&lab, "GET", "")?.body)?;
    let weights = list["models"][0]["bytes"].as_u64().context("no model")?;
    ensure!(
        weights > 200 * MIB,
        "expected a model of more than 200 MiB, found {weights} bytes"
    );
    let assert_within_limit = |when: &str| {
        let peak = lab.gateway.peak_memory()?;
        ensure!(
            peak <= BUDGET + COPIES * weights + 150 * MIB,
            "{} MiB {when}, with weights of {}",
            peak / MIB,
            weights / MIB
        );
        anyhow::Ok(())
    };
    assert_within_limit("after the check")?;
    let pipeline = "decode | resize(224, 224) | to_float | normalize(imagenet) | model(alexnet) | cast(f16)";
    let answer = lab.get("cat.jpg", pipeline, &[])?;
    ensure!(answer.status == 200, "{}", answer.text());
    assert_within_limit("after a run")
}

/// Two models requested at once are loaded one after the other: the first is in memory once, and the budget keeps no unused
/// weights.
#[test]
#[ignore = "a model of 244 MB: make test-full"]
fn models_are_loaded_one_at_a_time() -> Result<()> {
    let folder = model_folder(&["alexnet"])?;
    let (first, second) = ("alexnet.onnx", "second.onnx");
    symlink(folder.path().join(first), folder.path().join(second))?;
    // Another description makes it another model.
    fs::write(folder.path().join("second.json"), r#"{"size": 224}"#)?;
    let budget = format!("--memory-budget={BUDGET}");
    let lab = launch(&folder, &[budget.as_str(), "--threads=2", "--queue-wait=2m"])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let weights = fs::metadata(folder.path().join(second))?.len();
    thread::scope(|scope| {
        let answers = ["alexnet", "second"].map(|name| {
            let pipeline =
                format!("decode | resize(224, 224) | to_float | normalize(imagenet) | model({name})");
            let lab = &lab;
            scope.spawn(move || lab.get("cat.jpg", &pipeline, &[]))
        });
        for answer in answers {
            let answer = answer.join().map_err(|_| anyhow!("a request panicked"))??;
            ensure!(answer.status == 200, "{}", answer.text());
        }
        anyhow::Ok(())
    })?;
    let peak = lab.gateway.peak_memory()?;
    // The session of the first model is in memory while the second is loaded.
    ensure!(
        peak <= BUDGET + (COPIES + 1) * weights + 150 * MIB,
        "{} MiB, with weights of {}",
        peak / MIB,
        weights / MIB
    );
    Ok(())
}
