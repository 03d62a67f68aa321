//! Request smuggling: no request reaches the store with a length, an encoding or a hop-by-hop header that does not match
//! its bytes. Otherwise the store could read the request of the next client as a body.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Gateway, Nginx, Raw, Request, Response, ScriptedOrigin, eventually};

use super::{binary, gateway_for};

/// A request that a store sees only if it reads a body as a request.
const SMUGGLED: &str = "GET /bucket/smuggling HTTP/1.1\r\nHost: gateway\r\n\r\n";

/// Headers that concern one hop. None may reach the store with a read, signed or not.
const HOP_HEADERS: [(&str, &str); 10] = [
    ("Content-Length", "49"),
    ("TE", "trailers"),
    ("Transfer-Encoding", "chunked"),
    ("Expect", "100-continue"),
    ("Connection", "keep-alive"),
    ("Keep-Alive", "timeout=600"),
    ("Proxy-Authorization", "Basic eDp5"),
    ("Proxy-Connection", "keep-alive"),
    ("Trailer", "x-amz-checksum-crc32"),
    ("Upgrade", "h2c"),
];

/// A request that lists `header` as signed. The scripted store does not verify the signature.
fn claim_signed(method: &str, target: &str, header: (&str, &str)) -> Request {
    let signed = header.0.to_ascii_lowercase();
    Request::new(method, target)
        .header("Host", "gateway")
        .header(
            "Authorization",
            &format!(
                "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;{signed}, Signature=00"
            ),
        )
        .header(header.0, header.1)
}

/// Sends a request head and `body` in one write, and reads the answer.
fn exchange(gateway: &Gateway, request: &Request, body: &str) -> Result<Response> {
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&[request.head(), body.as_bytes().to_vec()].concat())?;
    raw.read(&request.method)
}

