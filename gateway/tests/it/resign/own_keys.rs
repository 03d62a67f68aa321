//! `upstream = "self"`: the store answers through the gateway as it does directly, however a client addresses and signs.

use std::net::SocketAddr;
use std::slice;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Gateway, Keys, Request, ScriptedOrigin, Weed};

use super::{
    BUCKET, Client, Grant, KeysFile, accept, caller, error_of, identity, key_block, launch, operations,
};

/// A gateway in front of a store, with a key that the store knows, too.
struct Lab {
    direct: Client,
    through: Client,
    _gateway: Gateway,
    _keys_file: KeysFile,
}

impl Lab {
    fn new(store: SocketAddr, keys: &Keys) -> Result<Self> {
        let keys_file = KeysFile::new(&[key_block(keys, "self", &[])])?;
        let gateway = launch(store, &identity(), &keys_file, &[])?;
        Ok(Self {
            direct: Client::new(keys, store),
            through: Client::new(keys, gateway.listen()),
            _gateway: gateway,
            _keys_file: keys_file,
        })
    }
}

#[test]
fn seaweedfs_answers_as_it_does_directly() -> Result<()> {
    if !Backend::SeaweedFs.is_enabled()? {
        return Ok(());
    }
    let keys = caller();
    let store = Weed::launch(slice::from_ref(&keys))?;
    let lab = Lab::new(store.address(), &keys)?;
    lab.direct.store(BUCKET, "")?;
    operations::create_objects(&lab.direct)?;
    let differences = operations::differences(&lab.direct, &lab.through)?;
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// The store sees the caller's key, the canonical target and its own host, and nothing of the first signature.
#[test]
fn a_request_is_signed_again_with_the_key_of_its_caller() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let lab = Lab::new(origin.address(), &caller())?;
    let target = format!("{BUCKET}/a+b:c?versionId=x%2fy&response-content-type=a+b");
    for (style, client) in lab.through.styles() {
        let request = client
            .request("GET", &target)
            .header("X-Amz-Expected-Bucket-Owner", "owner");
        let signed = client.sign(request)?.header("X-Forwarded-For", "192.0.2.1");
        ensure!(signed.send(client.address)?.status == 200, "{style}");
        let head = origin.requests().pop().context(style)?;
        let expected =
            format!("GET {BUCKET}/a%2Bb%3Ac?response-content-type=a%20b&versionId=x%2Fy HTTP/1.1\r\n");
        ensure!(head.starts_with(&expected), "{style}: {head}");
        let head = head.to_ascii_lowercase();
        for line in [
            format!("\r\nhost: {}\r\n", origin.address()),
            "\r\nx-amz-expected-bucket-owner: owner\r\n".to_owned(),
            format!("credential={}/", caller().access.to_ascii_lowercase()),
        ] {
            ensure!(head.contains(&line), "{style}: expected {line:?} in {head}");
        }
        for text in [
            signature(&signed).context(style)?,
            "x-forwarded-for",
            "x-amz-signature",
        ] {
            ensure!(!head.contains(text), "{style}: found {text:?} in {head}");
        }
    }
    Ok(())
}

/// The 64 digits of a request's signature.
fn signature(request: &Request) -> Option<&str> {
    let mut headers = request.headers.iter();
    let authorization = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let text = authorization.map_or(request.target.as_str(), |(_, value)| value.as_str());
    text.split_once("ignature=")?.1.get(..64)
}

/// Grants of a key that the store knows narrow what the store allows.
#[test]
fn grants_narrow_what_the_store_allows() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys = caller();
    let grants = [Grant::new("photos", "2024/", &["read"])];
    let keys_file = KeysFile::new(&[key_block(&keys, "self", &grants)])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    for (method, key) in [("PUT", "2024/a"), ("GET", "2023/a"), ("GET", "2024-secret/a")] {
        let answer = client.call(method, &format!("{BUCKET}/{key}"))?;
        assert_eq!(
            error_of(&answer),
            (403, "AccessDenied".to_owned()),
            "{method} {key}"
        );
    }
    assert_eq!(origin.connections(), 0);
    assert_eq!(client.call("GET", &format!("{BUCKET}/2024/a"))?.status, 200);
    Ok(())
}
