//! Stands between reader and gateway, and misbehaves.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use parking_lot::{Condvar, Mutex};
use pushdown_testkit::{Exchange, Request, Response, ScriptedOrigin, first_byte};

/// What to do to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Hand it on.
    Pass,
    /// 503 without asking the gateway, and when to come again.
    SlowDown,
    /// Hand on this share of the body, in percent, and cut the connection.
    Cut(usize),
    /// Say that another engine computed it.
    OtherEngine,
    /// Take the path for that of an object, as a plain store does.
    Unknown,
}

/// A relay in front of a gateway; `plot` decides by the number of batch requests so far.
pub(super) fn relay(
    gateway: SocketAddr,
    plot: impl Fn(usize) -> Deed + Send + Sync + 'static,
) -> ScriptedOrigin {
    let batches = AtomicUsize::new(0);
    ScriptedOrigin::start(move |exchange| {
        let request = request(exchange)?;
        let deed = match request.method.as_str() {
            "POST" => plot(batches.fetch_add(1, SeqCst)),
            _ => Deed::Pass,
        };
        if deed == Deed::SlowDown {
            return exchange.send(
                "HTTP/1.1 503 Slow Down\r\nRetry-After: 1\r\nContent-Length: 35\r\n\r\n<Error><Code>SlowDown</Code></Error>",
            );
        }
        if deed == Deed::Unknown {
            return exchange.send(
                "HTTP/1.1 404 Not Found\r\nContent-Length: 39\r\n\r\n<Error><Code>NoSuchBucket</Code></Error>",
            );
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        hand_on(exchange, &answer, deed)
    })
    .unwrap()
}

/// A relay that hands everything on, and the first bytes of the ranges that were asked for through it.
pub(super) fn listening(gateway: SocketAddr) -> (ScriptedOrigin, Arc<Mutex<Vec<usize>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let relay = ScriptedOrigin::start(move |exchange| {
        heard.lock().extend(first_byte(exchange));
        let answer = request(exchange)?.send(gateway).map_err(io::Error::other)?;
        hand_on(exchange, &answer, Deed::Pass)
    });
    (relay.unwrap(), asked)
}

/// Where weights wait until it is opened.
#[derive(Debug, Default)]
pub(super) struct Gate {
    asked: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// How often weights were asked for.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }

    pub(super) fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        self.asked.fetch_add(1, SeqCst);
        self.opened
            .wait_while(&mut self.is_open.lock(), |is_open| !*is_open);
    }
}

/// A relay that hands everything on, weights once the gate is open.
pub(super) fn gated(gateway: SocketAddr) -> (ScriptedOrigin, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let relay = ScriptedOrigin::start(move |exchange| {
        let request = request(exchange)?;
        if request.target.starts_with("/_pushdown/v1/models/") {
            passed.pass();
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        hand_on(exchange, &answer, Deed::Pass)
    });
    (relay.unwrap(), gate)
}

fn request(exchange: &mut Exchange) -> io::Result<Request> {
    let head = exchange.head.clone();
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut request = Request::new(first.next().unwrap_or_default(), first.next().unwrap_or_default());
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or(io::ErrorKind::InvalidData)?;
        request = request.header(name, value);
    }
    let length = request
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, length)| length.parse().unwrap());
    request.body = exchange.read(length)?;
    Ok(request)
}

fn hand_on(exchange: &mut Exchange, answer: &Response, deed: Deed) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} {}\r\nContent-Length: {}\r\n",
        answer.status,
        answer.reason,
        answer.body.len()
    );
    for (name, value) in &answer.headers {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "content-length" | "transfer-encoding" | "connection" => {}
            "x-pushdown-engine" if deed == Deed::OtherEngine => {
                head.push_str("x-pushdown-engine: 4000000000\r\n");
            }
            _ => head.extend([name.as_str(), ": ", value, "\r\n"]),
        }
    }
    exchange.send(head + "\r\n")?;
    match deed {
        Deed::Cut(percent) => {
            exchange.close();
            exchange.send(&answer.body[..answer.body.len() * percent / 100])
        }
        _ => exchange.send(&answer.body),
    }
}
