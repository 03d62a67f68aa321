//! Unusable models and unsuitable inputs are refused before any object is read, by GET and by batch requests. The gateway keeps
//! serving other requests.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Response, model_folder};
use serde_json::Value;

use super::{
    Lab, batch,
    models::{launch, request_models},
    photo,
};

const GOOD: &str = "decode | resize(4, 4) | to_float | model(constants)";

/// Sends a GET and a batch request of one sample.
fn ask(lab: &Lab, key: &str, pipeline: &str) -> Result<[Response; 2]> {
    let request = batch::request(lab, "decode".parse()?, &[key.to_owned()])?;
    let mut request = serde_json::to_value(request)?;
    request["pipeline"] = pipeline.into();
    let batch_answer = batch::post(lab, serde_json::to_vec(&request)?).send(lab.address())?;
    Ok([lab.get(key, pipeline, &[])?, batch_answer])
}

/// Asserts that both requests are refused. The object is missing: the refusal must precede the read.
fn assert_refused(lab: &Lab, pipeline: &str, status: u16, reason: &str) -> Result<()> {
    for answer in ask(lab, "missing.png", pipeline)? {
        let text = answer.text();
        ensure!(answer.status == status, "{pipeline}: {} {text}", answer.status);
        ensure!(text.contains(reason), "{pipeline}: {reason} in {text}");
    }
    let [single_answer, batch_answer] = ask(lab, "cat.png", GOOD)?;
    ensure!(
        single_answer.status == 200,
        "after {pipeline}: {}",
        single_answer.text()
    );
    let rows = batch::rows(batch_answer)?;
    ensure!(
        rows.len() == 1 && rows[0].value.is_ok(),
        "after {pipeline}: {rows:?}"
    );
    Ok(())
}

#[test]
fn unusable_models_are_refused_by_name() -> Result<()> {
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
    let lab = launch(&folder, &[])?;
    lab.put("cat.png", photo(16, 16, "png"))?;
    let bad = [
        ("truncated", "invalid ONNX model: "),
        ("misdescribed", "its JSON file is not a model card: "),
        ("external_weights", "found the weights of `w` in the file"),
        ("nan_weights", "the output `y` is not finite: are weights NaN?"),
        ("shapes_that_do_not_fit", "ONNX Runtime refuses the model: "),
    ];
    let log = lab.gateway.log()?;
    for (name, reason) in bad {
        let pipeline = format!("decode | resize(4, 4) | to_float | model({name})");
        let reason = format!("cannot be used: {reason}");
        assert_refused(&lab, &pipeline, 500, &format!("the model `{name}` {reason}"))?;
        let mut lines = log.lines();
        let named = format!(r#""name":"{name}""#);
        ensure!(
            lines.any(|line| line.contains(&named) && line.contains(&reason)),
            "{name} in {log}"
        );
    }
    let list: Value = serde_json::from_slice(&request_models(&lab, "GET", "")?.body)?;
    let list = list["models"].as_array().context("no list")?;
    ensure!(list.len() == 1 && list[0]["name"] == "constants", "{list:?}");
    Ok(())
}

#[test]
fn inputs_of_a_wrong_shape_are_refused_before_the_object_is_read() -> Result<()> {
    let folder = model_folder(&["tiny/constants", "tiny/batch_mean"])?;
    // Only the description declares the order of the axes, and for this model it declares the wrong one.
    fs::write(folder.path().join("batch_mean.json"), r#"{"layout": "hwc"}"#)?;
    let lab = launch(&folder, &[])?;
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
        assert_refused(&lab, pipeline, 400, &reason)?;
    }
    // With a valid pipeline the store is asked.
    ensure!(lab.get("missing.png", GOOD, &[])?.status == 404);
    Ok(())
}
