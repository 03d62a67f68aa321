//! A gateway without a free connection, or with other work, answers probes within a second.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use pushdown_testkit::{Gateway, Raw, Request, Response, ScriptedOrigin, eventually, model_folder};

use super::{
    binary,
    connections::{Clients, TIMEOUT, get, metric},
    gateway_for,
    pipeline::photo,
    tls::{self, Authority},
    version::{self, FEATURES, check},
};

/// The time within which a probe is answered, from its connection on.
const LIMIT: Duration = Duration::from_secs(1);

/// An answer within the limit. A busy machine may delay one or the other, and no gateway may delay all.
fn in_time<T>(exchange: impl Fn() -> Result<T>) -> Result<T> {
    let mut times = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let answer = exchange()?;
        if start.elapsed() < LIMIT {
            return Ok(answer);
        }
        times.push(start.elapsed());
    }
    bail!("no answer arrived within {LIMIT:?}: they took {times:?}");
}

/// Probes from an address, with both methods.
fn probe(clients: &Clients, source: [u8; 4], gateway: &Gateway) -> Result<()> {
    for method in ["GET", "HEAD"] {
        let answer = in_time(|| {
            let mut raw = clients.connect(source, gateway.listen())?;
            raw.write(&version::request(method, gateway.listen()).head())?;
            raw.read(method)
        })?;
        if method == "GET" {
            check(&answer, &FEATURES)?;
        }
        ensure!(answer.status == 200 && answer.header("x-pushdown-state") == Some("serving"));
    }
    Ok(())
}

/// A store that never answers.
fn silent_store() -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop))
}

/// Requests in flight on as many connections, in turn from this many clients.
fn busy(
    clients: &Clients,
    count: u32,
    sources: u32,
    origin: &ScriptedOrigin,
    gateway: &Gateway,
) -> Result<Vec<Raw>> {
    let connections = clients.crowd(count, sources, gateway.listen(), &get().head())?;
    eventually("requests are in flight", TIMEOUT, || {
        Ok((origin.requests().len() == connections.len()).then_some(()))
    })?;
    Ok(connections)
}

/// Sends a plain request on a new connection.
fn ask(clients: &Clients, source: [u8; 4], gateway: &Gateway) -> Result<Response> {
    let mut raw = clients.connect(source, gateway.listen())?;
    raw.write(&get().head())?;
    raw.read("GET")
}

#[test]
fn a_gateway_with_requests_in_flight_on_all_connections_answers_probes() -> Result<()> {
    let (origin, clients) = (silent_store()?, Clients::new()?);
    let gateway = gateway_for(&origin, &[])?;
    let held = busy(&clients, 1_024, 8, &origin, &gateway)?;
    metric(&gateway, "pushdown_connections", 1024.0)?;
    let new_client = [127, 0, 1, 1];
    for source in [[127, 0, 0, 1], new_client] {
        probe(&clients, source, &gateway)?;
    }
    // An eighth as many wait for a slot, and are no reason to refuse probes either. Further ones are refused.
    let waiting = clients.crowd(128, 8, gateway.listen(), &get().head())?;
    probe(&clients, new_client, &gateway)?;
    let refused = ask(&clients, new_client, &gateway)?;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    ensure!(
        refused.text().contains("on each connection of the gateway"),
        "{}",
        refused.text()
    );
    metric(&gateway, "pushdown_connections_refused_total", 1.0)?;
    // Connections that show nothing make room.
    let silent = clients.crowd(300, 8, gateway.listen(), b"")?;
    let half = clients.crowd(
        100,
        8,
        gateway.listen(),
        b"HEAD /_pushdown/v1/version HTTP/1.1\r\n",
    )?;
    for source in [[127, 0, 0, 1], new_client] {
        probe(&clients, source, &gateway)?;
    }
    drop((silent, half));
    assert_eq!(origin.requests().len(), 1_024);
    metric(&gateway, "pushdown_connections", 1024.0)?;
    // Those that wait get the slots.
    drop(held);
    eventually("those that wait are served", TIMEOUT, || {
        Ok((origin.requests().len() == 1_024 + waiting.len()).then_some(()))
    })
}

