//! Requests refused before the store is asked, and requests forwarded unchanged.

use anyhow::Result;
use pushdown_testkit::{Keys, Payload, Raw, Request, Response, ScriptedOrigin};

use super::gateway_for;

/// Sends raw bytes, and returns the answer and the number of requests that reached the store.
fn send_raw(bytes: &str) -> Result<(Response, usize)> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "reached"))?;
    let gateway = gateway_for(&origin, &[])?;
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(bytes.as_bytes())?;
    let answer = raw.read("GET")?;
    Ok((answer, origin.requests().len()))
}

fn assert_refused(bytes: &str, status: u16, code: &str) -> Result<()> {
    let (answer, reached) = send_raw(bytes)?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (status, Some(code)),
        "{bytes}"
    );
    assert_eq!(reached, 0, "the store was asked: {bytes}");
    Ok(())
}

#[test]
fn the_store_is_the_only_destination() -> Result<()> {
    assert_refused(
        "GET http://elsewhere/b/k HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
        400,
        "InvalidRequest",
    )?;
    assert_refused(
        "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n",
        405,
        "MethodNotAllowed",
    )
}

#[test]
fn protocol_upgrades_are_refused() -> Result<()> {
    let upgrade = "GET /b/k HTTP/1.1\r\nHost: gateway\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n";
    assert_refused(upgrade, 405, "MethodNotAllowed")
}

#[test]
fn exactly_one_host_header_is_required() -> Result<()> {
    assert_refused(
        "GET /b/k HTTP/1.1\r\nHost: one\r\nHost: two\r\n\r\n",
        400,
        "InvalidRequest",
    )?;
    assert_refused("GET /b/k HTTP/1.1\r\nAccept: */*\r\n\r\n", 400, "InvalidRequest")
}

#[test]
fn a_signed_header_named_in_connection_is_refused() -> Result<()> {
    let request = Request::new("GET", "/b/k")
        .header("Host", "gateway")
        .header("X-Amz-Meta-A", "1");
    let signed = Keys::new("ak", "sk")
        .sign(request, Payload::Signed)?
        .header("Connection", "x-amz-meta-a");
    assert_refused(&String::from_utf8_lossy(&signed.head()), 400, "InvalidRequest")
}

/// `count` headers whose names begin with `prefix`.
fn numbered_headers(prefix: &str, count: usize) -> String {
    let lines = (0..count).map(|index| format!("{prefix}{index}: {index}"));
    lines.collect::<Vec<_>>().join("\r\n") + "\r\n"
}

#[test]
fn the_size_and_number_of_headers_are_limited() -> Result<()> {
    let long = format!("X-Long: {}\r\n", "x".repeat(100_000));
    let many = numbered_headers("X-", 5000);
    for headers in [long, many] {
        let request = format!("GET /b/k HTTP/1.1\r\nHost: gateway\r\n{headers}\r\n");
        assert_refused(&request, 431, "RequestHeaderSectionTooLarge")?;
    }
    Ok(())
}

#[test]
fn an_invalid_request_head_is_refused_with_its_status() -> Result<()> {
    assert_refused("GET /b/k HTTP/1.1\r\nHost gateway\r\n\r\n", 400, "InvalidRequest")?;
    assert_refused(
        "GET /b/k HTTP/9.1\r\nHost: gateway\r\n\r\n",
        400,
        "InvalidRequest",
    )?;
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "reached"))?;
    let gateway = gateway_for(&origin, &["--max-header-bytes=128KiB"])?;
    let answer = Request::new("GET", &format!("/b/{}", "x".repeat(70_000)))
        .header("Host", "gateway")
        .send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (414, Some("InvalidURI"))
    );
    assert_eq!(answer.header("connection"), Some("close"));
    Ok(())
}

/// S3 limits metadata to 2 KiB but not the number of entries, each of which is a header.
#[test]
fn a_thousand_headers_are_forwarded_both_ways() -> Result<()> {
    let headers = numbered_headers("x-amz-meta-", 1000);
    let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\nx-last: 1\r\n\r\n");
    let origin = ScriptedOrigin::start(move |exchange| exchange.send(&answer))?;
    let gateway = gateway_for(&origin, &[])?;
    let request =
        format!("PUT /b/k HTTP/1.1\r\nHost: gateway\r\n{headers}Content-Length: 0\r\nx-last: 1\r\n\r\n");
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(request.as_bytes())?;
    let answer = raw.read("PUT")?;
    assert_eq!((answer.status, answer.headers.len()), (200, 1002));
    assert_eq!(answer.header("x-amz-meta-999"), Some("999"));
    assert_eq!(origin.requests(), [request]);
    Ok(())
}

