//! Start, readiness, TLS, drain, and the embedded store.

use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Gateway, Keys, Payload, Raw, Request, ScriptedOrigin, eventually};

use super::{binary, gateway_for, tls::Authority, version};

const TIMEOUT: Duration = Duration::from_secs(20);

fn get() -> Request {
    Request::new("GET", "/bucket/key").header("Host", "gateway")
}

#[test]
fn a_drain_finishes_answers_in_flight_and_refuses_new_requests() -> Result<()> {
    let (resume, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")?;
        wait.lock().recv_timeout(TIMEOUT).map_err(std::io::Error::other)?;
        exchange.send("after")
    })?;
    let mut gateway = gateway_for(&origin, &[])?;
    let mut idle = Raw::connect(gateway.listen())?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&get().head())?;
    let mut answer = raw.begin("GET")?;
    assert_eq!(answer.read_exact(5)?, b"first");

    gateway.terminate()?;
    eventually("the gateway drains", TIMEOUT, || {
        Ok((gateway.page("/readyz")?.text() == "draining\n").then_some(()))
    })?;
    for _ in 0..3 {
        let refused = get().send(gateway.listen())?;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.element("Code").as_deref(), Some("SlowDown"));
        ensure!(refused.text().contains("shutting down"), "{}", refused.text());
        let probe = version::request("GET", gateway.listen());
        version::check_state(&probe.send(gateway.listen())?, &version::FEATURES, "draining")?;
        let head = version::request("HEAD", gateway.listen()).send(gateway.listen())?;
        assert_eq!(
            (head.status, head.header("x-pushdown-state")),
            (200, Some("draining"))
        );
    }
    // The others are of /readyz.
    let forwarded = origin.requests();
    let forwarded = forwarded
        .iter()
        .filter(|head| head.starts_with("GET /bucket/key "));
    assert_eq!(forwarded.count(), 1);
    assert_eq!(gateway.page("/healthz")?.status, 200);
    assert!(idle.is_closed()?, "an idle connection delays the drain");
    // Neither a silent connection nor an unfinished probe delays it.
    let mut silent = Raw::connect(gateway.listen())?;
    let mut unfinished = Raw::connect(gateway.listen())?;
    unfinished.write(b"HEAD /_pushdown/v1/version HTTP/1.1\r\n")?;
    resume.send(())?;
    assert_eq!(answer.read_exact(5)?, b"after");
    let end = Instant::now();
    assert_eq!(gateway.wait(TIMEOUT)?.code(), Some(0), "{}", gateway.log()?);
    ensure!(
        end.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        end.elapsed()
    );
    assert!(silent.is_closed()? && unfinished.is_closed()?);
    assert!(TcpStream::connect(gateway.listen()).is_err());
    Ok(())
}

#[test]
fn a_drain_ends_at_its_timeout() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")?;
        exchange.wait_for_close().map(drop)
    })?;
    let mut gateway = gateway_for(&origin, &["--drain-timeout=200ms"])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&get().head())?;
    let answer = raw.begin("GET")?;
    gateway.terminate()?;
    assert_eq!(gateway.wait(TIMEOUT)?.code(), Some(0));
    answer.finish().expect_err("a truncated answer looks complete");
    assert!(gateway.log()?.contains("connections were cut"));
    Ok(())
}

/// As an idle connection, one whose handshake has not ended.
#[test]
fn a_handshake_does_not_delay_the_drain() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let authority = Authority::new()?;
    let (certificate, key) = authority.issue(&["gateway.example"])?;
    let certificate = format!("--tls-cert={}", certificate.display());
    let mut gateway = gateway_for(&origin, &[&certificate, &format!("--tls-key={}", key.display())])?;
    let mut silent = Raw::connect(gateway.listen())?;
    eventually("it has a slot", TIMEOUT, || {
        Ok((gateway.metric("pushdown_connections")? > 0.5).then_some(()))
    })?;
    gateway.terminate()?;
    assert_eq!(gateway.wait(TIMEOUT)?.code(), Some(0), "{}", gateway.log()?);
    assert!(silent.is_closed()?);
    Ok(())
}

#[test]
fn listening_beyond_loopback_is_logged() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let loopback = gateway_for(&origin, &[])?;
    assert!(!loopback.log()?.contains("is not a loopback address"));
    let open = gateway_for(&origin, &["--listen=0.0.0.0:0"])?;
    assert!(open.log()?.contains("is not a loopback address"));
    assert!(open.log()?.contains("\"message\":\"listening\""));
    Ok(())
}

#[test]
fn secrets_are_not_logged() -> Result<()> {
    let keys = Keys::new("accesskey", "hunter2hunter2");
    let gateway = Gateway::embedded(binary(), &keys, ["--log-level=debug"])?;
    let host = gateway.listen().to_string();
    let request = Request::new("GET", "/bucket/key").header("Host", &host);
    keys.presign(request, TIMEOUT)?.send(gateway.listen())?;
    let log = gateway.log()?;
    assert!(log.contains("\"configuration\"") && log.contains("***"));
    assert!(!log.contains("hunter2"), "{log}");
    assert!(!log.contains("X-Amz-Signature"), "{log}");
    Ok(())
}