#[test]
fn signed_framing_headers_are_not_forwarded() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("404 Not Found", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    for target in ["/bucket/key?x-pushdown-pipeline=decode", "/bucket/key"] {
        for method in ["GET", "HEAD"] {
            for header in HOP_HEADERS {
                let before = origin.requests().len();
                let body = match header.0 {
                    "Content-Length" => SMUGGLED,
                    "Transfer-Encoding" => "0\r\n\r\n",
                    _ => "",
                };
                // A plain GET may have a body, and the gateway forwards it.
                if !body.is_empty() && !target.contains('?') {
                    continue;
                }
                exchange(&gateway, &claim_signed(method, target, header), body)?;
                let forwarded = origin.requests().split_off(before);
                ensure!(
                    forwarded.len() <= 1,
                    "{method} {target} {header:?}: {forwarded:?}"
                );
                let line = format!("\r\n{}:", header.0.to_ascii_lowercase());
                for head in forwarded {
                    ensure!(
                        !head.to_ascii_lowercase().contains(&line),
                        "{method} {target} {header:?}: {head}"
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_signed_content_length_of_zero_is_forwarded() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("404 Not Found", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    for target in ["/bucket/key?x-pushdown-pipeline=decode", "/bucket/key"] {
        exchange(
            &gateway,
            &claim_signed("GET", target, ("Content-Length", "0")),
            "",
        )?;
    }
    for head in origin.requests() {
        ensure!(
            head.to_ascii_lowercase().contains("\r\ncontent-length: 0\r\n"),
            "{head}"
        );
    }
    Ok(())
}

#[test]
fn a_pipeline_request_with_a_body_is_refused() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    let target = "/bucket/key?x-pushdown-pipeline=decode";
    for method in ["GET", "HEAD"] {
        for (header, body) in [
            (("Content-Length", "49"), SMUGGLED),
            // The body is declared but never sent.
            (("Content-Length", "49"), ""),
            (("Transfer-Encoding", "chunked"), "5\r\nhello\r\n0\r\n\r\n"),
        ] {
            let answer = exchange(&gateway, &claim_signed(method, target, header), body)?;
            ensure!(answer.status == 400, "{method} {header:?}: {answer:?}");
            ensure!(
                method == "HEAD"
                    || answer.element("Message").as_deref()
                        == Some("invalid request: expected no body with a pipeline, found one"),
                "{answer:?}"
            );
        }
    }
    ensure!(origin.requests().is_empty(), "{:?}", origin.requests());
    Ok(())
}

/// The store must not read the next request as the unsent part of a body.
#[test]
fn a_store_connection_with_an_unsent_body_is_not_reused() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", "no"))?;
    let gateway = gateway_for(&origin, &[])?;
    for expect in [false, true] {
        let mut put = Request::new("PUT", "/bucket/key")
            .header("Host", "gateway")
            .header("Content-Length", "100");
        if expect {
            put = put.header("Expect", "100-continue");
        }
        {
            let mut raw = Raw::connect(gateway.listen())?;
            raw.write(&put.head())?;
            if !expect {
                raw.write(b"GET /bucket/smuggling HTTP/1.1\r\n")?;
            }
            ensure!(raw.read("PUT")?.status == 403);
        }
        eventually("the upload ends", Duration::from_secs(20), || {
            Ok((gateway.metric("pushdown_requests_in_flight{kind=\"forward\"}")? == 0.0).then_some(()))
        })?;
        for _ in 0..4 {
            let get = Request::new("GET", "/bucket/other").header("Host", "gateway");
            ensure!(exchange(&gateway, &get, "")?.status == 403);
        }
    }
    let others: Vec<_> = origin
        .requests()
        .into_iter()
        .filter(|head| !head.starts_with("PUT /bucket/key "))
        .collect();
    ensure!(
        others.len() == 8 && others.iter().all(|head| head.starts_with("GET /bucket/other ")),
        "{others:?}"
    );
    Ok(())
}

/// nginx reads a body by its length for every method, and keeps its connections open.
#[test]
fn answers_of_nginx_reach_the_right_request() -> Result<()> {
    let nginx = Nginx::launch()?;
    for key in ["smuggling", "mine", "yours"] {
        nginx.put("bucket", key, key)?;
    }
    let upstream = format!("--upstream=http://{}", nginx.address());
    let gateway = Gateway::launch(binary(), [upstream.as_str()])?;
    let target = "/bucket/mine?x-pushdown-pipeline=decode&x-pushdown-split=0";
    for round in 0..8 {
        for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
            for header in HOP_HEADERS {
                let attack = claim_signed(
                    method,
                    if round % 2 == 0 { target } else { "/bucket/mine" },
                    header,
                );
                // In half of the rounds the declared body is never sent.
                let body = if round % 4 < 2 { SMUGGLED } else { "" };
                let mut raw = Raw::connect(gateway.listen())?;
                raw.write(&[attack.head(), body.as_bytes().to_vec()].concat())?;
                // Read the complete answer, so that the gateway can reuse its connection to nginx.
                raw.read(method)?;
                drop(raw);
                for key in ["mine", "yours"] {
                    let get = Request::new("GET", &format!("/bucket/{key}")).header("Host", "gateway");
                    let answer = exchange(&gateway, &get, "")?;
                    ensure!(
                        (answer.status, answer.text().as_str()) == (200, key),
                        "after {method} with {header:?}: {answer:?}"
                    );
                }
            }
        }
    }
    for request in nginx.requests()? {
        ensure!(
            !request.contains("x-pushdown-pipeline") || request.ends_with(";-;-"),
            "a read with a declared body was forwarded: {request}"
        );
    }
    Ok(())
}

/// The store must not switch the protocol on a connection that other requests will use.
#[test]
fn an_unrequested_protocol_switch_is_502() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    for target in ["/bucket/key?x-pushdown-pipeline=decode", "/bucket/key"] {
        let mut raw = Raw::connect(gateway.listen())?;
        raw.write(&Request::new("GET", target).header("Host", "gateway").head())?;
        let answer = raw.head()?;
        ensure!(answer.status == 502, "{answer:?}");
    }
    Ok(())
}

/// The head of a request with these lines, and a body that looks like a request for whoever goes by a length of 5.
fn ambiguous(version: &str, lines: &str) -> Vec<u8> {
    format!("PUT /bucket/key {version}\r\nHost: gateway\r\n{lines}\r\n\r\n0\r\n\r\n{SMUGGLED}").into_bytes()
}

#[test]
fn a_request_with_two_framings_is_refused() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    for (lines, is_closed) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", true),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", true),
        ("transfer-encoding: chunked\r\nA: b\r\ncontent-length: 5", true),
        ("Content-Length: 5\r\nContent-Length: 5", true),
        ("Content-Length: 5\r\nContent-Length: 6", true),
        ("Content-Length: 5, 5", true),
        ("Content-Length: +5", true),
        ("Content-Length: 0x5", true),
        ("Content-Length: 5 5", true),
        ("Content-Length:", true),
        ("Content-Length: -1", true),
        ("Content-Length: 18446744073709551616", true),
        ("Content-Length : 5", true),
        ("Content-Length:\r\n 5", true),
        ("Transfer-Encoding: identity", true),
        ("Transfer-Encoding: chunked, identity", true),
        ("Transfer-Encoding: xchunked", true),
        ("Transfer-Encoding: \u{b}chunked", true),
        ("Transfer-Encoding : chunked", true),
        ("Transfer-Encoding:\r\n chunked", true),
        ("A: b\r\n c\r\nContent-Length: 5", true),
        ("A: b\rContent-Length: 5", true),
        ("Transfer-Encoding: chunked;a=b", true),
        // These are as chunked for the gateway as for others, and are followed by another request.
        ("Transfer-Encoding: identity, chunked", false),
        ("Transfer-Encoding: gzip, chunked", false),
        ("Transfer-Encoding: chunked, chunked", false),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", false),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", false),
    ] {
        let mut raw = Raw::connect(gateway.listen())?;
        raw.write(&ambiguous("HTTP/1.1", lines))?;
        let answer = raw.read("PUT")?;
        ensure!(answer.status == 400, "{lines:?}: {answer:?}");
        ensure!(
            answer.element("Code").as_deref() == Some("InvalidRequest"),
            "{lines:?}"
        );
        ensure!(
            !is_closed || (raw.is_closed()? && origin.requests().is_empty()),
            "{lines:?}"
        );
    }
    let mut raw = Raw::connect(gateway.listen())?;
    raw.write(&ambiguous("HTTP/1.0", "Transfer-Encoding: chunked"))?;
    ensure!(raw.read("PUT")?.status == 400 && raw.is_closed()?);
    let others: Vec<_> = origin
        .requests()
        .into_iter()
        .filter(|head| !head.starts_with("GET /bucket/smuggling "))
        .collect();
    ensure!(others.is_empty(), "{others:?}");
    Ok(())
}

/// The framing of each request is that of its own head, also if several arrive at once, or one after a body.
#[test]
fn a_request_with_two_framings_is_refused_after_others() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        if exchange.head.starts_with("PUT") {
            while exchange.read_line()? != "\r\n" {}
        }
        exchange.answer("200 OK", "")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let get = Request::new("GET", "/bucket/key")
        .header("Host", "gateway")
        .head();
    let chunked = b"PUT /bucket/key HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    let last = ambiguous("HTTP/1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked");
    let requests = [&get[..], chunked, &get, &last].concat();
    // All at once, and byte by byte.
    for size in [requests.len(), 1] {
        let mut raw = Raw::connect(gateway.listen())?;
        for piece in requests.chunks(size) {
            raw.write(piece)?;
        }
        for (method, status) in [("GET", 200), ("PUT", 200), ("GET", 200), ("PUT", 400)] {
            let answer = raw.read(method)?;
            ensure!(answer.status == status, "{size}: {answer:?}");
        }
        ensure!(raw.is_closed()?);
    }
    ensure!(origin.requests().len() == 6, "{:?}", origin.requests());
    Ok(())
}
