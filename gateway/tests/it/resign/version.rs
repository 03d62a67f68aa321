//! The version needs no key, and is audited.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Keys, Payload, ScriptedOrigin, eventually};
use serde_json::Value;

use super::{EVERYTHING, KeysFile, accept, audit, identity, key_block, launch, trainer};
use crate::it::version::{PATH, check, check_methods, check_while_models_load, request};

const FEATURES: [&str; 8] = [
    "cropped-jpeg",
    "deliver",
    "demand",
    "each-parts",
    "families",
    "members",
    "parts",
    "signed-batches",
];

#[test]
fn every_caller_gets_the_same_version_without_a_key() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let log = audit::audit_log(&keys_file);
    let flag = format!("--audit-log={}", log.display());
    let gateway = launch(origin.address(), &identity(), &keys_file, &[&flag])?;
    let address = gateway.listen();
    let unsigned = request("GET", address).send(address)?;
    check(&unsigned, &FEATURES)?;
    check_methods(&unsigned, address)?;
    let wrong = Keys::new(&trainer().access, "another-secret-of-tests");
    for keys in [
        trainer(),
        wrong,
        Keys::new("TESTSTRANGER0001", "another-secret-of-tests"),
    ] {
        let signed = keys.sign(request("GET", address), Payload::Signed)?;
        let answer = signed.send(address)?;
        assert_eq!((answer.status, &answer.body), (200, &unsigned.body));
    }
    assert_eq!(origin.connections(), 0, "the store was asked");

    // 4 GET, 1 HEAD and 5 other methods.
    let lines = eventually(
        "the lines are written",
        std::time::Duration::from_secs(10),
        || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            Ok((text.lines().count() >= 10).then_some(text))
        },
    )?;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        ensure!(
            line["operation"] == "pushdown:Version" && line["tenant"].is_null(),
            "{line}"
        );
        ensure!(line["bucket"].is_null() && line["key"].is_null(), "{line}");
        let status = line["status"].as_u64().context("no status")?;
        let verdict = if status == 200 { "allowed" } else { "denied" };
        ensure!(line["verdict"] == verdict, "{line}");
    }
    Ok(())
}

#[test]
fn on_a_virtual_host_it_is_a_key() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let address = gateway.listen();
    let mut unsigned = request("GET", address);
    unsigned.headers.retain(|(name, _)| name != "Host");
    let unsigned = unsigned.header("Host", "photos.s3.lab.example").send(address)?;
    assert_eq!(unsigned.status, 403, "{}", unsigned.text());
    let client = super::Client::new(&trainer(), address).with_virtual_host();
    assert_eq!(client.call("GET", &format!("/photos{PATH}"))?.status, 200);
    let head = origin.requests().pop().context("the store was not asked")?;
    ensure!(head.starts_with(&format!("GET /photos{PATH} ")), "{head}");
    Ok(())
}

/// Its callers sign for the gateway, which reads its own store alone.
#[test]
fn a_gateway_with_a_keys_file_takes_no_stated_stores() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = super::Client::new(&trainer(), gateway.listen());
    let store = format!("http://{}", origin.address());
    let get = || client.request("GET", "/photos/1.jpg");
    let stating = get()
        .header("x-pushdown-pipeline", "decode")
        .header("x-pushdown-store", &store);
    let presigned = client.presigned().sign(get())?.target;
    let (presign, signature) = presigned
        .strip_prefix("/photos/1.jpg?")
        .and_then(|query| query.split_once("&X-Amz-Signature="))
        .context("no signature")?;
    let batch = serde_json::json!({
        "pipeline": "decode",
        "store": {"url": store},
        "presign": presign,
        "samples": [{"path": "/photos/1.jpg", "signature": signature}],
    });
    let posting = client
        .request("POST", "/_pushdown/v1/batch")
        .body(batch.to_string());
    for answer in [client.send(stating)?, posting.send(gateway.listen())?] {
        assert_eq!(answer.status, 400, "{}", answer.text());
        ensure!(
            answer.text().contains("does not list the feature `stores`"),
            "{}",
            answer.text()
        );
        let features = answer.header("x-pushdown-features").context("no features")?;
        assert_eq!(features, FEATURES.join(", "));
    }
    assert_eq!(origin.connections(), 0, "the store was asked");
    Ok(())
}

/// As all requests, a probe on a connection without a slot.
#[test]
fn a_probe_without_a_slot_is_audited() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop))?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let log = audit::audit_log(&keys_file);
    let flags = [
        format!("--audit-log={}", log.display()),
        "--max-connections-per-client=1".to_owned(),
    ];
    let flags = flags.each_ref().map(String::as_str);
    let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
    let client = super::Client::new(&trainer(), gateway.listen());
    let mut held = pushdown_testkit::Raw::connect(gateway.listen())?;
    held.write(&client.sign(client.request("GET", "/photos/1.jpg"))?.head())?;
    eventually(
        "a request is in flight",
        std::time::Duration::from_secs(10),
        || Ok((origin.requests().len() == 1).then_some(())),
    )?;
    check(
        &request("GET", gateway.listen()).send(gateway.listen())?,
        &FEATURES,
    )?;
    // On a virtual host it is a key, and no probe.
    let key = client
        .with_virtual_host()
        .request("GET", &format!("/photos{PATH}"));
    let refused = client.send(key)?;
    assert_eq!(refused.element("Code").as_deref(), Some("SlowDown"));
    let lines = eventually(
        "the lines are written",
        std::time::Duration::from_secs(10),
        || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            Ok((text.lines().count() >= 2).then_some(text))
        },
    )?;
    let mut statuses = Vec::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        statuses.push((line["operation"].to_string(), line["status"].as_u64()));
    }
    statuses.sort();
    let expected = [("\"pushdown:Version\"", Some(200)), ("null", Some(503))];
    let expected = expected.map(|(operation, status)| (operation.to_owned(), status));
    assert_eq!(statuses, expected);
    Ok(())
}

#[test]
fn it_waits_for_no_model() -> Result<()> {
    let keys_file = KeysFile::new(&[key_block(&trainer(), "self", &[EVERYTHING])])?;
    let keys = format!("--resign-keys={}", keys_file.path().display());
    check_while_models_load(&["--upstream=http://127.0.0.1:1", &keys], &FEATURES)
}