#[test]
fn a_client_with_as_many_connections_as_it_may_have_can_probe() -> Result<()> {
    let (origin, clients) = (silent_store()?, Clients::new()?);
    let gateway = gateway_for(&origin, &[])?;
    let _held = busy(&clients, 256, 1, &origin, &gateway)?;
    let client = [127, 0, 0, 1];
    for _ in 0..20 {
        probe(&clients, client, &gateway)?;
    }
    let refused = ask(&clients, client, &gateway)?;
    assert_eq!(refused.element("Code").as_deref(), Some("SlowDown"));
    metric(&gateway, "pushdown_connections_refused_total", 1.0)?;
    assert_eq!(origin.requests().len(), 256);
    Ok(())
}

/// A connection without a slot serves one probe, and nothing that only looks like one.
#[test]
fn a_probe_is_all_that_is_answered_without_a_slot() -> Result<()> {
    let (origin, clients) = (silent_store()?, Clients::new()?);
    let store = format!("http://{}", origin.address());
    let gateway = gateway_for(&origin, &["--max-connections-per-client=2"])?;
    let _held = busy(&clients, 2, 1, &origin, &gateway)?;
    let probe = version::request("GET", gateway.listen());
    let at_store = probe
        .clone()
        .header("x-pushdown-store", &store)
        .header("x-pushdown-pipeline", "decode");
    let beside = Request::new("GET", &format!("{}/", version::PATH)).header("Host", "gateway");
    for request in [at_store, beside] {
        let refused = request.send(gateway.listen())?;
        assert_eq!(refused.status, 503, "{request:?}");
        ensure!(
            refused.text().contains("that the client may have"),
            "{}",
            refused.text()
        );
    }
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&[probe.head(), get().head()].concat())?;
    let answer = raw.read("GET")?;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    ensure!(raw.is_closed()?);
    // A body is the rest of a request that is refused: the answer arrives all the same.
    let upload = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .body(vec![1; 40_000]);
    assert_eq!(upload.send(gateway.listen())?.status, 503);
    assert_eq!(origin.requests().len(), 2);
    Ok(())
}

/// Over TLS the handshake comes first, for a refusal as well.
#[test]
fn probes_and_refusals_without_a_slot_have_their_handshake() -> Result<()> {
    let (origin, clients, authority) = (silent_store()?, Clients::new()?, Authority::new()?);
    let (certificate, key) = authority.issue(&["gateway.example"])?;
    let gateway = Gateway::launch(
        binary(),
        [
            format!("--upstream=http://{}", origin.address()),
            format!("--tls-cert={}", certificate.display()),
            format!("--tls-key={}", key.display()),
            "--max-connections-per-client=1".to_owned(),
            "--drain-timeout=5s".to_owned(),
        ],
    )?;
    let ask = |request: Request| {
        let (name, ca) = ("gateway.example", authority.file());
        in_time(|| tls::ask(gateway.listen(), name, &ca, &request.head()))
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            tls::ask(
                gateway.listen(),
                "gateway.example",
                &authority.file(),
                &get().head(),
            )
        });
        eventually("a request is in flight", TIMEOUT, || {
            Ok((origin.requests().len() == 1).then_some(()))
        })?;
        let _silent = clients.crowd(100, 4, gateway.listen(), b"\x16\x03\x01")?;
        let probe = ask(version::request("GET", gateway.listen()))?;
        ensure!(
            probe.starts_with("HTTP/1.1 200 ") && probe.contains("x-pushdown-state: serving"),
            "{probe}"
        );
        let refused = ask(get())?;
        ensure!(
            refused.starts_with("HTTP/1.1 503 ") && refused.contains("SlowDown"),
            "{refused}"
        );
        gateway.terminate()?;
        eventually("the gateway drains", TIMEOUT, || {
            Ok((gateway.page("/readyz")?.text() == "draining\n").then_some(()))
        })?;
        let probe = ask(version::request("HEAD", gateway.listen()))?;
        ensure!(probe.contains("x-pushdown-state: draining"), "{probe}");
        let refused = ask(get())?;
        ensure!(refused.contains("shutting down"), "{refused}");
        Ok(())
    })
}

