//! A relay between gateway and real store, which counts answers and can hold back the end of objects.

use std::{io, net::SocketAddr};

use anyhow::Result;

use crate::{
    origin::{Exchange, ScriptedOrigin},
    raw::Response,
    relay::read_request,
    sending::{Sending, Sent},
};

/// Headers that describe the connection to the store.
const CONNECTION_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

/// A relay in front of a store, closed when dropped.
#[derive(Debug)]
pub struct StoreRelay {
    origin: ScriptedOrigin,
    sending: Sending,
}

impl StoreRelay {
    /// Starts a relay that forwards each request unchanged.
    pub fn start(store: SocketAddr) -> Result<Self> {
        let sending = Sending::default();
        let counter = sending.clone();
        Ok(Self {
            origin: ScriptedOrigin::start(move |exchange| {
                let request = read_request(exchange)?;
                let answer = request.send(store).map_err(io::Error::other)?;
                forward(exchange, &answer, &counter)
            })?,
            sending,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// Stops sending objects at their half, or goes on.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.sending.set_stalled(is_stalled);
    }

    /// What it has forwarded so far.
    pub fn sent(&self) -> Sent {
        self.sending.sent()
    }

    /// Waits until what it has forwarded fulfils a condition.
    pub fn wait_until(&self, is_fulfilled: impl Fn(Sent) -> bool) -> Result<()> {
        self.sending.wait_until(is_fulfilled)
    }
}

/// Forwards an answer of the store.
fn forward(exchange: &mut Exchange, answer: &Response, sending: &Sending) -> io::Result<()> {
    let length = answer.body.len();
    sending.count(answer.status);
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, answer.reason);
    for (name, value) in &answer.headers {
        if !CONNECTION_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
    }
    if answer.status != 304 {
        head.extend(["Content-Length: ", &length.to_string(), "\r\n"]);
    }
    exchange.send(head + "\r\n")?;
    if !matches!(answer.status, 200 | 206) {
        return exchange.send(&answer.body);
    }
    sending.send(exchange, &answer.body)
}
