//! What networks take of memory while they come, which is when they take most.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::networks;
use serde_json::Value;

use super::{
    networks::{lab, models},
    photo,
};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 64 * MIB;
/// The file, what ONNX Runtime copies from it, and what it makes of that for the processor.
const COPIES: u64 = 3;

/// The look at start and the first run each read all of the 244 MB.
#[test]
fn a_network_that_comes_takes_three_times_its_weights() -> Result<()> {
    let folder = networks(&["alexnet"])?;
    let budget = format!("--memory-budget={BUDGET}");
    // A look takes seconds, and more of them beside other tests.
    let lab = lab(&folder, &[budget.as_str(), "--threads=2", "--queue-wait=2m"])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let list: Value = serde_json::from_slice(&models(&lab, "GET", "")?.body)?;
    let weights = list["models"][0]["bytes"].as_u64().context("no network")?;
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
