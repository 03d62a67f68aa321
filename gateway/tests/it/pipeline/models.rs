//! ONNX models: run in a GET and in a batch, listed, fetched, and refused.

use std::{fs, sync::LazyLock};

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    Context, Pipeline, Sample,
    step::model::{ModelFolder, Runtime},
};
use pushdown_testkit::{Parquet, Request, Response, distance, model_folder, onnxruntime};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{Lab, batch, photo};

pub(super) const PREPARATION: &str = "decode | resize(224, 224) | to_float | normalize(model=squeezenet)";
const DESCRIPTION: &str =
    r#"{"layout": "chw", "mean": [124, 116, 104], "std": [58, 57, 57], "value_range": 255}"#;

/// A process can load one ONNX Runtime library.
pub(super) static RUNTIME: LazyLock<pushdown::Result<Runtime>> =
    LazyLock::new(|| Runtime::load(&onnxruntime(), 1));

/// A folder with one usable model and its description, and one unusable model.
pub(super) fn squeezenet_folder() -> Result<TempDir> {
    let folder = model_folder(&["squeezenet", "bad/nan_weights"])?;
    fs::write(folder.path().join("squeezenet.json"), DESCRIPTION)?;
    Ok(folder)
}

pub(super) fn launch(folder: &TempDir, flags: &[&str]) -> Result<Lab> {
    let models = format!("--models={}", folder.path().display());
    let library = format!("--onnxruntime={}", onnxruntime().display());
    Lab::new(&[&[models.as_str(), &library], flags].concat())
}

pub(super) fn request_models(lab: &Lab, method: &str, rest: &str) -> Result<Response> {
    Request::new(method, &format!("/_pushdown/v1/models{rest}"))
        .header("Host", &lab.address().to_string())
        .send(lab.address())
}

pub(super) fn floats(body: &[u8]) -> Vec<f32> {
    let (words, _) = body.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

#[test]
fn a_model_computes_at_the_gateway_what_it_computes_locally() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &[])?;
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let objects: Vec<_> = (0..12).map(|index| photo(240 + index, 230, "jpeg")).collect();
    let keys: Vec<_> = (0..12).map(|index| format!("{index:02}.jpg")).collect();
    for (key, object) in keys.iter().zip(&objects) {
        lab.put(key, object.clone())?;
    }
    let text = format!("{PREPARATION} | model(squeezenet, until=cut:12)");
    let pipeline = Pipeline::parse_with(&text, &local_models)?;
    let expected = objects.iter().map(|object| {
        let object = Sample::Bytes(object.clone().into());
        match pipeline.run(0..pipeline.len(), object, &Context::new(b""))? {
            Sample::Tensor(tensor) => Ok(floats(tensor.data())),
            other => anyhow::bail!("{other:?}"),
        }
    });
    let expected = expected.collect::<Result<Vec<_>>>()?;

    let accept = [("accept", "application/octet-stream")];
    let answer = lab.get(&keys[0], &text, &accept)?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-pushdown-dtype"), Some("f32"));
    assert_eq!(answer.header("x-pushdown-stage"), Some("5"));
    assert!(distance(&floats(&answer.body), &expected[0]) <= 1e-5);
    assert!(
        answer
            .header("server-timing")
            .unwrap_or_default()
            .contains("model;dur=")
    );
    // After a model the engine header names the ONNX Runtime; before it only the families of the steps.
    let engine = answer.header("x-pushdown-engine").context("no engine")?;
    let runtime = RUNTIME.clone()?.identity();
    assert_eq!(runtime.onnxruntime, "1.31.1");
    let families = "decode=4 resample=4 tensor=4";
    assert_eq!(engine, format!("{families}; {runtime}"));
    let before_model = lab.get(&keys[0], &text, &[accept[0], ("x-pushdown-split", "4")])?;
    assert_eq!(before_model.header("x-pushdown-engine"), Some(families));
    let other = lab.get(&keys[0], &text.replace("cut:12", "cut:11"), &accept)?;
    assert_ne!(answer.header("etag"), other.header("etag"));

    let request = batch::request(&lab, pipeline, &keys)?;
    let rows = batch::rows(batch::send(&lab, &request)?)?;
    assert_eq!(rows.len(), keys.len());
    for (row, expected) in rows.into_iter().zip(&expected) {
        match row.value? {
            Sample::Tensor(tensor) => assert!(distance(&floats(tensor.data()), expected) <= 1e-5),
            other => anyhow::bail!("{other:?}"),
        }
    }
    let page = lab.gateway.page("/metrics")?.text();
    let count = |name: &str| -> Result<u32> {
        let line = page
            .lines()
            .find(|line| line.starts_with(name))
            .context("no such metric")?;
        Ok(line.split(' ').next_back().context("no value")?.parse()?)
    };
    let (samples, batches) = (
        count("pushdown_micro_batch_samples_total")?,
        count("pushdown_micro_batches_total")?,
    );
    assert_eq!(samples, 14);
    assert!(
        (4..samples).contains(&batches),
        "{samples} samples ran in {batches} batches"
    );
    Ok(())
}