/// The gateway reads a model for as long as this, and others are served meanwhile.
fn check_while_a_model_loads(models: &[&str], time: Duration) -> Result<()> {
    let folder = model_folder(models)?;
    let (_gateway, address) = version::Loading::start_in(
        folder.path(),
        "zz_endless.onnx",
        &["--upstream=http://127.0.0.1:1"],
    )?;
    let start = Instant::now();
    while start.elapsed() < time {
        let answer = in_time(|| version::request("GET", address).send(address))?;
        check(&answer, &FEATURES)?;
        thread::sleep(Duration::from_millis(50));
    }
    let models = Request::new("HEAD", "/_pushdown/v1/models").header("Host", &address.to_string());
    assert_eq!(models.send(address)?.status, 503);
    Ok(())
}

#[test]
fn a_gateway_that_loads_models_answers_probes() -> Result<()> {
    check_while_a_model_loads(&["tiny/digits"], Duration::from_secs(2))
}

#[test]
#[ignore = "20 seconds, and a model of half a gigabyte: make test-full"]
fn a_gateway_that_loads_models_for_20_seconds_answers_probes() -> Result<()> {
    check_while_a_model_loads(&["alexnet", "vgg19"], Duration::from_secs(20))
}

/// The CPU pool computes large photos, and others wait for it.
#[test]
fn a_gateway_with_a_queue_of_large_photos_answers_probes() -> Result<()> {
    let photo = photo(4_000, 3_000, "jpeg");
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n",
            photo.len()
        ))?;
        exchange.send(&photo)
    })?;
    let clients = Clients::new()?;
    let gateway = gateway_for(&origin, &["--threads=1", "--io-threads=1"])?;
    let request = |number: u32| {
        let target = format!("/bucket/{number}.jpg");
        let request = Request::new("GET", &target).header("Host", "gateway");
        request.header(
            "x-pushdown-pipeline",
            "decode | resize(2900, 2900) | resize(64, 64)",
        )
    };
    let mut queued = Vec::new();
    for number in 0..48 {
        let mut raw = clients.connect([127, 0, 0, 2], gateway.listen())?;
        raw.write(&request(number).head())?;
        queued.push(raw);
    }
    let in_flight = "pushdown_requests_in_flight{kind=\"pipeline\"}";
    eventually("photos are in flight", TIMEOUT, || {
        Ok((gateway.metric(in_flight)? > 24.0).then_some(()))
    })?;
    for _ in 0..20 {
        probe(&clients, [127, 0, 0, 1], &gateway)?;
    }
    ensure!(
        gateway.metric(in_flight)? > 8.0,
        "the queue was empty before the last probe"
    );
    drop(queued);
    Ok(())
}

/// A request for the store that shows itself slowly loses its chance to be a probe, and not its place among those that wait.
#[test]
fn a_silent_connection_waits_for_a_slot() -> Result<()> {
    let (origin, clients) = (silent_store()?, Clients::new()?);
    let gateway = gateway_for(
        &origin,
        &["--max-connections=2", "--max-connections-per-client=2"],
    )?;
    let held = busy(&clients, 2, 1, &origin, &gateway)?;
    let mut silent = clients.connect([127, 0, 0, 2], gateway.listen())?;
    // Longer than a connection may take to show that it is a probe: nothing but time shows that it is kept.
    thread::sleep(Duration::from_secs(3));
    drop(held);
    silent.write(&get().head())?;
    eventually("it is served", TIMEOUT, || {
        Ok((origin.requests().len() == 3).then_some(()))
    })
}