#[test]
fn an_answer_with_too_many_headers_is_502() -> Result<()> {
    let headers = numbered_headers("x-", 5000);
    let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n");
    let origin = ScriptedOrigin::start(move |exchange| exchange.send(&answer))?;
    let gateway = gateway_for(&origin, &[])?;
    let answer = Request::new("GET", "/b/k")
        .header("Host", "gateway")
        .send(gateway.listen())?;
    assert_eq!(answer.status, 502);
    assert_eq!(
        answer.element("Message").as_deref(),
        Some(
            "the headers of the store&apos;s answer are too large: expected at most 131072 bytes and 4096 headers"
        )
    );
    Ok(())
}

#[test]
fn a_content_length_of_zero_keeps_its_position() -> Result<()> {
    for (method, status) in [
        ("GET", "200 OK"),
        ("DELETE", "204 No Content"),
        ("PUT", "403 Forbidden"),
    ] {
        let answer = format!(
            "HTTP/1.1 {status}\r\nETag: \"e\"\r\nContent-Length: 0\r\nServer: s\r\nx-amz-id-2: 1\r\n\r\n"
        );
        let origin = ScriptedOrigin::start(move |exchange| exchange.send(&answer))?;
        let gateway = gateway_for(&origin, &[])?;
        let answer = Request::new(method, "/b/k")
            .header("Host", "gateway")
            .send(gateway.listen())?;
        let names: Vec<_> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["ETag", "Content-Length", "Server", "x-amz-id-2"],
            "{method}"
        );
    }
    Ok(())
}

#[test]
fn a_request_is_forwarded_unchanged() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    let lines = [
        "GET //b//a%2fb%2B+c;d=e,f'(g)!%20%C3%BC?list-type=2&x=%2f+&y&=z HTTP/1.1",
        "Host: Some.Where:1234",
        "X-AMZ-Meta-B: 1",
        "X-AMZ-Meta-B: 2",
        "x-amz-meta-a: with  inner  spaces",
        "Accept-Encoding: identity",
        "TE-like: kept",
        "User-Agent: some one/1.0",
    ];
    let request = format!("{}\r\n\r\n", lines.join("\r\n"));
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(request.as_bytes())?;
    raw.read("GET")?;
    assert_eq!(origin.requests(), [request]);
    Ok(())
}

/// The gateway does not implement S3 Select: its signature permits a POST, not a read of the object.
#[test]
fn s3_select_is_forwarded_to_the_store() -> Result<()> {
    let events = "\u{0}\u{1}records\r\n\u{2}end";
    let origin = ScriptedOrigin::start(move |exchange| exchange.answer("200 OK", events))?;
    let gateway = gateway_for(&origin, &[])?;
    let query = "<SelectObjectContentRequest><Expression>select * from s3object</Expression></SelectObjectContentRequest>";
    let request = Request::new("POST", "/b/t.parquet?select&select-type=2")
        .header("Host", &gateway.listen().to_string())
        .header(
            "Authorization",
            "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request",
        )
        .body(query);
    let answer = request.send(gateway.listen())?;
    assert_eq!((answer.status, answer.body.as_slice()), (200, events.as_bytes()));
    let forwarded = &origin.requests()[0];
    assert!(
        forwarded.starts_with("POST /b/t.parquet?select&select-type=2 HTTP/1.1\r\n"),
        "{forwarded}"
    );
    assert!(
        forwarded
            .to_ascii_lowercase()
            .contains("authorization: aws4-hmac-sha256 credential=k/"),
        "{forwarded}"
    );
    Ok(())
}

#[test]
fn hop_by_hop_headers_are_not_forwarded() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nConnection: x-mine\r\nX-Mine: 1\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let request = Request::new("GET", "/b/k")
        .header("Host", "gateway")
        .header("Connection", "keep-alive, X-Secret")
        .header("X-Secret", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Accept", "*/*");
    let answer = request.send(gateway.listen())?;
    assert_eq!(answer.header("etag"), Some("\"e\""));
    assert_eq!(
        (answer.header("keep-alive"), answer.header("x-mine")),
        (None, None)
    );
    assert_eq!(
        origin.requests(),
        ["GET /b/k HTTP/1.1\r\nHost: gateway\r\nAccept: */*\r\n\r\n"]
    );
    Ok(())
}
