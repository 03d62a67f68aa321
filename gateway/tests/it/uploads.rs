//! Bodies on their way to the store.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pushdown_testkit::{Backend, Keys, Payload, Raw, Request, ScriptedOrigin, eventually};

use super::{binary, gateway_for};

const LIMIT: Duration = Duration::from_secs(20);

fn put(length: u64) -> Request {
    Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .header("Content-Length", &length.to_string())
}

fn expecting(length: u64) -> Vec<u8> {
    put(length).header("Expect", "100-continue").head()
}

#[test]
fn a_refused_body_is_not_asked_for() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", "<Error/>"))?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&expecting(1 << 20))?;
    let answer = raw.read("PUT")?;
    assert_eq!((answer.status, answer.text().as_str()), (403, "<Error/>"));
    assert_eq!(
        answer.informational, [0; 0],
        "told to continue before it was refused"
    );
    assert!(raw.is_closed()?, "an unread body cannot be skipped over");
    eventually("the store's connection is given up", LIMIT, || {
        Ok((gateway.metric("pushdown_in_flight{kind=\"forward\"}")? == 0.0).then_some(()))
    })
}

/// The embedded store refuses an unknown caller at once; SeaweedFS wants the body first.
#[test]
fn the_first_word_is_the_stores() -> Result<()> {
    for (backend, refusal) in [(Backend::Embedded, 403), (Backend::SeaweedFs, 100)] {
        if !backend.is_wanted()? {
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
                let word = raw.head()?.status;
                ensure!(
                    word == first,
                    "{backend}: {word} from {address}, for {}",
                    keys.access
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_wanted_body_is_asked_for_once_the_store_wants_it() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        let body = exchange.read(5)?;
        exchange.answer("200 OK", &String::from_utf8_lossy(&body))
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&expecting(5))?;
    assert_eq!(raw.head()?.status, 100);
    raw.write(b"hello")?;
    let answer = raw.read("PUT")?;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    Ok(())
}

#[test]
fn a_store_that_ignores_expect_gets_the_body_after_a_second() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        let body = exchange.read(5)?;
        exchange.answer("200 OK", &String::from_utf8_lossy(&body))
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&expecting(5))?;
    assert_eq!(raw.head()?.status, 100);
    raw.write(b"hello")?;
    assert_eq!(raw.read("PUT")?.text(), "hello");
    Ok(())
}

#[test]
fn bodies_pass_both_ways_in_constant_memory() -> Result<()> {
    let size = upload_size()?;
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

/// Bytes of the big body: `PUSHDOWN_TEST_UPLOAD`, in MiB; 256 by default, 5120 where the claim is 5 GiB.
fn upload_size() -> Result<u64> {
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
fn a_client_that_leaves_in_mid_upload_leaves_no_object() -> Result<()> {
    let (said, heard) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.skip(1000)?;
        said.send(0).map_err(std::io::Error::other)?;
        let rest = exchange.wait_for_close()?;
        exchange.close();
        said.send(rest).map_err(std::io::Error::other)
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&put(100_000).head())?;
    raw.write(&[0; 2000])?;
    heard.recv_timeout(LIMIT).context("the store gets nothing")?;
    drop(raw);
    let rest = heard
        .recv_timeout(LIMIT)
        .context("the store's connection stays open")?;
    assert!(rest <= 1000, "the store got {rest} bytes that nobody sent");
    eventually("nothing is in flight", LIMIT, || {
        Ok((gateway.metric("pushdown_in_flight{kind=\"forward\"}")? == 0.0).then_some(()))
    })
}

#[test]
fn a_client_that_leaves_in_mid_answer_frees_the_store() -> Result<()> {
    let (said, heard) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")?;
        let piece = vec![7; 1 << 20];
        while exchange.send(&piece).is_ok() {}
        said.send(()).map_err(std::io::Error::other)
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
    heard.recv_timeout(LIMIT).context("the store still sends")?;
    Ok(())
}

#[test]
fn a_client_that_leaves_before_the_answer_frees_the_store() -> Result<()> {
    let (said, heard) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.wait_for_close()?;
        exchange.close();
        said.send(()).map_err(std::io::Error::other)
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(
        &Request::new("GET", "/bucket/key")
            .header("Host", "gateway")
            .head(),
    )?;
    eventually("the store has the request", LIMIT, || {
        Ok((!origin.requests().is_empty()).then_some(()))
    })?;
    drop(raw);
    heard
        .recv_timeout(LIMIT)
        .context("the store's connection stays open")?;
    Ok(())
}
