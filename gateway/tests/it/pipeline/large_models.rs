//! What models take of memory while they come, which is when they take most.

use std::{fs, os::unix::fs::symlink, thread};

use anyhow::{Context as _, Result, anyhow, ensure};
use pushdown_testkit::model_folder;
use serde_json::Value;

use super::{
    models::{lab, models},
    photo,
};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 64 * MIB;
/// The file, what ONNX Runtime copies from it, and what it makes of that for the processor.
const COPIES: u64 = 3;

/// The look at start and the first run each read all of the 244 MB.
#[test]
fn a_model_that_comes_takes_three_times_its_weights() -> Result<()> {
    let folder = model_folder(&["alexnet"])?;
    let budget = format!("--memory-budget={BUDGET}");
    // A look takes seconds, and more of them beside other tests.
    let lab = lab(&folder, &[budget.as_str(), "--threads=2", "--queue-wait=2m"])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let list: Value = serde_json::from_slice(&models(&lab, "GET", "")?.body)?;
    let weights = list["models"][0]["bytes"].as_u64().context("no model")?;
    ensure!(weights > 200 * MIB, "{weights} bytes are not many");
    let within = |when: &str| {
        let peak = lab.gateway.peak_memory()?;
        ensure!(
            peak <= BUDGET + COPIES * weights + 150 * MIB,
            "{} MiB {when}, with weights of {}",
            peak / MIB,
            weights / MIB
        );
        anyhow::Ok(())
    };
    within("after the look")?;
    let pipeline = "decode | resize(224, 224) | to_float | normalize(imagenet) | model(alexnet) | cast(f16)";
    let answer = lab.get("cat.jpg", pipeline, &[])?;
    ensure!(answer.status == 200, "{}", answer.text());
    within("after a run")
}

/// Two that are asked for at once come one behind the other: the first is there once, and the budget keeps none that is not in
/// use.
#[test]
fn models_take_turns_to_come() -> Result<()> {
    let folder = model_folder(&["alexnet"])?;
    let (one, other) = ("alexnet.onnx", "other.onnx");
    symlink(folder.path().join(one), folder.path().join(other))?;
    // By its card it is another one.
    fs::write(folder.path().join("other.json"), r#"{"size": 224}"#)?;
    let budget = format!("--memory-budget={BUDGET}");
    let lab = lab(&folder, &[budget.as_str(), "--threads=2", "--queue-wait=2m"])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let weights = fs::metadata(folder.path().join(other))?.len();
    thread::scope(|scope| {
        let answers = ["alexnet", "other"].map(|name| {
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
    // What runs of the one is there while the other comes.
    ensure!(
        peak <= BUDGET + (COPIES + 1) * weights + 150 * MIB,
        "{} MiB, with weights of {}",
        peak / MIB,
        weights / MIB
    );
    Ok(())
}
