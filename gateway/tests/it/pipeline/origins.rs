//! Stores that are down, slow, or disconnect in mid-answer; clients that disconnect.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample};
use pushdown_testkit::{Gateway, Raw, Request, ScriptedOrigin};

use super::{SHORT, batch, photo};
use crate::it::{binary, gateway_for};

fn get(gateway: &Gateway) -> Request {
    Request::new("GET", "/photos/cat.jpg")
        .header("Host", &gateway.listen().to_string())
        .header("x-pushdown-pipeline", SHORT)
}

#[test]
fn a_store_that_is_down_is_502_with_retry_after() -> Result<()> {
    let gateway = Gateway::launch(binary(), ["--upstream=http://127.0.0.1:9"])?;
    let answer = get(&gateway).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (502, Some("OriginUnavailable"))
    );
    assert!(answer.header("retry-after").is_some());
    Ok(())
}

#[test]
fn a_slow_store_is_504_at_the_deadline() -> Result<()> {
    for silent_after in ["", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n\u{1}"] {
        let origin = ScriptedOrigin::start(move |exchange| {
            exchange.send(silent_after)?;
            exchange.wait_for_close().map(drop)
        })?;
        let gateway = gateway_for(
            &origin,
            &["--origin-first-byte-timeout=300ms", "--origin-idle-timeout=300ms"],
        )?;
        let answer = get(&gateway).send(gateway.listen())?;
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (504, Some("OriginTimeout")),
            "{silent_after}"
        );
    }
    Ok(())
}

#[test]
fn a_store_lost_in_mid_object_is_502() -> Result<()> {
    let object = photo(300, 300, "jpeg");
    let half = object[..object.len() / 2].to_vec();
    let length = object.len();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))?;
        exchange.send(&half)?;
        exchange.close();
        Ok(())
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let answer = get(&gateway).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (502, Some("OriginUnavailable"))
    );
    Ok(())
}

/// The message in a row is text, whatever XML needed to quote in it.
#[test]
fn a_row_has_the_message_of_the_store_without_xml_escapes() -> Result<()> {
    let document = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>A &amp; B &lt;C&gt; &#39;D&#39;</Message></Error>";
    let origin = ScriptedOrigin::start(move |exchange| exchange.answer("403 Forbidden", document))?;
    let gateway = gateway_for(&origin, &[])?;
    let sample = BatchSample::new("/photos/cat.jpg", "0".repeat(64));
    let presign = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261101%2Fus-east-1%2Fs3%2Faws4_request\
                   &X-Amz-Date=20261101T000000Z&X-Amz-Expires=300&X-Amz-SignedHeaders=host";
    let request = BatchRequest::new(SHORT.parse()?, presign, vec![sample]);
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &gateway.listen().to_string())
        .body(request.to_json()?)
        .send(gateway.listen())?;
    let rows = batch::rows(answer)?;
    let Err(error) = &rows[0].value else {
        anyhow::bail!("expected an error, found a value");
    };
    ensure!(error.code == "AccessDenied", "{error}");
    ensure!(
        error.message == "the store answered 403: A & B <C> 'D'",
        "{error}"
    );
    Ok(())
}

#[test]
fn a_store_lost_while_an_object_is_streamed_aborts_the_answer() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
        exchange.send(vec![b'x'; 500_000])?;
        exchange.close();
        Ok(())
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let answer = get(&gateway)
        .header("x-pushdown-split", "0")
        .send(gateway.listen());
    assert!(answer.is_err(), "a truncated body must not look complete");
    Ok(())
}

#[test]
fn a_disconnect_cancels_the_read_of_the_object() -> Result<()> {
    let (started, start_seen) = mpsc::channel();
    let (closed, close_seen) = mpsc::channel();
    let origin = ScriptedOrigin::start(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx")?;
        started.send(()).ok();
        exchange.wait_for_close()?;
        closed.send(()).ok();
        Ok(())
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway).head())?;
    start_seen.recv_timeout(Duration::from_secs(20))?;
    drop(client);
    close_seen.recv_timeout(Duration::from_secs(20))?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while gateway.metric("pushdown_memory_reserved_bytes")? > 0.0 {
        assert!(
            Instant::now() < deadline,
            "the permit is in use after the client disconnected"
        );
        std::thread::yield_now();
    }
    Ok(())
}
