//! Models that are broken, replaced, or limited to one sample at a time: errors and warnings name the model, and other models keep
//! working.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    Context, Pipeline, Sample,
    step::model::{MAX_MODEL_BYTES, ModelFolder},
};
use pushdown_testkit::{distance, model_folder};
use serde_json::Value;

use super::{
    Lab, batch,
    models::{RUNTIME, floats, launch, request_models},
    photo,
};

/// Asserts the status of a GET with this pipeline, and that the error text contains `reason`.
fn assert_refused(lab: &Lab, pipeline: &str, status: u16, reason: &str) -> Result<()> {
    let answer = lab.get("cat.jpg", pipeline, &[])?;
    let text = answer.text();
    ensure!(answer.status == status, "{pipeline}: {} {text}", answer.status);
    ensure!(text.contains(reason), "{pipeline}: {reason} in {text}");
    Ok(())
}

#[test]
fn errors_name_the_model() -> Result<()> {
    let folder = model_folder(&["squeezenet", "bad/garbage", "bad/training"])?;
    // A sparse file: it takes no disk space.
    let huge = fs::File::create(folder.path().join("huge.onnx"))?;
    huge.set_len(MAX_MODEL_BYTES as u64 + 1)?;
    let lab = launch(&folder, &[])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let prepared = "decode | resize(224, 224) | to_float";
    let good = format!("{prepared} | model(squeezenet, until=cut:0)");
    let assert_wrong = |model: &str, status, reason: &str| {
        assert_refused(&lab, &format!("{prepared} | {model}"), status, reason)?;
        ensure!(lab.get("cat.jpg", &good, &[])?.status == 200, "after {model}");
        anyhow::Ok(())
    };
    assert_wrong(
        "model(garbage)",
        500,
        "the model `garbage` cannot be used: invalid ONNX model",
    )?;
    assert_wrong(
        "model(training)",
        500,
        "the model `training` cannot be used: found a `Dropout`",
    )?;
    assert_wrong(
        "model(huge)",
        413,
        "the model `huge` cannot be used: a model of 2147483649 bytes is more than the limit",
    )?;
    let takes = "takes f32 of 3x224x224 for `data_0` of the model `squeezenet`, found";
    assert_wrong("cast(f16) | model(squeezenet)", 400, &format!("{takes} f16"))?;
    // The width depends on the photo: it is known only after its header is read.
    let open = "decode | resize(short=224) | to_float | model(squeezenet, until=cut:0)";
    assert_refused(&lab, open, 422, &format!("{takes} f32 of 3x224x292"))?;
    lab.put("square.jpg", photo(300, 300, "jpeg"))?;
    ensure!(
        lab.get("square.jpg", open, &[])?.status == 200,
        "a square photo fits"
    );
    let request = batch::request(
        &lab,
        Pipeline::parse_with(open, &ModelFolder::open(folder.path(), RUNTIME.clone())?)?,
        &["cat.jpg".to_owned(), "square.jpg".to_owned()],
    )?;
    let rows = batch::rows(batch::send(&lab, &request)?)?;
    let [wide, square] = rows.as_slice() else {
        anyhow::bail!("two rows: {rows:?}")
    };
    let error = wide.value.as_ref().err().context("a wide photo was accepted")?;
    ensure!(
        error.code == "UnsuitableObject" && error.to_string().contains(takes),
        "{error}"
    );
    ensure!(square.value.is_ok(), "a square photo fits in a batch too");
    Ok(())
}

/// The gateway releases the weights after the check at start, so the first run reads the file again.
#[test]
fn a_replaced_model_is_detected() -> Result<()> {
    let folder = model_folder(&["squeezenet", "tiny/constants"])?;
    let lab = launch(&folder, &[])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let prepared = "decode | resize(224, 224) | to_float";
    // The list is available only after all models are checked.
    ensure!(request_models(&lab, "GET", "")?.status == 200, "no list");
    let file = folder.path().join("squeezenet.onnx");
    fs::remove_file(&file)?;
    let run = format!("{prepared} | model(squeezenet, until=cut:0)");
    assert_refused(&lab, &run, 500, "the model `squeezenet`: its file cannot be read")?;
    fs::copy(folder.path().join("constants.onnx"), &file)?;
    assert_refused(
        &lab,
        &run,
        500,
        "the model `squeezenet`: the weights have the digest",
    )?;
    assert_refused(&lab, &run, 500, "have they been replaced?")?;
    let other = lab.get(
        "cat.jpg",
        "decode | resize(4, 4) | to_float | model(constants)",
        &[],
    )?;
    ensure!(other.status == 200, "{}", other.text());
    Ok(())
}

/// Each sample of a batch has the value that it has alone.
#[test]
fn samples_that_a_batch_would_mix_run_one_at_a_time() -> Result<()> {
    let folder = model_folder(&["tiny/batch_mean", "tiny/constants"])?;
    let lab = launch(&folder, &[])?;
    let list: Value = serde_json::from_slice(&request_models(&lab, "GET", "")?.body)?;
    let batched = list["models"].as_array().context("no list")?.iter();
    let batched: Vec<_> = batched.map(|model| (&model["name"], &model["batched"])).collect();
    assert_eq!(
        batched,
        [
            (&"batch_mean".into(), &false.into()),
            (&"constants".into(), &true.into())
        ]
    );
    let objects: Vec<_> = (0..12)
        .map(|index| photo(16 + index, 40 - index, "png"))
        .collect();
    let keys: Vec<_> = (0..12).map(|index| format!("{index:02}.png")).collect();
    for (key, object) in keys.iter().zip(&objects) {
        lab.put(key, object.clone())?;
    }
    let text = "decode | resize(4, 4) | to_float | model(batch_mean)";
    let warned = lab.get(&keys[0], text, &[])?;
    assert_eq!(
        warned.header("x-pushdown-warning"),
        Some(
            "the model batch_mean runs on one sample at a time: its results in a batch differ from those of single samples"
        )
    );
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(text, &local_models)?;
    let tensor = |sample| match sample {
        Sample::Tensor(tensor) => Ok(floats(tensor.data())),
        other => anyhow::bail!("{other:?}"),
    };
    let rows = batch::rows(batch::send(
        &lab,
        &batch::request(&lab, pipeline.clone(), &keys)?,
    )?)?;
    assert_eq!(rows.len(), keys.len());
    for (row, object) in rows.into_iter().zip(objects) {
        let alone = pipeline.run(
            0..pipeline.len(),
            Sample::Bytes(object.into()),
            &Context::new(b""),
        )?;
        let difference = distance(&tensor(row.value?)?, &tensor(alone)?);
        assert!(difference <= 1e-5, "row {}: {difference}", row.row);
    }
    Ok(())
}
