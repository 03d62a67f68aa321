//! What a verified request cannot smuggle to the store.

use std::sync::Arc;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Keys, Request, ScriptedOrigin};

use super::{
    Client, EVERYTHING, Grant, KeysFile, VALID, accept, error_of, identity, key_block, launch, trainer,
};

/// The heads that reached the store.
type Heads = Arc<Mutex<Vec<String>>>;

fn recording_store() -> Result<(ScriptedOrigin, Heads)> {
    let heads = Heads::default();
    let recorded = Arc::clone(&heads);
    let origin = ScriptedOrigin::start(move |exchange| {
        recorded.lock().push(exchange.head.to_ascii_lowercase());
        accept(exchange)
    })?;
    Ok((origin, heads))
}

/// `Connection` is not signed, and names headers to drop.
#[test]
fn connection_cannot_remove_what_was_verified() -> Result<()> {
    let (origin, heads) = recording_store()?;
    let keys = trainer();
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    let target = "/photos/a?x-amz-meta-owner=trainer";
    let signed = keys.presign(client.request("PUT", target), VALID)?;
    let answer = signed
        .header("Connection", "x-amz-meta-owner, if-none-match")
        .header("If-None-Match", "*")
        .send(client.address)?;
    ensure!(answer.status == 200, "{answer:?}");
    let head = heads.lock().last().cloned().unwrap_or_default();
    ensure!(head.contains("x-amz-meta-owner: trainer\r\n"), "{head}");
    ensure!(head.contains("if-none-match: *\r\n"), "{head}");
    Ok(())
}

/// Headers of other stores and of proxies pass rights to each other. What the gateway signs, it vouches for.
#[test]
fn signed_headers_of_others_are_not_sent() -> Result<()> {
    let (origin, heads) = recording_store()?;
    let keys = trainer();
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    let foreign = ["x-rustfs-force-delete", "x-minio-admin", "x-real-ip", "forwarded"];
    let request = foreign
        .iter()
        .fold(client.request("DELETE", "/photos/a"), |request, name| {
            request.header(name, "true")
        });
    let answer = client.send(request)?;
    ensure!(answer.status == 200, "{answer:?}");
    let head = heads.lock().last().cloned().unwrap_or_default();
    for name in foreign {
        ensure!(!head.contains(name), "{head}");
    }
    Ok(())
}

/// A path below the name of a store's administration is no object of a bucket.
#[test]
fn all_buckets_are_not_the_administration_of_the_store() -> Result<()> {
    let (origin, heads) = recording_store()?;
    let keys = trainer();
    let everything = Grant::new("*", "", &["list", "read", "write", "delete", "versions", "admin"]);
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[everything])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    for target in [
        "/minio/admin/v3/export-iam",
        "/rustfs/admin/v3/info",
        "/admin/user",
    ] {
        let found = error_of(&client.call("GET", target)?);
        ensure!(found == (403, "AccessDenied".to_owned()), "{target}: {found:?}");
    }
    ensure!(heads.lock().is_empty());
    Ok(())
}

/// Nothing of a batch is looked up before its caller is verified.
#[test]
fn a_batch_of_nobody_is_refused_as_a_whole() -> Result<()> {
    let (origin, heads) = recording_store()?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let stranger = Keys::new(&trainer().access, "another-secret-of-nobody");
    let client = Client::new(&stranger, gateway.listen());
    let target = stranger
        .presign(client.request("GET", "/photos/a"), VALID)?
        .target;
    let (path, query) = target.split_once('?').unwrap_or_default();
    let (presign, signature) = query.split_once("&X-Amz-Signature=").unwrap_or_default();
    let forged = format!(
        r#"{{"pipeline":"model(a)","presign":"{presign}","samples":[{{"path":"{path}","signature":"{signature}"}}]}}"#
    );
    for (body, code) in [
        (
            r#"{"pipeline":"model(a)","presign":"","samples":[]}"#,
            "AccessDenied",
        ),
        ("no json", "AccessDenied"),
        (forged.as_str(), "SignatureDoesNotMatch"),
    ] {
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", &client.address.to_string())
            .body(body)
            .send(client.address)?;
        let found = error_of(&answer);
        ensure!(found == (403, code.to_owned()), "{body}: {found:?}");
    }
    ensure!(heads.lock().is_empty());
    Ok(())
}
