//! Health, metrics and status.

use anyhow::Result;
use pushdown_testkit::{Raw, Request, ScriptedOrigin, eventually};
use serde_json::Value;

use super::gateway_for;

#[test]
fn admin_pages_report_health_readiness_and_status() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let gateway = gateway_for(&origin, &["--max-megapixels=7", "--threads=3"])?;
    assert_eq!(gateway.page("/healthz")?.text(), "ok\n");
    assert_eq!(
        gateway.page("/readyz")?.status,
        200,
        "a store that refuses requests is reachable"
    );
    let status: Value = serde_json::from_slice(&gateway.page("/status.json")?.body)?;
    assert_eq!(status["engine"], pushdown::Engine::all().to_string());
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["limits"]["max_megapixels"], 7);
    assert_eq!(
        (&status["threads"], &status["draining"]),
        (&3.into(), &false.into())
    );
    assert_eq!(status["memory"]["promised"], 0);
    let page = gateway.page("/")?;
    assert!(
        page.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"))
    );
    assert_eq!(gateway.page("/nothing")?.status, 404);
    Ok(())
}

#[test]
fn metrics_count_traffic_and_gauges_return_to_zero() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        if exchange.head.starts_with("PUT") {
            exchange.skip(1000)?;
        }
        exchange.answer("200 OK", "0123456789")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    for _ in 0..3 {
        Request::new("GET", "/secret-bucket/secret-key")
            .header("Host", "gateway")
            .send(gateway.listen())?;
    }
    Request::new("PUT", "/b/k")
        .header("Host", "gateway")
        .body(vec![0; 1000])
        .send(gateway.listen())?;
    Request::new("GET", "http://elsewhere/")
        .header("Host", "gateway")
        .send(gateway.listen())?;
    eventually(
        "the connections are closed",
        std::time::Duration::from_secs(20),
        || Ok((gateway.metric("pushdown_connections")? == 0.0).then_some(())),
    )?;
    for (name, value) in [
        ("pushdown_requests_total{kind=\"forward\",status=\"2xx\"}", 4.0),
        ("pushdown_requests_total{kind=\"forward\",status=\"4xx\"}", 1.0),
        ("pushdown_store_received_bytes_total", 40.0),
        ("pushdown_client_received_bytes_total", 1000.0),
        ("pushdown_requests_in_flight{kind=\"forward\"}", 0.0),
        ("pushdown_memory_reserved_bytes", 0.0),
        ("pushdown_memory_budget_bytes", f64::from(1 << 30)),
        ("pushdown_requests_queued", 0.0),
    ] {
        let found = gateway.metric(name)?;
        assert!(
            (found - value).abs() < f64::EPSILON,
            "{name}: expected {value}, found {found}"
        );
    }
    let page = gateway.page("/metrics")?.text();
    assert!(!page.contains("secret"), "a label contains the name of an object");
    let foreign: Vec<_> = page
        .lines()
        .filter(|line| {
            !["#", "pushdown_", "process_"]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .collect();
    assert_eq!(foreign, [""; 0]);
    Ok(())
}

/// The admin port limits its concurrent connections. Silent ones are closed, so a probe that waits is answered.
#[test]
fn silent_connections_do_not_block_probes() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    let mut silent: Vec<_> = (0..64)
        .map(|_| Raw::connect(gateway.admin()))
        .collect::<Result<_>>()?;
    assert_eq!(gateway.page("/healthz")?.status, 200);
    for raw in &mut silent {
        assert!(raw.is_closed()?);
    }
    assert!(gateway.metric("pushdown_connections")?.abs() < 1.0);
    Ok(())
}
