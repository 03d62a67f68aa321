//! What is wrong with a model, or with what it is given, is told before any object is read: by both faces, which go on.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Response, model_folder};
use serde_json::Value;

use super::{
    Lab, batch,
    models::{lab, models},
    photo,
};

const GOOD: &str = "decode | resize(4, 4) | to_float | model(constants)";

/// A GET, and a batch of one.
fn ask(lab: &Lab, key: &str, pipeline: &str) -> Result<[Response; 2]> {
    let request = batch::request(lab, "decode".parse()?, &[key.to_owned()])?;
    let mut request = serde_json::to_value(request)?;
    request["pipeline"] = pipeline.into();
    let many = batch::post(lab, serde_json::to_vec(&request)?).send(lab.address())?;
    Ok([lab.get(key, pipeline, &[])?, many])
}

/// Of an object that is not there, which nobody finds out.
fn refused(lab: &Lab, pipeline: &str, status: u16, reason: &str) -> Result<()> {
    for answer in ask(lab, "missing.png", pipeline)? {
        let text = answer.text();
        ensure!(answer.status == status, "{pipeline}: {} {text}", answer.status);
        ensure!(text.contains(reason), "{pipeline}: {reason} in {text}");
    }
    let [one, many] = ask(lab, "cat.png", GOOD)?;
    ensure!(one.status == 200, "behind {pipeline}: {}", one.text());
    let rows = batch::rows(many)?;
    ensure!(
        rows.len() == 1 && rows[0].value.is_ok(),
        "behind {pipeline}: {rows:?}"
    );
    Ok(())
}

#[test]
fn models_that_cannot_be_used_are_refused_by_name() -> Result<()> {
    let folder = model_folder(&[
        "tiny/constants",
        "bad/external_weights",
        "bad/nan_weights",
        "bad/shapes_that_do_not_fit",
    ])?;
    let file = |name: &str| folder.path().join(name);
    let whole = fs::read(file("constants.onnx"))?;
    fs::write(file("truncated.onnx"), &whole[..whole.len() / 2])?;
    fs::write(file("misdescribed.onnx"), &whole)?;
    fs::write(file("misdescribed.json"), r#"{"sizes": 4}"#)?;
    let lab = lab(&folder, &[])?;
    lab.put("cat.png", photo(16, 16, "png"))?;
    let bad = [
        ("truncated", "found no ONNX model: "),
        ("misdescribed", "its JSON file is no description: "),
        ("external_weights", "found the weights of `w` in the file"),
        ("nan_weights", "the output `y` is not finite: are weights NaN?"),
        ("shapes_that_do_not_fit", "ONNX Runtime refuses the model: "),
    ];
    let log = lab.gateway.log()?;
    for (name, reason) in bad {
        let pipeline = format!("decode | resize(4, 4) | to_float | model({name})");
        let reason = format!("cannot be used: {reason}");
        refused(&lab, &pipeline, 500, &format!("the model `{name}` {reason}"))?;
        let mut lines = log.lines();
        let named = format!(r#""name":"{name}""#);
        ensure!(
            lines.any(|line| line.contains(&named) && line.contains(&reason)),
            "{name} in {log}"
        );
    }
    let list: Value = serde_json::from_slice(&models(&lab, "GET", "")?.body)?;
    let list = list["models"].as_array().context("no list")?;
    ensure!(list.len() == 1 && list[0]["name"] == "constants", "{list:?}");
    Ok(())
}

#[test]
fn inputs_that_cannot_fit_are_refused_by_the_text_alone() -> Result<()> {
    let folder = model_folder(&["tiny/constants", "tiny/batch_mean"])?;
    // In which order the axes stand the card alone says: for this model the wrong one.
    fs::write(folder.path().join("batch_mean.json"), r#"{"layout": "hwc"}"#)?;
    let lab = lab(&folder, &[])?;
    lab.put("cat.png", photo(16, 16, "png"))?;
    let takes = "takes f32 of 3x4x4 for `x` of the model `constants`, found";
    for (pipeline, reason) in [
        (
            "decode | resize(5, 6) | to_float | model(constants)",
            format!("{takes} f32 of 3x6x5"),
        ),
        (
            "decode | resize(4, 4) | to_tensor | model(constants)",
            format!("{takes} u8 of 3x4x4"),
        ),
        (
            "decode | resize(4, 4) | to_float | cast(bf16) | model(constants)",
            format!("{takes} bf16 of 3x4x4"),
        ),
        (
            "decode | resize(4, 4) | to_float | layout(hwc) | model(constants)",
            format!("{takes} f32 of 4x4x3"),
        ),
        (
            "decode | resize(4, 4) | to_float | model(batch_mean)",
            "takes the layout hwc for the model `batch_mean`, found chw; put `layout(hwc)` before it".into(),
        ),
        (
            "decode | resize(4, 4) | model(constants)",
            "`model` takes Tensor, found Image".into(),
        ),
        (
            "decode | resize(4, 4) | to_float | model(constants, from=flat)",
            "takes f32 of 64 for `flat` of the model `constants`, found f32 of 3x4x4".into(),
        ),
    ] {
        refused(&lab, pipeline, 400, &reason)?;
    }
    // With a pipeline that is well the store is asked.
    ensure!(lab.get("missing.png", GOOD, &[])?.status == 404);
    Ok(())
}
