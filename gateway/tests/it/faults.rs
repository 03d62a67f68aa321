//! A store that is down, slow, or disconnects in the middle of its answer.

use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use pushdown_testkit::{Gateway, Raw, Request, Response, ScriptedOrigin};

use super::{binary, gateway_for};

fn get() -> Request {
    Request::new("GET", "/bucket/key").header("Host", "gateway")
}

fn assert_error(answer: &Response, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.element("Code").as_deref(), Some(code));
    assert_eq!(answer.element("Resource").as_deref(), Some("/bucket/key"));
    assert_eq!(
        answer.element("RequestId").as_deref(),
        answer.header("x-amz-request-id")
    );
    assert!(
        answer
            .element("Message")
            .is_some_and(|message| !message.is_empty())
    );
    assert!(answer.header("date").is_some(), "{answer:?}");
}

#[test]
fn a_store_that_is_down_is_a_502() -> Result<()> {
    let unused_address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let gateway = Gateway::launch(binary(), [format!("--upstream=http://{unused_address}")])?;
    let answer = get().send(gateway.listen())?;
    assert_error(&answer, 502, "OriginUnavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let put = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .body("x")
        .send(gateway.listen())?;
    assert_error(&put, 502, "OriginUnavailable");
    let head = Request::new("HEAD", "/bucket/key")
        .header("Host", "gateway")
        .send(gateway.listen())?;
    assert_eq!((head.status, head.body.len()), (502, 0));
    assert_eq!(gateway.page("/readyz")?.status, 503);
    Ok(())
}

#[test]
fn a_silent_store_is_a_504_at_the_deadline() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop))?;
    let gateway = gateway_for(&origin, &["--origin-first-byte-timeout=200ms"])?;
    assert_error(&get().send(gateway.listen())?, 504, "OriginTimeout");
    let put = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .body("x")
        .send(gateway.listen())?;
    assert_error(&put, 504, "OriginTimeout");
    Ok(())
}

#[test]
fn an_upload_in_progress_has_no_deadline() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.skip(10)?;
        exchange.answer("200 OK", "")
    })?;
    let gateway = gateway_for(&origin, &["--origin-first-byte-timeout=300ms"])?;
    let mut raw = Raw::connect(gateway.listen())?;
    let put = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .header("Content-Length", "10");
    raw.write(&put.head())?;
    for _ in 0..10 {
        // The pace of a slow client, not a wait for an event.
        sleep(Duration::from_millis(100));
        raw.write(b".")?;
    }
    assert_eq!(raw.read("PUT")?.status, 200);
    Ok(())
}

#[test]
fn a_client_that_stops_sending_gets_a_timeout_error() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop))?;
    let gateway = gateway_for(&origin, &["--client-idle-timeout=200ms"])?;
    let mut raw = Raw::connect(gateway.listen())?;
    let put = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .header("Content-Length", "10");
    raw.write(&put.head())?;
    raw.write(b".")?;
    assert_error(&raw.read("PUT")?, 400, "RequestTimeout");
    Ok(())
}

#[test]
fn a_store_lost_in_mid_answer_aborts_the_answer() -> Result<()> {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nten bytes.\r\n",
    ] {
        let origin = ScriptedOrigin::start(move |exchange| {
            exchange.send(head)?;
            exchange.close();
            Ok(())
        })?;
        let gateway = gateway_for(&origin, &[])?;
        let mut raw = Raw::connect(gateway.listen())?;
        raw.write(&get().head())?;
        let answer = raw.begin("GET")?;
        assert_eq!(answer.head.status, 200);
        let cut = answer.finish().expect_err("a truncated answer looks complete");
        assert!(cut.to_string().contains("truncated body"), "{cut}");
    }
    Ok(())
}

#[test]
fn a_store_silent_in_mid_answer_aborts_the_answer() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.")?;
        exchange.wait_for_close().map(drop)
    })?;
    let gateway = gateway_for(&origin, &["--origin-idle-timeout=200ms"])?;
    let cut = get()
        .send(gateway.listen())
        .expect_err("a truncated answer looks complete");
    assert!(format!("{cut:#}").contains("truncated body"), "{cut:#}");
    Ok(())
}

