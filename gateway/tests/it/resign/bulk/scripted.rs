//! What the store gets of `DeleteObjects`.

use std::io;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Exchange, Payload, ScriptedOrigin};
use sha2::{Digest as _, Sha256};

use super::super::{Client, KeysFile, error_of, identity, key_block, launch, trainer};
use super::{GRANTS, crc32, deletion, denied, list};

/// A store that remembers bodies and has deleted everything.
fn remember(bodies: &Mutex<Vec<String>>, exchange: &mut Exchange) -> io::Result<()> {
    let head = exchange.head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let body = exchange.read(length.unwrap_or_default())?;
    bodies.lock().push(String::from_utf8_lossy(&body).into_owned());
    exchange.answer("200 OK", "<DeleteResult/>")
}

/// The store gets a body of its own, with checksums and a signature of its own, and nothing of a request that is refused.
#[test]
fn the_store_gets_granted_objects_only() -> Result<()> {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let remembered = Arc::clone(&bodies);
    let origin = ScriptedOrigin::start(move |exchange| remember(&remembered, exchange))?;
    let keys = trainer();
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &GRANTS)])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    let granted = list(&["2024/a"], true);
    let mixed = list(&["2023/b", "2024/a"], true);
    let many = list(&["2024/a"; 1001], true);
    for (body, header, status, code) in [
        ("<Delete><Object>", None, 400, "MalformedXML"),
        (many.as_str(), None, 400, "MalformedXML"),
        (
            granted.as_str(),
            Some(("Content-MD5", "kAFQmDzST7DWlj99KOF/cg==")),
            400,
            "BadDigest",
        ),
        (
            granted.as_str(),
            Some(("x-amz-checksum-crc32", "AAAAAA==")),
            400,
            "BadDigest",
        ),
        (
            granted.as_str(),
            Some(("x-amz-bypass-governance-retention", "true")),
            403,
            "AccessDenied",
        ),
    ] {
        let mut request = deletion(&client, body);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let found = error_of(&client.send(request)?);
        ensure!(
            found == (status, code.to_owned()),
            "{code}, {header:?}: {found:?}"
        );
    }
    let unsigned = client.keys.sign(deletion(&client, &granted), Payload::Unsigned)?;
    let found = error_of(&unsigned.send(client.address)?);
    ensure!(found == (400, "InvalidRequest".to_owned()), "{found:?}");
    let mut other = client.sign(deletion(&client, &mixed))?;
    other.body = list(&["2023/b", "2024/c"], true).into();
    let found = error_of(&other.send(client.address)?);
    ensure!(
        found == (400, "XAmzContentSHA256Mismatch".to_owned()),
        "{found:?}"
    );
    let denied_only = client.send(deletion(&client, &list(&["2023/b"], true)))?;
    ensure!(denied_only.status == 200, "{denied_only:?}");
    ensure!(origin.connections() == 0, "{:?}", origin.requests());
    let crc = crc32(&mixed);
    for client in [client.presigned(), client.with_virtual_host(), client] {
        let request = deletion(&client, &mixed)
            .header("x-amz-checksum-crc32", &crc)
            .header("x-amz-sdk-checksum-algorithm", "CRC32");
        let answer = client.send(request)?;
        let expected = format!("<DeleteResult>{}</DeleteResult>", denied("<Key>2023/b</Key>"));
        ensure!(answer.text() == expected, "{}", answer.text());
        let head = origin
            .requests()
            .pop()
            .context("no request")?
            .to_ascii_lowercase();
        ensure!(head.starts_with("post /photos?delete"), "{head}");
        let body = bodies.lock().pop().context("no body")?;
        ensure!(body == granted, "{body}");
        let hash = hex::encode(Sha256::digest(&body));
        ensure!(
            head.contains(&format!("x-amz-content-sha256: {hash}\r\n")),
            "{head}"
        );
        ensure!(
            head.contains("\r\ncontent-md5: ") && !head.contains("checksum"),
            "{head}"
        );
    }
    Ok(())
}
