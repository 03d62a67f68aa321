//! Every route but that of the version needs a verified key, and the admin port a token.

use anyhow::{Result, bail, ensure};
use pushdown_gateway::testing::Route;
use pushdown_testkit::{Request, ScriptedOrigin};

use super::{DOMAIN, EVERYTHING, KeysFile, accept, error_of, identity, key_block, launch, trainer};

/// The route that tells every caller the same, with a key or without one.
const PUBLIC: &str = "version";

/// Requests of a route, unsigned. A new route fails here until it has some.
fn requests(route: &str) -> Result<Vec<Request>> {
    let batch = r#"{"pipeline": "decode", "samples": [{"path": "/photos/a.jpg"}]}"#;
    let requests = match route {
        "forward" => vec![
            Request::new("GET", "/"),
            Request::new("GET", "/photos/a.jpg"),
            Request::new("HEAD", "/photos/a.jpg"),
            Request::new("PUT", "/photos/a.jpg").body("x"),
            Request::new("POST", "/photos?delete").body("<Delete/>"),
            Request::new("DELETE", "/photos/a.jpg"),
            Request::new("OPTIONS", "/photos/a.jpg"),
        ],
        "pipeline" => vec![
            Request::new("GET", "/photos/a.jpg?x-pushdown-pipeline=decode"),
            Request::new("HEAD", "/photos/a.jpg").header("x-pushdown-pipeline", "decode"),
        ],
        "batch" => vec![Request::new("POST", "/_pushdown/v1/batch").body(batch)],
        "models" => vec![
            Request::new("GET", "/_pushdown/v1/models"),
            Request::new("GET", &format!("/_pushdown/v1/models/{}", "0".repeat(64))),
        ],
        PUBLIC => vec![Request::new("GET", "/_pushdown/v1/version")],
        other => bail!("the route {other} has no requests in this test"),
    };
    Ok(requests)
}

#[test]
fn every_route_needs_a_verified_key() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    for route in Route::NAMES {
        for request in requests(route)? {
            let answer = request
                .clone()
                .header("Host", &gateway.listen().to_string())
                .send(gateway.listen())?;
            let (status, code) = error_of(&answer);
            let is_denied = status == 403 && (code == "AccessDenied" || request.method == "HEAD");
            ensure!(
                if route == PUBLIC { status == 200 } else { is_denied },
                "{route}: {} {}: {answer:?}",
                request.method,
                request.target
            );
        }
    }
    assert_eq!(origin.connections(), 0, "the store was asked");
    Ok(())
}

/// A malformed path is no exception: it is counted and audited as a key, too.
#[test]
fn on_a_virtual_host_every_path_is_a_key() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let targets = ["version", "models", "models/%zz", "batch"].map(|name| format!("/_pushdown/v1/{name}"));
    for target in &targets {
        let request = Request::new("GET", target).header("Host", &format!("photos.{DOMAIN}"));
        let answer = request.send(gateway.listen())?;
        ensure!(matches!(answer.status, 400 | 403), "{target}: {answer:?}");
    }
    let counted = gateway.metric("pushdown_requests_total{kind=\"forward\",status=\"4xx\"}")?;
    assert!((counted - 4.0).abs() < 0.5, "{counted}");
    Ok(())
}

#[test]
fn the_admin_port_needs_a_token_beyond_loopback() -> Result<()> {
    const TOKEN: &str = "--admin-token=a-token-of-this-test";
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let everywhere = "--admin-listen=0.0.0.0:0";
    for (flags, plain, with_token) in [
        (vec![], 200, 200),
        (vec![everywhere], 403, 403),
        (vec![TOKEN], 401, 200),
        (vec![everywhere, TOKEN], 401, 200),
    ] {
        let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
        for page in ["/", "/metrics", "/status.json"] {
            assert_eq!(gateway.page(page)?.status, plain, "{flags:?}: {page}");
            let request = Request::new("GET", page)
                .header("Host", "gateway")
                .header("Authorization", "Bearer a-token-of-this-test");
            assert_eq!(
                request.send(gateway.admin())?.status,
                with_token,
                "{flags:?}: {page}"
            );
        }
        assert_eq!(gateway.page("/healthz")?.status, 200);
    }
    Ok(())
}