#[test]
fn a_slow_client_does_not_trigger_the_store_timeout() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        let body = "x".repeat(32 << 20);
        exchange.answer("200 OK", &body)
    })?;
    let gateway = gateway_for(&origin, &["--origin-idle-timeout=200ms"])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&get().head())?;
    let mut answer = raw.begin("GET")?;
    answer.skip(1 << 20)?;
    // Longer than the idle timeout of the store, while the buffers between are full.
    sleep(Duration::from_millis(600));
    answer.skip(31 << 20)
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")?;
        let piece = vec![7; 1 << 20];
        while exchange.send(&piece).is_ok() {}
        exchange.close();
        Ok(())
    })?;
    let gateway = gateway_for(&origin, &["--client-idle-timeout=200ms"])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&get().head())?;
    pushdown_testkit::eventually("the stalled answer ends", Duration::from_secs(20), || {
        let started = gateway.metric("pushdown_requests_total{kind=\"forward\",status=\"2xx\"}")? >= 1.0;
        let ended = gateway.metric("pushdown_requests_in_flight{kind=\"forward\"}")? == 0.0;
        Ok((started && ended).then_some(()))
    })
}

#[test]
fn a_read_on_a_closed_store_connection_is_retried() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        if exchange.earlier_requests == 1 {
            exchange.close();
            return Ok(());
        }
        exchange.answer("200 OK", "object")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    assert_eq!(get().send(gateway.listen())?.text(), "object");
    assert_eq!(get().send(gateway.listen())?.text(), "object");
    assert_eq!(
        origin.requests().len(),
        3,
        "one request, one closed by the store, one retry"
    );
    Ok(())
}

#[test]
fn requests_with_side_effects_are_never_sent_twice() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.close();
        Ok(())
    })?;
    let gateway = gateway_for(&origin, &[])?;
    for (method, sent) in [("DELETE", 1), ("POST", 1), ("GET", 2)] {
        let before = origin.requests().len();
        let answer = Request::new(method, "/bucket/key")
            .header("Host", "gateway")
            .send(gateway.listen())?;
        assert_error(&answer, 502, "OriginUnavailable");
        assert_eq!(origin.requests().len() - before, sent, "{method}");
    }
    Ok(())
}

#[test]
fn errors_of_the_store_are_forwarded_unchanged() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send(
            "HTTP/1.1 503 Come Back Later\r\nRetry-After: 7\r\nServer: a\r\nX-Odd: 1\r\nX-Odd: 2\r\n\
             Content-Length: 3\r\n\r\nno!",
        )
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let answer = get().send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.reason.as_str(), answer.text().as_str()),
        (503, "Come Back Later", "no!")
    );
    let names: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    assert_eq!(
        names,
        [
            "Retry-After: 7",
            "Server: a",
            "X-Odd: 1",
            "X-Odd: 2",
            "Content-Length: 3"
        ]
    );
    Ok(())
}

/// Values sent by a client must not add log lines or control the terminal that shows the log.
#[test]
fn header_values_cannot_inject_log_lines() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let gateway = gateway_for(&origin, &["--log-format=text"])?;
    for name in ["split", "seed", "epoch"] {
        let target =
            format!("/b/k?x-pushdown-pipeline=decode&x-pushdown-{name}=1%0D%0AINFO%20forged%1B%5B2K");
        let answer = Request::new("GET", &target)
            .header("Host", "gateway")
            .send(gateway.listen())?;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let log = gateway.log()?;
    let escaped = log
        .lines()
        .filter(|line| line.contains(r"\r\nINFO forged\u{1b}[2K"));
    assert_eq!(escaped.count(), 3, "{log}");
    assert!(
        !log.contains('\u{1b}') && !log.lines().any(|line| line.starts_with("INFO forged")),
        "{log}"
    );
    Ok(())
}
