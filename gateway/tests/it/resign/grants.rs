//! Grants of keys with `upstream = "gateway"`: what they do not name is denied, and does not reach the store.

mod table;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Keys, Request, Response, ScriptedOrigin};

use super::{BUCKET, Client, Grant, KeysFile, accept, error_of, identity, key_block, launch};
use table::{Call, ROWS};

fn send(client: &Client, call: &Call) -> Result<(Request, Response)> {
    let mut request = client.request(call.method, call.target);
    if let Some((name, value)) = call.header {
        request = request.header(name, value);
    }
    let signed = client.sign(request)?;
    let answer = signed.send(client.address)?;
    Ok((signed, answer))
}

#[test]
fn what_no_grant_names_does_not_reach_the_store() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys = |number: usize| Keys::new(&format!("TESTGRANTS{number:06}"), "secret-of-a-granted-key");
    let rows = ROWS.iter().enumerate();
    let blocks: Vec<_> = rows
        .map(|(number, row)| key_block(&keys(number), "gateway", row.grants))
        .collect();
    let keys_file = KeysFile::new(&blocks)?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let mut reached = 0;
    for (number, row) in ROWS.iter().enumerate() {
        let path = Client::new(&keys(number), gateway.listen());
        for client in [path.presigned(), path.with_virtual_host(), path] {
            for call in row.denied {
                let place = format!("{number}: {} {} {:?}", call.method, call.target, call.header);
                let (_, answer) = send(&client, call).context(place.clone())?;
                let is_denied = error_of(&answer) == (403, "AccessDenied".to_owned());
                let is_head = call.method == "HEAD" && answer.status == 403;
                ensure!(is_denied || is_head, "{place}: {answer:?}");
                ensure!(origin.requests().len() == reached, "{place}: the store was asked");
            }
            for call in row.allowed {
                let place = format!("{number}: {} {} {:?}", call.method, call.target, call.header);
                let (request, answer) = send(&client, call).context(place.clone())?;
                ensure!(answer.status == 200, "{place}: {answer:?}");
                reached += 1;
                let heads = origin.requests();
                ensure!(heads.len() == reached, "{place}: {heads:?}");
                check_head(&heads[reached - 1], &request, call).context(place)?;
            }
        }
    }
    Ok(())
}

/// The store sees the gateway's identity, in place of the caller's key.
fn check_head(head: &str, request: &Request, call: &Call) -> Result<()> {
    let (path, _) = call.target.split_once('?').unwrap_or((call.target, ""));
    let line = format!("{} {}", call.method, path.replace("%2F", "/"));
    ensure!(head.starts_with(&line), "expected {line:?} in {head}");
    let credential = format!("Credential={}/", identity().access);
    ensure!(head.contains(&credential), "expected {credential:?} in {head}");
    ensure!(!head.contains("TESTGRANTS"), "the key of the caller: {head}");
    let host = request.headers.iter().find(|(name, _)| name == "Host");
    let (_, host) = host.context("a request without a host")?;
    ensure!(!head.contains(host), "the host of the caller: {head}");
    Ok(())
}

/// A store that cleans paths would serve another object, or another bucket, than the one that was decided on.
#[test]
fn unsafe_names_are_refused_whatever_is_granted() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys = Keys::new("TESTGRANTS000000", "secret-of-a-granted-key");
    let all = Grant::new("*", "", &["list", "read", "write", "delete", "versions", "admin"]);
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[all])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen());
    for target in [
        "/photos/2024/../2023/a",
        "/photos/2024/%2E%2E/2023/a",
        "/photos%2F..%2Fother/a",
        "/photos/./a",
        "/photos/a%00b",
        "/Photos/a",
        "/a/b",
    ] {
        let answer = client.call("GET", target)?;
        assert_eq!(answer.status, 400, "{target}: {}", answer.text());
    }
    assert_eq!(origin.connections(), 0);
    Ok(())
}

/// The routes of the gateway are paths of its own hosts. Under a virtual host they are keys of the bucket.
#[test]
fn the_routes_of_the_gateway_are_keys_under_a_virtual_host() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys = Keys::new("TESTGRANTS000000", "secret-of-a-granted-key");
    let grants = [Grant::new("photos", "_pushdown/", &["read"])];
    let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &grants)])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&keys, gateway.listen()).with_virtual_host();
    for path in [
        "/_pushdown/v1/models",
        "/_pushdown/v1/batch",
        "/_pushdown/v1/version",
    ] {
        let answer = client.call("GET", &format!("{BUCKET}{path}"))?;
        let head = origin
            .requests()
            .pop()
            .with_context(|| format!("{path}: {answer:?}"))?;
        ensure!(head.starts_with(&format!("GET {BUCKET}{path} ")), "{head}");
    }
    Ok(())
}
