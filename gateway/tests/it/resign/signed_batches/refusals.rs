//! Signed batches that are refused as a whole, before anything of them is used.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Keys, Payload, Request, ScriptedOrigin};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::CertificateDer;

use super::{BATCH, post, sha256, unsigned};
use crate::it::resign::pipelines::RESIZE;
use crate::it::resign::{
    Client, EVERYTHING, KeysFile, VALID, accept, error_of, identity, key_block, launch, trainer,
};

const HOUR: Duration = Duration::from_hours(1);
const MISMATCH: &str = "SignatureDoesNotMatch";

/// Requests with the status and the code of their refusal.
fn cases(client: &Client) -> Result<Vec<(&'static str, Request, u16, &'static str)>> {
    let plain = post(client, &unsigned(RESIZE, &["/photos/a.jpg"])?)?;
    let sign = |request: &Request| client.sign(request.clone());
    let signed = sign(&plain)?;
    let other_key = Keys::new("TESTSTRANGER0001", "secret-of-a-stranger");
    let other_secret = Keys::new(&client.keys.access, "another-secret-of-tests");
    let early = client.keys.with_time(SystemTime::now() - HOUR);
    let hash = sha256(&plain.body);
    let moved = |method: &str, from: &str| -> Result<Request> {
        let mut request = client.request(method, from).body(plain.body.clone());
        request = client.sign(request)?;
        BATCH.clone_into(&mut request.target);
        "POST".clone_into(&mut request.method);
        Ok(request)
    };
    let mut changed = signed.clone();
    changed.body = String::from_utf8(changed.body)?.replace("a.jpg", "b.jpg").into();
    let body = |text: &str| client.request("POST", BATCH).body(text);
    let mixed = r#"{"pipeline": "decode", "samples": [{"path": "/photos/a.jpg", "signature": "00"}]}"#;
    Ok(vec![
        ("unsigned", plain.clone(), 403, "AccessDenied"),
        (
            "unsigned, unknown model",
            body(r#"{"pipeline": "model(a)"}"#),
            403,
            "AccessDenied",
        ),
        ("changed body", changed, 400, "XAmzContentSHA256Mismatch"),
        (
            "hash of another body",
            client.keys.presign_body(plain.clone(), &sha256(b""), VALID)?,
            400,
            "XAmzContentSHA256Mismatch",
        ),
        (
            "signed for another path",
            moved("POST", "/_pushdown/v1/models")?,
            403,
            MISMATCH,
        ),
        (
            "signed for a bucket",
            moved("POST", "/photos?delete")?,
            403,
            MISMATCH,
        ),
        ("signed for another method", moved("PUT", BATCH)?, 403, MISMATCH),
        (
            "another secret",
            other_secret.sign(plain.clone(), Payload::Signed)?,
            403,
            MISMATCH,
        ),
        (
            "unknown key",
            other_key.sign(plain.clone(), Payload::Signed)?,
            403,
            "InvalidAccessKeyId",
        ),
        (
            "skewed",
            early.sign(plain.clone(), Payload::Signed)?,
            403,
            "RequestTimeTooSkewed",
        ),
        (
            "expired",
            early.presign_body(plain.clone(), &hash, VALID)?,
            403,
            "AccessDenied",
        ),
        (
            "unsigned header",
            signed.header("x-amz-meta-a", "1"),
            403,
            "AccessDenied",
        ),
        (
            "unsigned body",
            client.keys.sign(plain.clone(), Payload::Unsigned)?,
            400,
            "InvalidRequest",
        ),
        (
            "presigned with an unsigned body",
            client.keys.presign(plain.clone(), VALID)?,
            400,
            "InvalidRequest",
        ),
        (
            "signed chunks",
            client.keys.sign(plain.clone(), Payload::Chunks)?,
            400,
            "InvalidRequest",
        ),
        (
            "signed chunks and trailer",
            client.keys.sign(plain.clone(), Payload::ChunksAndTrailer)?,
            400,
            "InvalidRequest",
        ),
        (
            "unsigned chunks",
            client.keys.sign(plain, Payload::Trailer)?,
            400,
            "InvalidRequest",
        ),
        ("no JSON", sign(&body("no json"))?, 400, "InvalidRequest"),
        (
            "a signature without presign",
            sign(&body(mixed))?,
            400,
            "InvalidRequest",
        ),
    ])
}

#[test]
fn nothing_of_an_invalid_batch_is_used() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    for (name, request, status, code) in cases(&client)? {
        let answer = request.send(client.address)?;
        let found = error_of(&answer);
        ensure!(
            found == (status, code.to_owned()),
            "{name}: {found:?}, {}",
            answer.text()
        );
    }
    assert_eq!(origin.connections(), 0);
    Ok(())
}

/// The signature of a batch authorizes no other request.
#[test]
fn the_signature_of_a_batch_is_for_nothing_else() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    let signed = client.sign(post(&client, &unsigned(RESIZE, &["/photos/a.jpg"])?)?)?;
    for (method, target) in [
        ("GET", BATCH),
        ("PUT", "/photos/a.jpg"),
        ("POST", "/photos?delete"),
        ("POST", "/photos/_pushdown/v1/batch"),
        ("GET", "/_pushdown/v1/models"),
    ] {
        let mut replayed = signed.clone();
        method.clone_into(&mut replayed.method);
        target.clone_into(&mut replayed.target);
        let answer = replayed.send(client.address)?;
        ensure!(
            error_of(&answer) == (403, MISMATCH.to_owned()),
            "{method} {target}: {answer:?}"
        );
    }
    assert_eq!(origin.connections(), 0);
    Ok(())
}

/// The status line of the answer to a request over TLS.
fn send_over_tls(
    request: &Request,
    address: SocketAddr,
    certificate: CertificateDer<'static>,
) -> Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "127.0.0.1".try_into()?)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    stream.write_all(&[request.head(), request.body.clone()].concat())?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.extend(byte);
    }
    Ok(String::from_utf8(line)?.trim().to_owned())
}

#[test]
fn tls_protects_a_body_that_is_not_signed() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let folder = tempfile::tempdir()?;
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, generated.cert.pem())?;
    std::fs::write(&key, generated.signing_key.serialize_pem())?;
    let flags = [
        format!("--tls-cert={}", certificate.display()),
        format!("--tls-key={}", key.display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
    let client = Client::new(&trainer(), gateway.listen());
    let plain = post(&client, &unsigned(RESIZE, &["/photos/a.jpg"])?)?;
    let in_header = client.keys.sign(plain.clone(), Payload::Unsigned)?;
    let chunks = client.keys.sign(plain.clone(), Payload::Chunks)?;
    for (request, status) in [
        (in_header, "HTTP/1.1 200 OK"),
        // It would be a key for any batch, for as long as it is valid.
        (client.keys.presign(plain, VALID)?, "HTTP/1.1 400 Bad Request"),
        (chunks, "HTTP/1.1 400 Bad Request"),
    ] {
        let der = generated.cert.der().clone();
        let found = send_over_tls(&request, gateway.listen(), der).context(request.target)?;
        assert_eq!(found, status);
    }
    Ok(())
}
