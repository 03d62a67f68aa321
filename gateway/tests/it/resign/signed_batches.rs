//! Signed batches: the request is signed, its samples are not, and the grants of its key decide on each of them.

mod decisions;
mod parts;
mod refusals;
mod results;
mod unverified;
mod withdrawal;

use std::io::Write as _;

use anyhow::{Result, ensure};
use flate2::{Compression, write::GzEncoder};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, Row, RowError};
use pushdown::{MergeRule, Sample, SchemaRule};
use pushdown_testkit::{Request, Response, ScriptedOrigin};
use sha2::{Digest as _, Sha256};

use super::pipelines::{KEYS, Lab, RANDOM, RESIZE, batch_request, send_batch};
use super::{
    BUCKET, Client, EVERYTHING, KeysFile, VALID, accept, error_of, identity, key_block, launch, trainer,
};
use crate::it::gateway_for;

const BATCH: &str = "/_pushdown/v1/batch";

/// The body of a signed batch: samples with these paths, and without signatures.
fn unsigned(pipeline: &str, paths: &[&str]) -> Result<BatchRequest> {
    let samples = paths.iter().map(|path| BatchSample::for_signed_batch(*path));
    let mut request = BatchRequest::for_signed_batch(pipeline.parse()?, samples.collect());
    (request.seed, request.epoch) = (Some(7), Some(0));
    Ok(request)
}

/// The request of a batch, which is not signed yet.
fn post(client: &Client, request: &BatchRequest) -> Result<Request> {
    Ok(client.request("POST", BATCH).body(request.to_json()?))
}

/// SHA-256 of a body in hex digits.
fn sha256(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

pub(super) fn rows(answer: Response) -> Result<Vec<Row>> {
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.into())?;
    reader.finish()?;
    Ok(rows)
}

fn values(answer: Response) -> Result<Vec<Result<Sample, RowError>>> {
    Ok(rows(answer)?.into_iter().map(|row| row.value).collect())
}

/// The code of each row's error; empty for a value.
fn codes(answer: Response) -> Result<Vec<String>> {
    let code = |value: Result<Sample, RowError>| value.err().map(|error| error.code).unwrap_or_default();
    Ok(values(answer)?.into_iter().map(code).collect())
}

fn paths() -> Vec<String> {
    KEYS.iter().map(|key| format!("{BUCKET}/{key}")).collect()
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[test]
fn values_are_those_of_presigned_samples_and_of_forward_mode() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let (client, paths) = (&lab.resign, paths());
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for pipeline in [RESIZE, RANDOM] {
        let expected = send_batch(&lab.forward, &batch_request(&lab.forward, pipeline)?)?;
        ensure!(expected.len() == KEYS.len() && expected.iter().all(Result::is_ok));
        let presigned = batch_request(client, pipeline)?;
        ensure!(send_batch(client, &presigned)? == expected);
        // A request can be signed although its samples are presigned.
        ensure!(values(client.send(post(client, &presigned)?)?)? == expected);

        let plain = post(client, &unsigned(pipeline, &paths)?)?;
        let text = String::from_utf8_lossy(&plain.body);
        ensure!(!text.contains("X-Amz-") && !text.contains("signature"), "{text}");
        ensure!(plain.body.len() < presigned.to_json()?.len() / 2, "{text}");
        let compressed = client
            .request("POST", BATCH)
            .header("Content-Encoding", "gzip")
            .body(gzip(&plain.body)?);
        let in_query = client
            .keys
            .presign_body(plain.clone(), &sha256(&plain.body), VALID)?;
        for signed in [client.sign(plain)?, client.sign(compressed)?, in_query] {
            let found = values(signed.send(client.address)?)?;
            ensure!(found == expected, "{pipeline}: {}: other values", signed.target);
        }
    }
    Ok(())
}

#[test]
fn tables_of_a_signed_batch_are_one() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let paths = ["/photos/tables/a.csv", "/photos/tables/b.csv"];
    for (path, rows) in paths.iter().zip(["x\n1\n2\n", "x\n3\n"]) {
        lab.forward.store(path, rows)?;
    }
    let mut request = unsigned("select()", &paths)?;
    request.table = Some(MergeRule {
        key: false,
        schema: SchemaRule::Same,
    });
    let send = |client: &Client| client.send(post(client, &request)?.header("Accept", "text/csv"));
    let answer = send(&lab.resign)?;
    assert_eq!((answer.status, answer.text()), (200, "x\n1\n2\n3\n".to_owned()));
    // It may read the objects, and not run pipelines on them.
    let answer = send(&lab.reader())?;
    assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()));
    Ok(())
}

/// A gateway without keys cannot verify the request, and the store could not verify its samples.
#[test]
fn only_re_sign_mode_has_signed_batches() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let resign = launch(origin.address(), &identity(), &keys_file, &[])?;
    let forward = gateway_for(&origin, &[])?;
    for (gateway, features) in [
        (
            &resign,
            "cropped-jpeg, deliver, demand, each-parts, families, members, parts, signed-batches",
        ),
        (
            &forward,
            "cropped-jpeg, deliver, demand, each-parts, families, members, parts, stores",
        ),
    ] {
        let client = Client::new(&trainer(), gateway.listen());
        // An error lists them, too.
        let answer = client.call("HEAD", "/_pushdown/v1/models")?;
        assert_eq!(answer.header("x-pushdown-features"), Some(features));
    }
    let client = Client::new(&trainer(), forward.listen());
    let answer = client.send(post(&client, &unsigned(RESIZE, &["/photos/a"])?)?)?;
    assert_eq!(error_of(&answer), (400, "InvalidRequest".to_owned()));
    let message = answer.element("Message").unwrap_or_default();
    ensure!(message.contains("presign each of them"), "{message}");
    assert_eq!(origin.connections(), 0);
    Ok(())
}
