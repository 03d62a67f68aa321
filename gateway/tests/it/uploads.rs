//! Uploads: `Expect: 100-continue`, memory use, and disconnects.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pushdown_testkit::{Backend, Keys, Payload, Raw, Request, ScriptedOrigin, eventually};

use super::{binary, gateway_for};

const TIMEOUT: Duration = Duration::from_secs(20);

fn put(length: u64) -> Request {
    Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .header("Content-Length", &length.to_string())
}

fn put_head_with_expect(length: u64) -> Vec<u8> {
    put(length).header("Expect", "100-continue").head()
}

#[test]
fn a_refused_upload_gets_no_continue() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", "<Error/>"))?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put_head_with_expect(1 << 20))?;
    let answer = raw.read("PUT")?;
    assert_eq!((answer.status, answer.text().as_str()), (403, "<Error/>"));
    assert_eq!(
        answer.informational, [0; 0],
        "the gateway sent 100 Continue before the refusal"
    );
    assert!(
        raw.is_closed()?,
        "the connection must close: the rest of the body is unread"
    );
    eventually("the connection to the store is closed", TIMEOUT, || {
        Ok((gateway.metric("pushdown_requests_in_flight{kind=\"forward\"}")? == 0.0).then_some(()))
    })
}

/// The embedded store refuses an unknown caller at once; SeaweedFS reads the body first.
#[test]
fn the_store_decides_the_first_status_line() -> Result<()> {
    for (backend, refusal) in [(Backend::Embedded, 403), (Backend::SeaweedFs, 100)] {
        if !backend.is_enabled()? {
            continue;
        }
        let store = backend.start(binary())?;
        for (keys, first) in [(Keys::new("nobody", "knows"), refusal), (store.keys.clone(), 100)] {
            let request = Request::new("PUT", "/expect-bucket/key")
                .header("Host", &store.gateway.listen().to_string())
                .header("Content-Length", "1000000")
                .header("Expect", "100-continue");
            let head = keys.sign(request, Payload::Unsigned)?.head();
            for address in [store.address, store.gateway.listen()] {
                let mut raw = Raw::connect(address)?;
                raw.write(&head)?;
                let status = raw.head()?.status;
                ensure!(
                    status == first,
                    "{backend}: {status} from {address}, for {}",
                    keys.access
                );
            }
        }
    }
    Ok(())
}

#[test]
fn continue_is_sent_when_the_store_sends_it() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        let body = exchange.read(5)?;
        exchange.answer("200 OK", &String::from_utf8_lossy(&body))
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put_head_with_expect(5))?;
    assert_eq!(raw.head()?.status, 100);
    raw.write(b"hello")?;
    let answer = raw.read("PUT")?;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    Ok(())
}

#[test]
fn a_store_that_ignores_expect_receives_the_body_after_one_second() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        let body = exchange.read(5)?;
        exchange.answer("200 OK", &String::from_utf8_lossy(&body))
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put_head_with_expect(5))?;
    assert_eq!(raw.head()?.status, 100);
    raw.write(b"hello")?;
    assert_eq!(raw.read("PUT")?.text(), "hello");
    Ok(())
}

#[test]
fn large_bodies_are_forwarded_both_ways_in_constant_memory() -> Result<()> {
    let size = upload_bytes()?;
    let origin = ScriptedOrigin::start(move |exchange| {
        if exchange.head.starts_with("PUT") {
            exchange.skip(size)?;
            return exchange.answer("200 OK", "");
        }
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"))?;
        let piece = vec![7; 1 << 20];
        (0..size >> 20).try_for_each(|_| exchange.send(&piece))
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let before = gateway.resident_memory()?;

    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put(size).head())?;
    let piece = vec![7; 1 << 20];
    for _ in 0..size >> 20 {
        raw.write(&piece)?;
    }
    assert_eq!(raw.read("PUT")?.status, 200);

    raw.write(
        &Request::new("GET", "/bucket/key")
            .header("Host", "gateway")
            .head(),
    )?;
    raw.begin("GET")?.skip(size)?;

    let grown = gateway.peak_memory()?.saturating_sub(before);
    ensure!(
        grown < 32 << 20,
        "{size} bytes each way took {grown} bytes of memory"
    );
    Ok(())
}

/// Size of the large body in bytes. `PUSHDOWN_TEST_UPLOAD` sets it in MiB: 256 by default, 5120 to test uploads of 5 GiB.
fn upload_bytes() -> Result<u64> {
    let Some(mebibytes) = std::env::var_os("PUSHDOWN_TEST_UPLOAD") else {
        return Ok(256 << 20);
    };
    let mebibytes = mebibytes.to_str().context("PUSHDOWN_TEST_UPLOAD is not text")?;
    Ok(mebibytes
        .parse::<u64>()
        .context("PUSHDOWN_TEST_UPLOAD is not a number of MiB")?
        << 20)
}

#[test]
fn a_disconnect_in_mid_upload_creates_no_object() -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.skip(1000)?;
        sender.send(0).map_err(std::io::Error::other)?;
        let rest = exchange.wait_for_close()?;
        exchange.close();
        sender.send(rest).map_err(std::io::Error::other)
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put(100_000).head())?;
    raw.write(&[0; 2000])?;
    receiver
        .recv_timeout(TIMEOUT)
        .context("the store receives nothing")?;
    drop(raw);
    let rest = receiver
        .recv_timeout(TIMEOUT)
        .context("the connection to the store stays open")?;
    assert!(
        rest <= 1000,
        "the store received {rest} bytes that the client did not send"
    );
    eventually("no request is in flight", TIMEOUT, || {
        Ok((gateway.metric("pushdown_requests_in_flight{kind=\"forward\"}")? == 0.0).then_some(()))
    })
}

#[test]
fn a_disconnect_in_mid_answer_closes_the_store_connection() -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")?;
        let piece = vec![7; 1 << 20];
        while exchange.send(&piece).is_ok() {}
        sender.send(()).map_err(std::io::Error::other)
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(
        &Request::new("GET", "/bucket/key")
            .header("Host", "gateway")
            .head(),
    )?;
    raw.begin("GET")?.skip(1000)?;
    drop(raw);
    receiver
        .recv_timeout(TIMEOUT)
        .context("the store is still sending")?;
    Ok(())
}

#[test]
fn a_disconnect_before_the_answer_closes_the_store_connection() -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.wait_for_close()?;
        exchange.close();
        sender.send(()).map_err(std::io::Error::other)
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(
        &Request::new("GET", "/bucket/key")
            .header("Host", "gateway")
            .head(),
    )?;
    eventually("the store has the request", TIMEOUT, || {
        Ok((!origin.requests().is_empty()).then_some(()))
    })?;
    drop(raw);
    receiver
        .recv_timeout(TIMEOUT)
        .context("the connection to the store stays open")?;
    Ok(())
}
