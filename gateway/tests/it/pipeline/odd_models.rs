//! Models that are broken, replaced, or take one sample at a time: each says so, and the rest goes on.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    Context, Pipeline, Sample,
    step::model::{Folder, MAX_MODEL_BYTES},
};
use pushdown_testkit::{distance, model_folder};
use serde_json::Value;

use super::{
    Lab, batch,
    models::{RUNTIME, floats, lab, models},
    photo,
};

/// Of `model` behind a preparation of a photo: the status, and what the answer's text has in it.
fn refused(lab: &Lab, pipeline: &str, status: u16, reason: &str) -> Result<()> {
    let answer = lab.get("cat.jpg", pipeline, &[])?;
    let text = answer.text();
    ensure!(answer.status == status, "{pipeline}: {} {text}", answer.status);
    ensure!(text.contains(reason), "{pipeline}: {reason} in {text}");
    Ok(())
}

#[test]
fn what_is_wrong_with_a_model_is_told_with_its_name() -> Result<()> {
    let folder = model_folder(&["squeezenet", "bad/garbage", "bad/training"])?;
    // Without contents: it takes no room.
    let huge = fs::File::create(folder.path().join("huge.onnx"))?;
    huge.set_len(MAX_MODEL_BYTES as u64 + 1)?;
    let lab = lab(&folder, &[])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let prepared = "decode | resize(224, 224) | to_float";
    let good = format!("{prepared} | model(squeezenet, until=cut:0)");
    let wrong = |model: &str, status, reason: &str| {
        refused(&lab, &format!("{prepared} | {model}"), status, reason)?;
        ensure!(lab.get("cat.jpg", &good, &[])?.status == 200, "behind {model}");
        anyhow::Ok(())
    };
    wrong(
        "model(garbage)",
        500,
        "the model `garbage` cannot be used: found no ONNX model",
    )?;
    wrong(
        "model(training)",
        500,
        "the model `training` cannot be used: found a `Dropout`",
    )?;
    wrong(
        "model(huge)",
        413,
        "the model `huge` cannot be used: a model of 2147483649 bytes is more than the limit",
    )?;
    let takes = "takes f32 of 3x224x224 for `data_0` of the model `squeezenet`, found";
    wrong("cast(f16) | model(squeezenet)", 400, &format!("{takes} f16"))?;
    // As wide as the photo is: known once its header is read.
    let open = "decode | resize(short=224) | to_float | model(squeezenet, until=cut:0)";
    refused(&lab, open, 422, &format!("{takes} f32 of 3x224x292"))?;
    lab.put("square.jpg", photo(300, 300, "jpeg"))?;
    ensure!(lab.get("square.jpg", open, &[])?.status == 200, "one that fits");
    let request = batch::request(
        &lab,
        Pipeline::parse_with(open, &Folder::open(folder.path(), RUNTIME.clone())?)?,
        &["cat.jpg".to_owned(), "square.jpg".to_owned()],
    )?;
    let rows = batch::rows(batch::send(&lab, &request)?)?;
    let [wide, square] = rows.as_slice() else {
        anyhow::bail!("two rows: {rows:?}")
    };
    let error = wide.value.as_ref().err().context("a wide photo fits")?;
    ensure!(
        error.code == "UnsuitableObject" && error.to_string().contains(takes),
        "{error}"
    );
    ensure!(square.value.is_ok(), "in company, too");
    Ok(())
}

/// Weights are let go after the look at start: the first run reads the file again.
#[test]
fn a_model_that_was_replaced_is_found_out() -> Result<()> {
    let folder = model_folder(&["squeezenet", "tiny/constants"])?;
    let lab = lab(&folder, &[])?;
    lab.put("cat.jpg", photo(300, 230, "jpeg"))?;
    let prepared = "decode | resize(224, 224) | to_float";
    // All have been looked at.
    ensure!(models(&lab, "GET", "")?.status == 200, "no list");
    let file = folder.path().join("squeezenet.onnx");
    fs::remove_file(&file)?;
    let run = format!("{prepared} | model(squeezenet, until=cut:0)");
    refused(&lab, &run, 500, "the model `squeezenet`: its file cannot be read")?;
    fs::copy(folder.path().join("constants.onnx"), &file)?;
    refused(
        &lab,
        &run,
        500,
        "the model `squeezenet`: the weights have the digest",
    )?;
    refused(&lab, &run, 500, "have they been replaced?")?;
    let other = lab.get(
        "cat.jpg",
        "decode | resize(4, 4) | to_float | model(constants)",
        &[],
    )?;
    ensure!(other.status == 200, "{}", other.text());
    Ok(())
}

/// In a batch of requests each sample has what it has alone.
#[test]
fn samples_that_a_batch_would_mix_run_one_by_one() -> Result<()> {
    let folder = model_folder(&["tiny/batch_mean", "tiny/constants"])?;
    let lab = lab(&folder, &[])?;
    let list: Value = serde_json::from_slice(&models(&lab, "GET", "")?.body)?;
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
            "the model batch_mean runs on one sample at a time: a batch does not give what its samples give alone"
        )
    );
    let here = Folder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(text, &here)?;
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
        let far = distance(&tensor(row.value?)?, &tensor(alone)?);
        assert!(far <= 1e-5, "row {}: {far}", row.row);
    }
    Ok(())
}