/// The model inside `each` runs over a column of photos, and an undecodable photo fails alone.
#[test]
fn a_model_runs_over_a_column_of_a_table() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &[])?;
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let mut photos: Vec<_> = (0..5).map(|index| photo(240 + index, 230, "jpeg")).collect();
    photos[3] = b"no photo".to_vec();
    let column: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    lab.put("photos.parquet", Parquet::of_photos(&column, 2)?)?;
    let inner = format!("{PREPARATION} | model(squeezenet, until=cut:12)");
    let accept = [("accept", "application/x-ndjson")];
    let answer = lab.get(
        "photos.parquet",
        &format!("select | each(photo: {inner})"),
        &accept,
    )?;
    ensure!(answer.status == 200, "{}", answer.text());
    let text = answer.text();
    let rows = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Value>, _>>()?;
    assert_eq!(rows.len(), photos.len());
    let pipeline = Pipeline::parse_with(&inner, &local_models)?;
    for (index, (row, photo)) in rows.iter().zip(photos).enumerate() {
        if index == 3 {
            assert!(row["photo"].is_null(), "{row}");
            assert!(
                row["photo_error"].as_str().is_some_and(|error| !error.is_empty()),
                "{row}"
            );
            continue;
        }
        let found = row["photo"].as_array().context("no tensor")?;
        let found: Vec<f32> = found
            .iter()
            .map(|value| serde_json::from_value(value.clone()))
            .collect::<Result<_, _>>()?;
        let Sample::Tensor(tensor) =
            pipeline.run(0..pipeline.len(), Sample::Bytes(photo.into()), &Context::new(b""))?
        else {
            anyhow::bail!("no tensor");
        };
        assert!(distance(&found, &floats(tensor.data())) <= 1e-5, "row {index}");
    }
    Ok(())
}

/// The description declares how the model was trained: a pipeline that normalizes its inputs differently gets a warning.
#[test]
fn inputs_with_another_normalization_cause_a_warning() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &[])?;
    lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
    let warning = |normalize: &str| -> Result<Option<String>> {
        let pipeline =
            format!("decode | resize(224, 224) | to_float | {normalize}model(squeezenet, until=cut:2)");
        let answer = lab.get("cat.jpg", &pipeline, &[])?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer.header("x-pushdown-warning").map(str::to_owned))
    };
    assert_eq!(warning("normalize(model=squeezenet) | ")?, None);
    let other = warning("normalize(mean=0.5, std=0.5) | ")?.context("no warning")?;
    assert!(
        other.contains("the pipeline normalizes with other values; use normalize(model=squeezenet)"),
        "{other}"
    );
    let none = warning("")?.context("no warning")?;
    assert!(none.contains("the pipeline does not normalize"), "{none}");
    Ok(())
}

#[test]
fn models_are_listed_and_their_weights_served() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &[])?;
    let list = request_models(&lab, "GET", "")?;
    assert_eq!(list.status, 200, "{}", list.text());
    let list: Value = serde_json::from_slice(&list.body)?;
    let [model] = list["models"].as_array().context("no list")?.as_slice() else {
        anyhow::bail!("expected one usable model: {list}");
    };
    assert_eq!(model["name"], "squeezenet");
    assert_eq!(model["inputs"][0]["shape"], serde_json::json!([3, 224, 224]));
    assert_eq!(model["outputs"][0]["shape"], serde_json::json!([1000, 1, 1]));
    let cut = &model["cut_points"][0];
    for field in ["tensor", "shape", "bytes", "parameters", "macs"] {
        ensure!(!cut[field].is_null(), "{field} in {cut}");
    }
    assert_eq!(model["batched"], true);
    let mut left_out = model["left_out"].as_array().context("no list")?.iter();
    let inner_cut = left_out.find(|left| left["tensor"] == "r0").context("r0")?;
    assert_eq!(
        inner_cut["reason"],
        "ONNX Runtime fuses `Conv` and the `Relu` after it"
    );
    let digest = model["digest"].as_str().context("no digest")?;

    let weights = request_models(&lab, "GET", &format!("/{digest}"))?;
    assert_eq!(weights.status, 200);
    let file = fs::read(folder.path().join("squeezenet.onnx"))?;
    assert_eq!(Sha256::digest(&weights.body), Sha256::digest(&file));
    assert_eq!(weights.header("etag"), Some(format!("\"{digest}\"").as_str()));
    let head = request_models(&lab, "HEAD", &format!("/{digest}"))?;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(
        head.header("content-length"),
        Some(file.len().to_string().as_str())
    );
    let range = |range: &str| {
        let request = Request::new("GET", &format!("/_pushdown/v1/models/{digest}"));
        let request = request.header("Host", &lab.address().to_string());
        request.header("range", range).send(lab.address())
    };
    let part = range("bytes=1000-2999")?;
    assert!(
        part.status == 206 && part.body == file[1000..3000],
        "{}",
        part.status
    );
    let expected = format!("bytes 1000-2999/{}", file.len());
    assert_eq!(part.header("content-range"), Some(expected.as_str()));
    let rest = range(&format!("bytes={}-", file.len() - 5))?;
    assert!(
        rest.status == 206 && rest.body == file[file.len() - 5..],
        "{}",
        rest.status
    );
    assert_eq!(range(&format!("bytes={}-", file.len()))?.status, 416);
    assert_eq!(request_models(&lab, "GET", "/0123")?.status, 404);
    assert_eq!(request_models(&lab, "DELETE", "")?.status, 405);
    Ok(())
}

