//! Pipelines in re-sign mode: the same values as in forward mode, for keys whose grants allow pipelines.

use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use pushdown::Sample;
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, RowError};
use pushdown_testkit::{Backend, Gateway, Keys, Request, Response, Store, photos};

use super::{
    BUCKET, Client, EVERYTHING, Grant, KeysFile, VALID, binary, error_of, key_block, launch, trainer,
};

pub(super) const RESIZE: &str = "decode | resize(8, 8)";
pub(super) const RANDOM: &str = "decode | random_resized_crop(32) | flip_h";
/// The first folder is not a part of what a virtual host names.
pub(super) const KEYS: [&str; 3] = ["folder/a.jpg", "folder/b%20c.jpg", "d.jpg"];

/// A key that may read all objects, without pipelines.
fn reader() -> Keys {
    Keys::new("TESTREADER000001", "secret-of-the-reader")
}

/// A store with photos, a gateway in forward mode, and one in re-sign mode.
pub(super) struct Lab {
    pub(super) forward: Client,
    pub(super) resign: Client,
    _gateway: Gateway,
    _store: Store,
    _keys_file: KeysFile,
}

impl Lab {
    /// Starts the store. `None` if the embedded store is disabled.
    pub(super) fn start() -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Backend::Embedded.start(binary())?;
        let blocks = [
            key_block(&trainer(), "gateway", &[EVERYTHING]),
            key_block(&reader(), "gateway", &[Grant::new("*", "", &["read"])]),
        ];
        let keys_file = KeysFile::new(&blocks)?;
        let gateway = launch(store.address, &store.keys, &keys_file, &[])?;
        let lab = Self {
            forward: Client::new(&store.keys, store.gateway.listen()),
            resign: Client::new(&trainer(), gateway.listen()),
            _gateway: gateway,
            _store: store,
            _keys_file: keys_file,
        };
        lab.forward.store(BUCKET, "")?;
        store_photos(&lab.forward)?;
        Ok(Some(lab))
    }

    pub(super) fn reader(&self) -> Client {
        Client::new(&reader(), self.resign.address)
    }
}

/// Stores a photo for each key.
pub(super) fn store_photos(client: &Client) -> Result<()> {
    for (key, photo) in KEYS.iter().zip(photos()?.into_values()) {
        client.store(&format!("{BUCKET}/{key}"), photo)?;
    }
    Ok(())
}

/// A GET with a pipeline.
pub(super) fn get(client: &Client, key: &str, pipeline: &str, epoch: &str) -> Result<Response> {
    let request = client
        .request("GET", &format!("{BUCKET}/{key}"))
        .header("x-pushdown-pipeline", pipeline)
        .header("x-pushdown-seed", "7")
        .header("x-pushdown-epoch", epoch)
        .header("Accept", "application/octet-stream");
    client.send(request)
}

/// A batch request for all keys, with presigned samples.
pub(super) fn batch_request(client: &Client, pipeline: &str) -> Result<BatchRequest> {
    // One time for all, so that the samples share the signing parameters.
    let keys = client.keys.with_time(SystemTime::now());
    let (mut presign, mut samples) = (String::new(), Vec::new());
    for key in KEYS {
        let request = client.request("GET", &format!("{BUCKET}/{key}"));
        let signed = keys.presign(request, VALID)?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        let (shared, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        shared.clone_into(&mut presign);
        samples.push(BatchSample::new(path, signature));
    }
    let mut request = BatchRequest::new(pipeline.parse()?, presign, samples);
    (request.seed, request.epoch) = (Some(7), Some(0));
    Ok(request)
}

/// Sends a batch request, and returns the values in the order of the samples.
pub(super) fn send_batch(client: &Client, request: &BatchRequest) -> Result<Vec<Result<Sample, RowError>>> {
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &client.address.to_string())
        .body(serde_json::to_vec(request)?)
        .send(client.address)?;
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.into())?;
    reader.finish()?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}

/// Random steps draw by the key, which must be the same under a virtual host.
#[test]
fn values_are_those_of_forward_mode() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for (pipeline, epoch) in [(RESIZE, "0"), (RANDOM, "0"), (RANDOM, "1")] {
        for key in KEYS {
            let expected = get(&lab.forward, key, pipeline, epoch)?;
            ensure!(expected.status == 200, "{key}: {}", expected.text());
            for (style, client) in lab.resign.styles() {
                let found = get(&client, key, pipeline, epoch)?;
                let place = format!("{key} {pipeline} {epoch} {style}");
                ensure!(found.status == 200, "{place}: {}", found.text());
                ensure!(found.body == expected.body, "{place}: another value");
                for name in ["etag", "x-pushdown-shape", "x-pushdown-stage", "content-type"] {
                    let headers = (found.header(name), expected.header(name));
                    ensure!(headers.0 == headers.1, "{place}: {name}: {headers:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_presigned_url_carries_the_pipeline() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let expected = get(&lab.forward, KEYS[1], RESIZE, "0")?;
    let target = format!(
        "{BUCKET}/{}?x-pushdown-pipeline=decode%20%7C%20resize%288%2C%208%29",
        KEYS[1]
    );
    for client in [lab.resign.presigned(), lab.resign.with_virtual_host().presigned()] {
        let signed = client.sign(client.request("GET", &target))?;
        let answer = signed
            .clone()
            .header("Accept", "application/octet-stream")
            .send(client.address)?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(answer.body == expected.body, "another value");
        // The pipeline is a part of what is signed.
        let mut other = signed;
        other.target = other.target.replacen("resize%288", "resize%289", 1);
        let answer = other.send(client.address)?;
        assert_eq!(error_of(&answer), (403, "SignatureDoesNotMatch".to_owned()));
    }
    Ok(())
}

#[test]
fn batches_of_presigned_samples_are_those_of_forward_mode() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for pipeline in [RESIZE, RANDOM] {
        let expected = send_batch(&lab.forward, &batch_request(&lab.forward, pipeline)?)?;
        let found = send_batch(&lab.resign, &batch_request(&lab.resign, pipeline)?)?;
        ensure!(expected.len() == KEYS.len() && expected.iter().all(Result::is_ok));
        ensure!(found == expected, "{pipeline}: other values");
    }
    // Each sample needs a signature of its own.
    let mut request = batch_request(&lab.resign, RESIZE)?;
    request.samples[1].path = format!("{BUCKET}/{}", KEYS[0]);
    let found = send_batch(&lab.resign, &request)?;
    ensure!(found[0].is_ok() && found[2].is_ok());
    let error = found[1].as_ref().err().context("a sample without a signature")?;
    ensure!(
        ["AccessDenied", "SignatureDoesNotMatch"].contains(&error.code.as_str()),
        "{error}"
    );
    Ok(())
}

#[test]
fn pipelines_need_a_grant_that_allows_them() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let reader = lab.reader();
    let plain = reader.call("GET", &format!("{BUCKET}/{}", KEYS[0]))?;
    assert_eq!(plain.status, 200, "{}", plain.text());
    for client in [reader.presigned(), reader.with_virtual_host(), reader.clone()] {
        let answer = get(&client, KEYS[0], RESIZE, "0")?;
        assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()), "{client:?}");
    }
    let rows = send_batch(&reader, &batch_request(&reader, RESIZE)?)?;
    assert_eq!(rows.len(), KEYS.len());
    for row in rows {
        let error = row.err().context("a value without a grant")?;
        assert_eq!(error.code, "AccessDenied", "{error}");
    }
    Ok(())
}
