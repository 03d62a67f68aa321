//! A relay between gateway and real store, which counts answers and can hold back the end of objects.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use parking_lot::{Condvar, Mutex};

use crate::{
    origin::{Exchange, ScriptedOrigin},
    policy_store::Sent,
    raw::Response,
    relay::read_request,
};

/// Headers that describe the connection to the store.
const CONNECTION_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

/// A relay in front of a store, closed when dropped.
#[derive(Debug)]
pub struct StoreRelay {
    origin: ScriptedOrigin,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    /// Objects are sent up to their half while this is set.
    is_stalled: bool,
    sent: Sent,
}

impl StoreRelay {
    /// Starts a relay that forwards each request unchanged.
    pub fn start(store: SocketAddr) -> Result<Self> {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = Arc::clone(&state);
        Ok(Self {
            origin: ScriptedOrigin::start(move |exchange| {
                let request = read_request(exchange)?;
                let answer = request.send(store).map_err(io::Error::other)?;
                forward(exchange, &answer, &shared)
            })?,
            state,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// Stops sending objects at their half, or goes on.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.state.0.lock().is_stalled = is_stalled;
        self.state.1.notify_all();
    }

    /// What it has forwarded so far.
    pub fn sent(&self) -> Sent {
        self.state.0.lock().sent
    }

    /// Waits until what it has forwarded fulfils a condition.
    pub fn wait_until(&self, is_fulfilled: impl Fn(Sent) -> bool) -> Result<()> {
        let (deadline, mut state) = (Instant::now() + Duration::from_mins(1), self.state.0.lock());
        while !is_fulfilled(state.sent) {
            ensure!(
                !self.state.1.wait_until(&mut state, deadline).timed_out(),
                "the relay has forwarded {:?}",
                state.sent
            );
        }
        Ok(())
    }
}

/// Forwards an answer of the store.
fn forward(exchange: &mut Exchange, answer: &Response, shared: &(Mutex<State>, Condvar)) -> io::Result<()> {
    let length = answer.body.len();
    let mut state = shared.0.lock();
    match answer.status {
        200 => state.sent.objects += 1,
        304 => state.sent.not_modified += 1,
        _ => state.sent.refused += 1,
    }
    drop(state);
    shared.1.notify_all();
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
    if answer.status != 200 {
        return exchange.send(&answer.body);
    }
    let (first, rest) = answer.body.split_at(length / 2);
    exchange.send(first)?;
    let mut state = shared.0.lock();
    while state.is_stalled {
        shared.1.wait(&mut state);
    }
    drop(state);
    exchange.send(rest)?;
    shared.0.lock().sent.bytes += length;
    shared.1.notify_all();
    Ok(())
}
