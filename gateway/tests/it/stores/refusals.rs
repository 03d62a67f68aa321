//! What is refused before the store is asked, and what the gateway does not follow.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::StoreEndpoint;
use pushdown_testkit::ScriptedOrigin;

use super::*;

/// A GET for `target` that states a store, with further headers.
fn stating(lab: &StoresLab, target: &str, stated: &str) -> Request {
    get(&lab.gateway, target, PIPELINE).header(STORE, stated)
}

#[test]
fn stores_that_are_not_allowed_are_refused_by_name() -> Result<()> {
    let lab = StoresLab::new(Style::VirtualHost, &["--allow-bucket=photos,audio"])?;
    let port = lab.store.address().port();
    let target = format!("/1.jpg?{}", signed_query("first"));
    for (stated, status, expected, text) in [
        (
            "file:///etc/passwd".to_owned(),
            400,
            "InvalidArgument",
            "begins with http:// or https://",
        ),
        (
            format!("http://photos.localhost:{port}; bucket=audio"),
            400,
            "InvalidArgument",
            "the first label of the host",
        ),
        (
            "http://127.0.0.1:1".to_owned(),
            403,
            "StoreNotAllowed",
            "expected one of allow-store",
        ),
        (
            format!("http://127.0.0.1:{port}"),
            403,
            "StoreNotAllowed",
            "expected one of allow-store",
        ),
        (
            format!("http://photos.localhost:{port}"),
            403,
            "StoreNotAllowed",
            "expected the bucket",
        ),
        (
            format!("http://video.localhost:{port}; bucket=video"),
            403,
            "StoreNotAllowed",
            "the bucket `video` is not allowed",
        ),
    ] {
        let answer = stating(&lab, &target, &stated).send(lab.gateway.listen())?;
        assert_eq!(
            (answer.status, code(&answer).as_deref()),
            (status, Some(expected)),
            "{stated}"
        );
        ensure!(answer.text().contains(text), "{stated}: {}", answer.text());
        let Ok(store) = stated.parse::<StoreEndpoint>() else {
            continue;
        };
        let mut batch = lab.batch("first", &["1.jpg"], PIPELINE)?;
        if store.bucket().is_none() {
            batch.samples[0].path = "/photos/1.jpg".to_owned();
        }
        batch.store = Some(store);
        let answer = lab.post(&batch)?;
        assert_eq!(
            (answer.status, code(&answer).as_deref()),
            (403, Some("StoreNotAllowed")),
            "{stated}"
        );
    }
    ensure!(lab.store.requests().is_empty());
    let refused = |reason: &str| {
        lab.gateway
            .metric(&format!("pushdown_stores_refused_total{{reason=\"{reason}\"}}"))
    };
    let counted = [refused("store")?, refused("bucket")?, refused("address")?];
    assert_eq!(format!("{counted:?}"), "[6.0, 2.0, 0.0]");
    Ok(())
}

/// A request without a signature would use the gateway's CPU for nobody, and a store that cleans paths would serve another bucket.
#[test]
fn requests_without_a_signature_and_unsafe_keys_are_refused() -> Result<()> {
    let lab = StoresLab::new(Style::Path, &["--allow-bucket=photos"])?;
    let signed = |path: &str| format!("{path}?{}", signed_query("first"));
    let unsafe_key = "without a segment . or ..";
    for (target, status, expected) in [
        ("/photos/1.jpg".to_owned(), 403, "the request has no signature"),
        (signed("/photos/../secret/1.jpg"), 400, unsafe_key),
        (signed("/photos/%2e%2e/secret/1.jpg"), 400, unsafe_key),
        (signed("/photos/..%2fsecret/1.jpg"), 400, unsafe_key),
    ] {
        let answer = stating(&lab, &target, &lab.stated()).send(lab.gateway.listen())?;
        assert_eq!(answer.status, status, "{target}");
        ensure!(answer.text().contains(expected), "{target}: {}", answer.text());
    }
    let mut batch = lab.batch("first", &["1.jpg"], PIPELINE)?;
    batch.samples[0].path = "/photos/../secret/1.jpg".to_owned();
    assert_eq!(lab.post(&batch)?.status, 400);
    // A batch states its store in a field.
    let batch = lab.batch("first", &["1.jpg"], PIPELINE)?;
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &lab.gateway.listen().to_string())
        .header(STORE, &lab.stated())
        .body(batch.to_json()?)
        .send(lab.gateway.listen())?;
    assert_eq!(answer.status, 400, "{}", answer.text());
    ensure!(lab.store.requests().is_empty());
    Ok(())
}

#[test]
fn at_a_stated_store_the_paths_of_routes_are_keys() -> Result<()> {
    let lab = StoresLab::new(Style::VirtualHost, &[])?;
    lab.put("_pushdown/v1/version", "\"1\"", photo(400, 300, "jpeg"));
    let answer = lab.get("_pushdown/v1/version", PIPELINE)?;
    assert_eq!(answer.header("x-pushdown-stage"), Some("3"));
    Ok(())
}

