//! Layers over samples of many requests at once.

use std::{thread, time::Duration};

use anyhow::{Result, anyhow, bail, ensure};
use pushdown::{Context, Pipeline, Sample, step::model::Folder};
use pushdown_testkit::{Payload, Raw, Response, distance, eventually};

use super::{
    Lab,
    models::{PREPARED, RUNTIME, floats, folder, lab},
    photo,
};

/// Requests at a time that wait for their answers.
const STAY: usize = 20;
/// And those that are gone as soon as they have asked.
const LEAVE: usize = 8;
/// They differ, so that a value that went to another request shows.
const PHOTOS: [(u32, u32); 4] = [(230, 230), (320, 200), (80, 400), (224, 300)];

/// A GET each, all at the same time, of the photos in turns.
fn at_once(lab: &Lab, pipeline: &str) -> Result<Vec<Response>> {
    let keys: Vec<_> = (0..STAY)
        .map(|index| format!("{}.jpg", index % PHOTOS.len()))
        .collect();
    thread::scope(|scope| {
        let accept = [("accept", "application/octet-stream")];
        let requests: Vec<_> = keys
            .iter()
            .map(|key| scope.spawn(move || lab.get(key, pipeline, &accept)))
            .collect();
        for _ in 0..LEAVE {
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

/// Each sample is a request of its own, so that fewer batches than samples are batches across requests. What company a sample
/// has shows in its value no further than law 1 allows.
#[test]
fn layers_serve_many_requests_at_once() -> Result<()> {
    let folder = folder()?;
    // What comes while the one thread runs a batch waits for the next.
    let lab = lab(&folder, &["--threads=1"])?;
    let text = format!("{PREPARED} | model(squeezenet, until=cut:12)");
    let here = Folder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(&text, &here)?;
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
    // Nobody can say which requests meet: they are sent again until some of them have.
    let (samples, batches) = eventually("requests share batches", Duration::from_mins(1), || {
        for (index, answer) in at_once(&lab, &text)?.iter().enumerate() {
            ensure!(answer.status == 200, "{}", answer.text());
            let far = distance(&floats(&answer.body), &expected[index % PHOTOS.len()]);
            ensure!(far <= 1e-5, "request {index}: {far}");
        }
        // In this order: a sample of those who left may still be on its way, in a batch that is counted then.
        let samples = lab.gateway.metric("pushdown_layer_samples_total")?;
        let batches = lab.gateway.metric("pushdown_layer_batches_total")?;
        Ok((batches < samples).then_some((samples, batches)))
    })?;
    ensure!(8.0 * batches >= samples, "{samples} samples in {batches} batches");
    Ok(())
}