#[test]
fn serving_weights_can_be_disabled() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &["--serve-weights=false"])?;
    let list: Value = serde_json::from_slice(&request_models(&lab, "GET", "")?.body)?;
    let digest = list["models"][0]["digest"].as_str().context("no digest")?;
    let refused = request_models(&lab, "GET", &format!("/{digest}"))?;
    assert_eq!(refused.status, 501);
    assert!(
        refused
            .text()
            .contains("does not serve the weights of its models")
    );
    Ok(())
}

/// The log lines of a gateway that cannot run models.
fn startup_warnings(lab: &Lab) -> Result<Vec<Value>> {
    let log = lab.gateway.log()?;
    let mut lines = Vec::new();
    for line in log.lines() {
        if line.contains("`model` steps are refused, all other steps work") {
            lines.push(serde_json::from_str(line)?);
        }
    }
    Ok(lines)
}

#[test]
fn unusable_model_steps_are_refused_with_the_reason() -> Result<()> {
    let folder = squeezenet_folder()?;
    let served = launch(&folder, &[])?;
    served.put("cat.jpg", photo(64, 48, "jpeg"))?;
    let assert_refused = |lab: &Lab, step: &str, status: u16, reason: &str| -> Result<()> {
        let answer = lab.get(
            "cat.jpg",
            &format!("decode | center_crop(224) | to_float | {step}"),
            &[],
        )?;
        ensure!(
            answer.status == status,
            "{step}: {} {}",
            answer.status,
            answer.text()
        );
        ensure!(answer.text().contains(reason), "{reason} in {}", answer.text());
        Ok(())
    };
    assert_refused(
        &served,
        "model(squeezenett)",
        400,
        "the unknown model `squeezenett`",
    )?;
    assert_refused(&served, "model(squeezenet@00ff)", 400, "expected 00ff")?;
    assert_refused(
        &served,
        "model(squeezenet, until=nowhere)",
        400,
        "is not a cut point of the model",
    )?;
    assert_refused(
        &served,
        "model(squeezenet, until=r0)",
        400,
        "(ONNX Runtime fuses `Conv` and the `Relu` after it); the nearest of its 23 are ",
    )?;
    assert_refused(
        &served,
        "layout(hwc) | model(squeezenet)",
        400,
        "takes f32 of 3x224x224",
    )?;
    assert_refused(&served, "model(nan_weights)", 500, "are weights NaN?")?;
    assert_eq!(served.get("cat.jpg", "decode | to_float", &[])?.status, 200);

    let models = format!("--models={}", folder.path().display());
    let no_runtime = Lab::new(&[&models, "--onnxruntime=/nowhere/libonnxruntime.so"])?;
    no_runtime.put("cat.jpg", photo(64, 48, "jpeg"))?;
    assert_refused(
        &no_runtime,
        "model(squeezenet)",
        501,
        "cannot load ONNX Runtime from /nowhere",
    )?;
    assert_eq!(no_runtime.get("cat.jpg", "decode | to_float", &[])?.status, 200);
    let warnings = startup_warnings(&no_runtime)?;
    let [line] = warnings.as_slice() else {
        anyhow::bail!("expected one log line: {warnings:?}");
    };
    assert_eq!(line["level"], "WARN");
    let message = line["message"].as_str().context("no message")?;
    let reason = "cannot load ONNX Runtime from /nowhere/libonnxruntime.so: ";
    ensure!(message.starts_with(reason), "{message}");
    assert!(startup_warnings(&served)?.is_empty());

    let no_models = Lab::new(&[])?;
    no_models.put("cat.jpg", photo(64, 48, "jpeg"))?;
    assert_refused(&no_models, "model(squeezenet)", 501, "no models are served")?;
    Ok(())
}