/// `*.localhost` is loopback by the gateway's own resolver, and no address is public unless it is.
#[test]
fn a_host_below_a_star_may_not_lead_into_the_gateways_network() -> Result<()> {
    let store = PolicyStore::start()?;
    let port = store.address().port();
    let gateway = Gateway::launch(binary(), [format!("--allow-store=http://*.localhost:{port}")])?;
    let target = format!("/1.jpg?{}", signed_query("first"));
    let stated = format!("http://photos.localhost:{port}; bucket=photos");
    let answer = get(&gateway, &target, PIPELINE)
        .header(STORE, &stated)
        .send(gateway.listen())?;
    assert_eq!(
        (answer.status, code(&answer).as_deref()),
        (403, Some("StoreNotAllowed"))
    );
    let text = answer.text();
    ensure!(
        text.contains("the host `photos.localhost`") && text.contains("allow-store-network"),
        "{text}"
    );
    ensure!(!text.contains("127.0.0.1") && !text.contains("::1"), "{text}");
    ensure!(store.requests().is_empty());
    let counted = gateway.metric("pushdown_stores_refused_total{reason=\"address\"}")?;
    assert!((counted - 1.0).abs() < 0.5, "{counted}");
    Ok(())
}

#[test]
fn a_gateway_without_a_store_of_its_own_relays_nothing() -> Result<()> {
    let lab = StoresLab::new(Style::Path, &[])?;
    lab.put("1.jpg", "\"1\"", photo(400, 300, "jpeg"));
    let target = format!("/photos/1.jpg?{}", signed_query("first"));
    let host = lab.gateway.listen().to_string();
    let plain = || Request::new("GET", &target).header("Host", &host);
    for (request, expected) in [
        (plain(), "NoUpstream"),
        (
            Request::new("PUT", "/photos/2.jpg")
                .header("Host", &host)
                .body("x"),
            "NoUpstream",
        ),
        (get(&lab.gateway, &target, PIPELINE), "NoUpstream"),
        // The gateway relays no plain objects.
        (plain().header(STORE, &lab.stated()), "InvalidRequest"),
    ] {
        let answer = request.send(lab.gateway.listen())?;
        assert_eq!((answer.status, code(&answer).as_deref()), (400, Some(expected)));
    }
    let mut batch = lab.batch("first", &["1.jpg"], PIPELINE)?;
    batch.store = None;
    let answer = lab.post(&batch)?;
    assert_eq!(
        (answer.status, code(&answer).as_deref()),
        (400, Some("NoUpstream"))
    );
    ensure!(lab.store.requests().is_empty());
    // Readiness asks no store.
    let ready = lab.gateway.page("/readyz")?;
    assert_eq!((ready.status, lab.store.requests().len()), (200, 0));
    Ok(())
}

#[test]
fn a_stated_store_needs_a_presigned_query() -> Result<()> {
    let lab = StoresLab::new(Style::Path, &[])?;
    lab.put("1.jpg", "\"1\"", photo(400, 300, "jpeg"));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=first/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={GOOD_SIGNATURE}"
    );
    let in_query = format!(
        "/photos/1.jpg?{}&{STORE}=http%3A%2F%2F{}",
        signed_query("first"),
        lab.authority()
    );
    let stated = lab.stated();
    let target = format!("/photos/1.jpg?{}", signed_query("first"));
    for (request, expected) in [
        (
            stating(&lab, "/photos/1.jpg", &stated).header("Authorization", &authorization),
            "expected a presigned query",
        ),
        (get(&lab.gateway, &in_query, PIPELINE), "as a header"),
        (
            stating(&lab, &target, &stated).header(STORE, &stated),
            "duplicate x-pushdown-store",
        ),
    ] {
        let answer = request.send(lab.gateway.listen())?;
        assert_eq!(
            (answer.status, code(&answer).as_deref()),
            (400, Some("InvalidRequest"))
        );
        ensure!(answer.text().contains(expected), "{}", answer.text());
    }
    ensure!(lab.store.requests().is_empty());
    Ok(())
}

#[test]
fn a_redirect_is_the_answer_and_is_not_followed() -> Result<()> {
    let other = Arc::new(ScriptedOrigin::start(|exchange| {
        exchange.answer("200 OK", "secret")
    })?);
    let location = format!("http://{}/photos/1.jpg", other.address());
    for status in [301, 302, 303, 307, 308] {
        let location = location.clone();
        let store = ScriptedOrigin::start(move |exchange| {
            exchange.send(format!(
                "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
            ))
        })?;
        let stated = format!("http://{}", store.address());
        let gateway = Gateway::launch(binary(), [format!("--allow-store={stated}")])?;
        let target = format!("/photos/1.jpg?{}", signed_query("first"));
        let answer = get(&gateway, &target, PIPELINE)
            .header(STORE, &stated)
            .send(gateway.listen())?;
        assert_eq!(answer.status, status);
        assert_eq!(store.requests().len(), 1);
    }
    ensure!(other.requests().is_empty());
    Ok(())
}

#[test]
fn the_feature_is_listed_by_gateways_without_keys_of_their_own() -> Result<()> {
    let lab = StoresLab::new(Style::Path, &[])?;
    lab.put("1.jpg", "\"1\"", photo(400, 300, "jpeg"));
    let answer = lab.get("1.jpg", PIPELINE)?;
    let features = answer.header("x-pushdown-features").context("no features")?;
    ensure!(features.split(", ").any(|name| name == "stores"), "{features}");
    Ok(())
}
