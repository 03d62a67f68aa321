//! What the grants of a key decide on the samples of its batches.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Keys, ScriptedOrigin, model_folder, onnxruntime, photos};

use super::{BATCH, codes, post, rows, unsigned};
use crate::it::resign::pipelines::{Lab, RESIZE};
use crate::it::resign::{
    Client, EVERYTHING, Grant, KeysFile, accept, binary, error_of, identity, key_block,
    key_block_with_models, launch, trainer,
};

/// May read objects of 2024 for pipelines.
const READ_2024: Grant = Grant::new("photos", "2024/", &["read"]).with_pipelines();

#[test]
fn each_sample_is_decided_by_the_grants_of_the_key() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let store = Backend::Embedded.start(binary())?;
    let direct = Client::new(&store.keys, store.address);
    let (_, photo) = photos()?.into_iter().next().context("no photos")?;
    for bucket in ["/photos", "/hidden"] {
        direct.store(bucket, "")?;
        for key in ["2024/a.jpg", "2023/a.jpg"] {
            direct.store(&format!("{bucket}/{key}"), photo.clone())?;
        }
    }
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[READ_2024])])?;
    let gateway = launch(store.address, &store.keys, &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    let samples = [
        ("/photos/2024/a.jpg", ""),
        ("/photos/2024%2Fa.jpg", ""),
        ("/photos/2024/none.jpg", "NoSuchKey"),
        ("/photos/2023/a.jpg", "AccessDenied"),
        ("/photos/2024", "AccessDenied"),
        ("/photos%2F2023/a.jpg", "AccessDenied"),
        ("/hidden/2024/a.jpg", "AccessDenied"),
        ("/nowhere/2024/a.jpg", "AccessDenied"),
        ("/photos/2024/../2023/a.jpg", "InvalidRequest"),
        ("/photos/2024/%2E%2E/2023/a.jpg", "InvalidRequest"),
        ("/photos/2024/a%00.jpg", "InvalidRequest"),
        ("/Photos/2024/a.jpg", "InvalidBucketName"),
        ("/photos/2024/%zz", "InvalidURI"),
    ];
    let request = unsigned(RESIZE, &samples.map(|(path, _)| path))?;
    let rows = rows(client.send(post(&client, &request)?)?)?;
    for ((path, code), row) in samples.iter().zip(rows) {
        let found = row.value.err();
        let found = found.map(|error| (error.code, error.message));
        let found_code = found.as_ref().map_or("", |(code, _)| code.as_str());
        ensure!(found_code == *code, "{path}: expected {code:?}, found {found:?}");
        if *code == "AccessDenied" {
            // Whether the object or its bucket exists is not said.
            ensure!(
                found.is_some_and(|(_, message)| message == "Access Denied"),
                "{path}"
            );
        }
    }
    Ok(())
}

#[test]
fn the_store_gets_canonical_reads_that_the_gateway_signs() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let other = Keys::new("TESTVERSIONS0001", "secret-for-versions");
    let versions = Grant::new("photos", "2024/", &["read", "versions"]).with_pipelines();
    let blocks = [
        key_block(&trainer(), "gateway", &[READ_2024]),
        key_block(&other, "gateway", &[versions]),
    ];
    let keys_file = KeysFile::new(&blocks)?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let mut request = unsigned("decode", &["/photos/2024%2fa+b.jpg"])?;
    request.samples[0].version = Some("v%2f1".to_owned());
    let send = |keys: &Keys| {
        let client = Client::new(keys, gateway.listen());
        codes(client.send(post(&client, &request)?)?)
    };
    assert_eq!(send(&trainer())?, ["AccessDenied"]);
    assert_eq!(origin.connections(), 0);
    assert_eq!(send(&other)?, ["UndecodableObject"]);
    let heads = origin.requests();
    let head = heads.first().context("no request")?;
    let line = "GET /photos/2024/a%2Bb.jpg?versionId=v%2F1 HTTP/1.1\r\n";
    ensure!(head.starts_with(line), "{head}");
    let credential = format!("Credential={}/", identity().access);
    let host = format!("host: {}\r\n", origin.address());
    ensure!(
        head.contains(&credential) && head.to_lowercase().contains(&host),
        "{head}"
    );
    ensure!(!head.contains(&other.access) && heads.len() == 1, "{heads:?}");
    Ok(())
}

#[test]
fn pipelines_need_a_grant_that_allows_them() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let request = unsigned(RESIZE, &["/photos/d.jpg"])?;
    for (client, code) in [(lab.resign.clone(), ""), (lab.reader(), "AccessDenied")] {
        let found = codes(client.send(post(&client, &request)?)?)?;
        assert_eq!(found, [code], "{}", client.keys.access);
    }
    Ok(())
}

#[test]
fn models_need_the_right_of_the_key() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let allowed = Keys::new("TESTMODELS000001", "secret-with-a-model");
    let blocks = [
        key_block_with_models(&allowed, &["squeezenet"]),
        key_block(&trainer(), "gateway", &[EVERYTHING]),
    ];
    let (keys_file, folder) = (KeysFile::new(&blocks)?, model_folder(&["squeezenet"])?);
    let flags = [
        format!("--models={}", folder.path().display()),
        format!("--onnxruntime={}", onnxruntime().display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
    let pipeline = "decode | resize(224, 224) | to_float | model(squeezenet)";
    let body = format!(r#"{{"pipeline": "{pipeline}", "samples": [{{"path": "/photos/a.jpg"}}]}}"#);
    let send = |keys: &Keys| {
        let client = Client::new(keys, gateway.listen());
        client.send(client.request("POST", BATCH).body(body.clone()))
    };
    assert_eq!(codes(send(&allowed)?)?, ["UndecodableObject"]);
    // For other keys the model does not exist.
    let answer = send(&trainer())?;
    assert_eq!(error_of(&answer), (400, "InvalidPipeline".to_owned()));
    assert_eq!(origin.requests().len(), 1);
    Ok(())
}
