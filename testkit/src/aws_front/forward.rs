//! Requests signed again for the store, with bodies that flow both ways.

use std::io;
use std::net::SocketAddr;

use crate::origin::Exchange;
use crate::raw::{Incoming, Raw, Request};
use crate::sign::{CONTENT_SHA256, DATE, Keys, SECURITY_TOKEN};

/// Bytes of an answer that are read at once.
const PIECE_BYTES: u64 = 64 << 10;

/// Headers of the caller's signature or of its connection, which the store does not get.
const DROPPED: [&str; 8] = [
    "authorization",
    CONTENT_SHA256,
    DATE,
    SECURITY_TOKEN,
    "connection",
    "expect",
    "host",
    "keep-alive",
];

/// The store behind a front.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) address: SocketAddr,
    pub(super) keys: Keys,
}

impl Store {
    /// Sends a request to the store, addressed as `target`, and its answer back.
    pub(super) fn forward(&self, exchange: &mut Exchange, request: &Request, target: &str) -> io::Result<()> {
        let signed = self.sign(request, target)?;
        if request
            .header_value("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
        {
            exchange.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut raw = Raw::connect(self.address).map_err(io::Error::other)?;
        raw.write(&signed.head()).map_err(io::Error::other)?;
        if is_chunked(request.header_value("transfer-encoding")) {
            send_chunks(exchange, &mut raw)?;
        } else if let Some(length) = request.header_value("content-length") {
            let length = length.parse::<u64>().map_err(io::Error::other)?;
            exchange.copy(length, |piece| raw.write(piece).map_err(io::Error::other))?;
        }
        let answer = raw.begin(&request.method).map_err(io::Error::other)?;
        send_answer(exchange, answer)
    }

    /// The head for the store. The signature covers the headers that AWS requires.
    fn sign(&self, request: &Request, target: &str) -> io::Result<Request> {
        // A presigned request has none.
        let content_sha256 = request.header_value(CONTENT_SHA256).unwrap_or("UNSIGNED-PAYLOAD");
        let is_signed =
            |name: &str| name.starts_with("x-amz-") || ["content-type", "content-md5"].contains(&name);
        let headers = request.headers.iter().filter_map(|header| {
            let name = header.0.to_ascii_lowercase();
            (!DROPPED.contains(&name.as_str())).then(|| (is_signed(&name), header.clone()))
        });
        let (signed, others): (Vec<_>, Vec<_>) = headers.partition(|(is_signed, _)| *is_signed);
        let mut head = Request::new(&request.method, target).header("Host", &self.address.to_string());
        head.headers.extend(signed.into_iter().map(|(_, header)| header));
        let mut head = self
            .keys
            .sign_head(head, content_sha256)
            .map_err(io::Error::other)?;
        head.headers.extend(others.into_iter().map(|(_, header)| header));
        Ok(head)
    }
}

fn is_chunked(encoding: Option<&str>) -> bool {
    encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"))
}

/// Passes a chunked body on, chunk by chunk.
fn send_chunks(exchange: &mut Exchange, raw: &mut Raw) -> io::Result<()> {
    loop {
        let line = exchange.read_line()?;
        raw.write(line.as_bytes()).map_err(io::Error::other)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
        if size == 0 {
            break;
        }
        // With the line end after the data.
        exchange.copy(size + 2, |piece| raw.write(piece).map_err(io::Error::other))?;
    }
    // Trailers, up to the empty line.
    loop {
        let line = exchange.read_line()?;
        raw.write(line.as_bytes()).map_err(io::Error::other)?;
        if line == "\r\n" {
            return Ok(());
        }
    }
}

/// Sends the store's answer. A body that is cut short is an error, which closes the connection.
fn send_answer(exchange: &mut Exchange, mut answer: Incoming<'_>) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.head.status, answer.head.reason);
    for (name, value) in &answer.head.headers {
        if !["connection", "keep-alive"].contains(&name.to_ascii_lowercase().as_str()) {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
    }
    exchange.send(head + "\r\n")?;
    if !answer.has_body() {
        return Ok(());
    }
    if is_chunked(answer.head.header("transfer-encoding")) {
        while let Some(chunk) = answer.chunk().map_err(io::Error::other)? {
            exchange.send(format!("{:x}\r\n", chunk.len()))?;
            exchange.send(&chunk)?;
            exchange.send("\r\n")?;
        }
        return exchange.send("0\r\n\r\n");
    }
    let length = answer.head.header("content-length");
    let mut left = length
        .ok_or_else(|| io::Error::other("an answer of the store without a length"))?
        .parse::<u64>()
        .map_err(io::Error::other)?;
    while left > 0 {
        let piece = left.min(PIECE_BYTES);
        let count = usize::try_from(piece).map_err(io::Error::other)?;
        let bytes = answer.read_exact(count).map_err(io::Error::other)?;
        exchange.send(&bytes)?;
        left -= piece;
    }
    Ok(())
}
