//! The id of a gateway among its replicas.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::BatchReader;
use pushdown_testkit::{Gateway, Keys, Replica, Request, Response, ScriptedOrigin};
use serde_json::{Value, json};

use super::{binary, gateway_for, version};

const HEADER: &str = "x-pushdown-replica";
const ENGINE: &str = "x-pushdown-engine";

/// The id in the version answer of a gateway.
fn replica(gateway: &Gateway) -> Result<String> {
    let answer = version::request("GET", gateway.listen()).send(gateway.listen())?;
    let document: Value = serde_json::from_slice(&answer.body)?;
    let id = answer.header(HEADER).context("no id in the header")?;
    assert_eq!(document["replica"], id);
    Ok(id.to_owned())
}

fn get(gateway: &Gateway, path: &str, pipeline: Option<&str>) -> Result<Response> {
    let mut request = Request::new("GET", path).header("Host", "gateway");
    if let Some(pipeline) = pipeline {
        request = request.header("x-pushdown-pipeline", pipeline);
    }
    request.send(gateway.listen())
}

#[test]
fn every_answer_of_the_gateway_itself_names_the_replica() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        if exchange.head.starts_with("GET /b/missing") {
            exchange.answer("404 Not Found", "")
        } else {
            exchange.answer("200 OK", "some bytes")
        }
    })?;
    let gateway = gateway_for(&origin, &["--replica-id=pushdown-0"])?;
    let own = Some("pushdown-0");
    for (path, pipeline, status) in [
        ("/b/object", Some("decode"), 422),
        ("/b/object", Some("decod"), 400),
        ("/_pushdown/v1/version", None, 200),
        ("/_pushdown/v1/models", None, 200),
        ("/_pushdown/v1/batch", None, 405),
    ] {
        let answer = get(&gateway, path, pipeline)?;
        assert_eq!((answer.status, answer.header(HEADER)), (status, own), "{path}");
    }
    let mut bytes = Request::new("GET", "/b/object").header("Host", "gateway");
    bytes = bytes
        .header("x-pushdown-pipeline", "decode")
        .header("x-pushdown-split", "0");
    let answer = bytes.send(gateway.listen())?;
    assert_eq!((answer.status, answer.header(HEADER)), (200, own));
    let timing = answer.header("server-timing").unwrap_or_default();
    ensure!(
        timing.starts_with("replica;desc=\"pushdown-0\", origin;dur="),
        "{timing}"
    );
    // These are the store's.
    for (path, pipeline, status) in [
        ("/b/object", None, 200),
        ("/b/missing", None, 404),
        ("/b/missing", Some("decode"), 404),
    ] {
        let answer = get(&gateway, path, pipeline)?;
        assert_eq!((answer.status, answer.header(HEADER)), (status, None), "{path}");
    }
    Ok(())
}

#[test]
fn without_a_cache_folder_the_id_is_host_and_bound_port() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let expected = format!("{}:{}", host.trim_end(), gateway.listen().port());
    assert_eq!(replica(&gateway)?, expected);
    Ok(())
}

fn with_folder(origin: &ScriptedOrigin, folder: &Path, flags: &[&str]) -> Result<Gateway> {
    let folder = format!("--cache-dir={}", folder.display());
    let flags = [&[folder.as_str(), "--cache-disk=128MiB"], flags].concat();
    gateway_for(origin, &flags)
}

#[test]
fn a_cache_folder_keeps_the_id() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let (folder, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let id = replica(&with_folder(&origin, folder.path(), &[])?)?;
    let file = folder.path().join("replica-id");
    assert_eq!(fs::read_to_string(&file)?.trim_end(), id);
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(replica(&with_folder(&origin, folder.path(), &[])?)?, id);
    assert_ne!(replica(&with_folder(&origin, other.path(), &[])?)?, id);
    // A configured id comes first, and leaves the file as it is.
    let named = with_folder(&origin, folder.path(), &["--replica-id=pushdown-0"])?;
    assert_eq!(replica(&named)?, "pushdown-0");
    assert_eq!(fs::read_to_string(&file)?.trim_end(), id);
    Ok(())
}