#[test]
fn a_port_in_use_is_an_error_at_start() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let first = gateway_for(&origin, &[])?;
    let upstream = format!("--upstream=http://{}", origin.address());
    let second = Gateway::launch(binary(), [upstream, format!("--listen={}", first.listen())]);
    let error = format!("{:#}", second.expect_err("two gateways on one port"));
    assert!(error.contains("listen 127.0.0.1"), "{error}");
    Ok(())
}

/// One gateway serves TLS and is the upstream of another. The certificate is generated for the test.
#[test]
fn tls_to_clients_and_to_the_store() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, generated.cert.pem())?;
    std::fs::write(&key, generated.signing_key.serialize_pem())?;
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "through two gateways"))?;
    let cert_flag = format!("--tls-cert={}", certificate.display());
    let inner = gateway_for(&origin, &[&cert_flag, &format!("--tls-key={}", key.display())])?;
    let upstream = format!("--upstream=https://{}", inner.listen());
    let outer = Gateway::launch(
        binary(),
        [&upstream, &format!("--upstream-ca={}", certificate.display())],
    )?;
    assert_eq!(get().send(outer.listen())?.text(), "through two gateways");

    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(&certificate, other.cert.pem())?;
    let untrusting = Gateway::launch(
        binary(),
        [&upstream, &format!("--upstream-ca={}", certificate.display())],
    )?;
    assert_eq!(get().send(untrusting.listen())?.status, 502);
    Ok(())
}

#[test]
fn the_embedded_store_persists_its_objects() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let keys = Keys::new("accesskey", "secretkey");
    let store = folder.path().join("not/yet/there");
    let flags = [
        format!("--store={}", store.display()),
        format!("--access-key={}", keys.access),
        format!("--secret-key={}", keys.secret),
    ];
    let send = |gateway: &Gateway, method: &str, target: &str, body: &str| {
        let request = Request::new(method, target)
            .header("Host", &gateway.listen().to_string())
            .body(body);
        keys.sign(request, Payload::Signed)?.send(gateway.listen())
    };
    let mut first = Gateway::launch(binary(), &flags)?;
    assert_eq!(send(&first, "PUT", "/bucket", "")?.status, 200);
    assert_eq!(send(&first, "PUT", "/bucket/key", "kept")?.status, 200);
    first.terminate()?;
    first.wait(TIMEOUT).context("the first gateway does not exit")?;
    let second = Gateway::launch(binary(), &flags)?;
    assert_eq!(send(&second, "GET", "/bucket/key", "")?.text(), "kept");
    Ok(())
}

/// A symbolic link in the folder of the store may point anywhere; S3 requests reach nothing outside of the folder.
#[test]
fn the_embedded_store_follows_no_link_out_of_its_folder() -> Result<()> {
    let (folder, outside) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "outside")?;
    std::fs::create_dir(folder.path().join("bucket"))?;
    std::fs::write(folder.path().join("bucket/file"), "inside")?;
    std::os::unix::fs::symlink(&secret, folder.path().join("bucket/secret"))?;
    std::os::unix::fs::symlink(outside.path(), folder.path().join("bucket/out"))?;
    std::os::unix::fs::symlink("file", folder.path().join("bucket/within"))?;
    let keys = Keys::new("accesskey", "secretkey");
    let gateway = Gateway::launch(
        binary(),
        [
            format!("--store={}", folder.path().display()),
            format!("--access-key={}", keys.access),
            format!("--secret-key={}", keys.secret),
        ],
    )?;
    let send = |method: &str, target: &str, source: Option<&str>, body: &str| {
        let mut request = Request::new(method, target).header("Host", &gateway.listen().to_string());
        if let Some(source) = source {
            request = request.header("x-amz-copy-source", source);
        }
        keys.sign(request.body(body), Payload::Signed)?
            .send(gateway.listen())
    };
    let delete = "<Delete><Object><Key>out/secret</Key></Object></Delete>";
    for (method, target, source, body) in [
        ("GET", "/bucket/secret", None, ""),
        ("HEAD", "/bucket/out/secret", None, ""),
        ("PUT", "/bucket/out/new", None, "new"),
        ("DELETE", "/bucket/out/secret", None, ""),
        ("POST", "/bucket?delete", None, delete),
        ("PUT", "/bucket/copy", Some("/bucket/secret"), ""),
    ] {
        let answer = send(method, target, source, body)?;
        assert_eq!(answer.status, 403, "{method} {target} {answer:?}");
    }
    assert_eq!(std::fs::read_to_string(&secret)?, "outside");
    assert!(!outside.path().join("new").exists() && !folder.path().join("bucket/copy").exists());
    assert_eq!(send("GET", "/bucket/within", None, "")?.text(), "inside");
    Ok(())
}
