//! Micro-batches: a model runs samples of many requests at once.

use std::{thread, time::Duration};

use anyhow::{Result, anyhow, bail, ensure};
use pushdown::{Context, Pipeline, Sample, step::model::ModelFolder};
use pushdown_testkit::{Parquet, Payload, Raw, Response, distance, eventually};
use serde_json::Value;

use super::{
    Lab,
    models::{PREPARATION, RUNTIME, floats, launch, squeezenet_folder},
    photo,
};

/// Concurrent requests that wait for their answers.
const WAITING_CLIENTS: usize = 20;
/// Clients that disconnect after they have sent their request.
const DISCONNECTING_CLIENTS: usize = 8;
/// The sizes differ, so that a value sent to the wrong request is detected.
const PHOTOS: [(u32, u32); 4] = [(230, 230), (320, 200), (80, 400), (224, 300)];

/// Sends concurrent GET requests for the photos in rotation, and returns the answers.
fn send_concurrently(lab: &Lab, pipeline: &str) -> Result<Vec<Response>> {
    let keys: Vec<_> = (0..WAITING_CLIENTS)
        .map(|index| format!("{}.jpg", index % PHOTOS.len()))
        .collect();
    thread::scope(|scope| {
        let accept = [("accept", "application/octet-stream")];
        let requests: Vec<_> = keys
            .iter()
            .map(|key| scope.spawn(move || lab.get(key, pipeline, &accept)))
            .collect();
        for _ in 0..DISCONNECTING_CLIENTS {
            let request = lab
                .request("GET", "0.jpg")
                .header("x-pushdown-pipeline", pipeline);
            let request = lab.keys.sign(request, Payload::Signed)?;
            Raw::connect(lab.address())?.write(&request.head())?;
        }
        let answers = requests
            .into_iter()
            .map(|request| request.join().map_err(|_| anyhow!("panicked"))?);
        answers.collect::<Result<Vec<_>>>()
    })
}

/// Each request has one sample, so fewer batches than samples means that requests share batches. Values may depend on the batch
/// only within the tolerance of law 1.
#[test]
fn a_model_runs_samples_of_many_requests_at_once() -> Result<()> {
    let folder = squeezenet_folder()?;
    // Requests received while the only thread runs a batch wait for the next batch.
    let lab = launch(&folder, &["--threads=1"])?;
    let text = format!("{PREPARATION} | model(squeezenet, until=cut:12)");
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(&text, &local_models)?;
    let mut expected: Vec<Vec<f32>> = Vec::new();
    for (width, height) in PHOTOS {
        let object = photo(width, height, "jpeg");
        lab.put(&format!("{}.jpg", expected.len()), object.clone())?;
        let object = Sample::Bytes(object.into());
        let Sample::Tensor(value) = pipeline.run(0..pipeline.len(), object, &Context::new(b""))? else {
            bail!("no tensor");
        };
        let value = floats(value.data());
        ensure!(expected.iter().all(|other| distance(other, &value) > 1e-3));
        expected.push(value);
    }
    // It is not deterministic which requests share a batch: they are sent again until some do.
    let (samples, batches) = eventually("requests share batches", Duration::from_mins(1), || {
        for (index, answer) in send_concurrently(&lab, &text)?.iter().enumerate() {
            ensure!(answer.status == 200, "{}", answer.text());
            let difference = distance(&floats(&answer.body), &expected[index % PHOTOS.len()]);
            ensure!(difference <= 1e-5, "request {index}: {difference}");
        }
        // Samples are read before batches: a sample of a disconnected client may still be pending, and its batch is counted later.
        let samples = lab.gateway.metric("pushdown_micro_batch_samples_total")?;
        let batches = lab.gateway.metric("pushdown_micro_batches_total")?;
        Ok((batches < samples).then_some((samples, batches)))
    })?;
    ensure!(8.0 * batches >= samples, "{samples} samples in {batches} batches");
    Ok(())
}

/// The cells of a column share batches within a single scan, and their order and values are those of a run one by one.
#[test]
fn a_model_runs_cells_of_a_column_at_once() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &["--threads=1"])?;
    let inner = format!("{PREPARATION} | model(squeezenet, until=cut:12)");
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(&inner, &local_models)?;
    let photos: Vec<_> = PHOTOS
        .iter()
        .cycle()
        .take(12)
        .map(|(width, height)| photo(*width, *height, "jpeg"))
        .collect();
    let column: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    lab.put("photos.parquet", Parquet::of_photos(&column, photos.len())?)?;
    let text = format!("select | each(photo: {inner})");
    let (samples, batches) = eventually("cells share batches", Duration::from_mins(1), || {
        let answer = lab.get("photos.parquet", &text, &[("accept", "application/x-ndjson")])?;
        ensure!(answer.status == 200, "{}", answer.text());
        let text = answer.text();
        ensure!(text.lines().count() == photos.len(), "{text}");
        for (row, photo) in text.lines().zip(&photos) {
            let row: Value = serde_json::from_str(row)?;
            let found: Vec<f32> = serde_json::from_value(row["photo"].clone())?;
            let object = Sample::Bytes(photo.clone().into());
            let Sample::Tensor(value) = pipeline.run(0..pipeline.len(), object, &Context::new(b""))? else {
                bail!("no tensor");
            };
            let difference = distance(&found, &floats(value.data()));
            ensure!(difference <= 1e-5, "{difference}");
        }
        let samples = lab.gateway.metric("pushdown_micro_batch_samples_total")?;
        let batches = lab.gateway.metric("pushdown_micro_batches_total")?;
        Ok((batches < samples).then_some((samples, batches)))
    })?;
    ensure!(8.0 * batches >= samples, "{samples} samples in {batches} batches");
    let time = lab
        .gateway
        .metric("pushdown_step_seconds_total{step=\"model\"}")?;
    ensure!(time > 0.0, "no time of the model is recorded");
    Ok(())
}