#[test]
fn invalid_ids_end_the_start() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("replica-id"), "two words")?;
    let error = with_folder(&origin, folder.path(), &[]).err();
    let error = error.context("started")?.to_string();
    for part in [
        "cannot read the id among replicas",
        "replica-id: expected visible ASCII",
    ] {
        ensure!(error.contains(part), "{error}");
    }
    let output = std::process::Command::new(binary())
        .args(["serve", "--upstream=http://127.0.0.1:1", "--replica-id=a,b"])
        .output()?;
    let error = String::from_utf8(output.stderr)?;
    ensure!(error.contains("replica-id: expected visible ASCII"), "{error}");
    assert_eq!(output.status.code(), Some(1));
    Ok(())
}

/// A photo of a store that verifies nothing, and the steps of a pipeline on it.
const PHOTO: &[u8] = include_bytes!("../../../testkit/fixtures/photos/jpeg_420.jpg");
const STEPS: &str = "decode | resize(8, 6)";

/// The engine in the header and in the stream of a batch of one photo, and the value.
fn batch(gateway: &Gateway) -> Result<(String, String, pushdown::Sample)> {
    let keys = Keys::new("TESTTRAINER00001", "another-secret-of-tests");
    let signed = Request::new("GET", "/b/photo.jpg").header("Host", "gateway");
    let signed = keys.presign(signed, Duration::from_mins(5))?;
    let (path, query) = signed.target.split_once('?').context("no query")?;
    let (presign, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
    let body = json!({
        "pipeline": STEPS, "presign": presign, "samples": [{"path": path, "signature": signature}],
    });
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", "gateway")
        .body(body.to_string())
        .send(gateway.listen())?;
    ensure!(answer.status == 200, "{}", answer.text());
    let engine = answer
        .header("x-pushdown-engine")
        .context("no engine")?
        .to_owned();
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let mut rows = reader.push(answer.body.into())?;
    let stream_engine = reader.engine().context("no engine in the stream")?.to_owned();
    let row = rows.pop().context("no row")?;
    let value = row.value.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok((engine, stream_engine, value))
}

/// In a rolling update.
#[test]
fn a_replica_of_a_test_states_another_version_of_a_family() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", PHOTO.len());
        exchange.send(head)?;
        exchange.send(PHOTO)
    })?;
    let mut replicas = Replica::list(2)?;
    replicas[1].stated_versions = "resample=99".to_owned();
    let upstream = format!("--upstream=http://{}", origin.address());
    let mut values = Vec::new();
    for (replica, version) in replicas.iter().zip(["4", "99"]) {
        let gateway = replica.launch(binary(), [&upstream])?;
        assert_eq!(gateway.listen(), replica.listen);
        assert_eq!(self::replica(&gateway)?, replica.id);
        let probe = version::request("GET", gateway.listen()).send(gateway.listen())?;
        let all = format!("decode=4 resample={version} tensor=4 random=4 table=4");
        let document: Value = serde_json::from_slice(&probe.body)?;
        assert_eq!(
            (probe.header(ENGINE), &document["engine"]),
            (Some(all.as_str()), &Value::from(all.as_str()))
        );
        let engine = format!("decode=4 resample={version}");
        let one = get(&gateway, "/b/photo.jpg", Some(STEPS))?;
        assert_eq!((one.status, one.header(ENGINE)), (200, Some(engine.as_str())));
        let decoded = get(&gateway, "/b/photo.jpg", Some("decode"))?;
        assert_eq!(decoded.header(ENGINE), Some("decode=4"));
        let (header, stream, value) = batch(&gateway)?;
        assert_eq!((&header, &stream), (&engine, &engine));
        values.push((one.body, value));
    }
    assert_eq!(values[0], values[1], "the value depends on what is stated");
    Ok(())
}
