//! Relays between reader and gateway that inject faults, record requests, or delay weights.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::sleep,
    time::Duration,
};

use anyhow::Result;
use parking_lot::{Condvar, Mutex};

use crate::{
    origin::{Exchange, ScriptedOrigin},
    raw::{Request, Response},
    tables::first_byte,
};

/// What a relay does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayAction {
    /// Forwards the request and the answer.
    Forward,
    /// Answers 503 with `Retry-After`, without asking the gateway.
    SlowDown,
    /// Forwards this part of the body, in percent, and closes the connection.
    Truncate(usize),
    /// Replaces the engine in the answer by another one.
    OtherEngine,
    /// Replaces the version of a step family by the one before, in the header and in the stream.
    OlderFamily(&'static str),
    /// As `OlderFamily`, with a proxy in between that drops the header.
    OlderFamilyInStream(&'static str),
    /// Answers 404, as a plain store does that reads the path as a bucket.
    NotFound,
    /// Replaces the features that the answer lists.
    OtherFeatures(&'static str),
}

/// A relay in front of a gateway. `choose` selects the action by the number of earlier batch requests.
pub fn faulty_relay(
    gateway: SocketAddr,
    choose: impl Fn(usize) -> RelayAction + Send + Sync + 'static,
) -> Result<ScriptedOrigin> {
    let batches = AtomicUsize::new(0);
    ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        let action = match request.method.as_str() {
            "POST" => choose(batches.fetch_add(1, SeqCst)),
            _ => RelayAction::Forward,
        };
        if action == RelayAction::SlowDown {
            return exchange.send(
                "HTTP/1.1 503 Slow Down\r\nRetry-After: 1\r\nContent-Length: 35\r\n\r\n<Error><Code>SlowDown</Code></Error>",
            );
        }
        if action == RelayAction::NotFound {
            return exchange.send(
                "HTTP/1.1 404 Not Found\r\nContent-Length: 39\r\n\r\n<Error><Code>NoSuchBucket</Code></Error>",
            );
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, action)
    })
}

/// A relay in front of a gateway that holds back the first request for a value, or for a batch of them, for `pause`.
pub fn late_relay(gateway: SocketAddr, pause: Duration) -> Result<ScriptedOrigin> {
    let is_first = AtomicBool::new(true);
    ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if is_computed(&request) && is_first.swap(false, SeqCst) {
            sleep(pause);
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })
}

/// A relay in front of a gateway that has no time to compute anything while the flag is set. Plain requests pass.
pub fn overloaded_relay(gateway: SocketAddr, is_overloaded: Arc<AtomicBool>) -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if is_computed(&request) && is_overloaded.load(SeqCst) {
            return exchange.answer("503 Slow Down", "<Error><Code>SlowDown</Code></Error>");
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })
}

/// A relay in front of a gateway that drains while the flag is set: it says so to probes, and closes the connections of batch requests.
pub fn draining_relay(gateway: SocketAddr, is_draining: Arc<AtomicBool>) -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        let is_draining = is_draining.load(SeqCst);
        if is_draining && request.method == "POST" {
            exchange.close();
            return Ok(());
        }
        let mut answer = request.send(gateway).map_err(io::Error::other)?;
        if is_draining && request.target == "/_pushdown/v1/version" {
            let headers = &mut answer.headers;
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-pushdown-state"));
            headers.push(("x-pushdown-state".to_owned(), "draining".to_owned()));
        }
        forward(exchange, &answer, RelayAction::Forward)
    })
}

/// A relay that forwards everything, batch requests after a pause.
pub fn slow_relay(gateway: SocketAddr, pause: Duration) -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if request.method == "POST" {
            sleep(pause);
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })
}

/// A relay that forwards everything, and the positions of the first bytes of the ranges requested through it.
pub fn recording_relay(gateway: SocketAddr) -> Result<(ScriptedOrigin, Arc<Mutex<Vec<usize>>>)> {
    let first_bytes = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&first_bytes);
    let relay = ScriptedOrigin::start(move |exchange| {
        recorder.lock().extend(first_byte(exchange));
        let answer = read_request(exchange)?.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })?;
    Ok((relay, first_bytes))
}

/// The bodies of requests, in their order.
type RecordedBodies = Arc<Mutex<Vec<Vec<u8>>>>;

/// A relay that replaces the features in all answers, and the bodies of the batch requests sent through it.
pub fn features_relay(
    gateway: SocketAddr,
    features: &'static str,
) -> Result<(ScriptedOrigin, RecordedBodies)> {
    let bodies = RecordedBodies::default();
    let recorder = Arc::clone(&bodies);
    let relay = ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if request.method == "POST" {
            recorder.lock().push(request.body.clone());
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::OtherFeatures(features))
    })?;
    Ok((relay, bodies))
}

/// A relay in front of a store that accepts signatures for one region alone, and the number of those that it has refused.
pub fn region_relay(store: SocketAddr, region: &str) -> Result<(ScriptedOrigin, Arc<AtomicUsize>)> {
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&refused);
    let scopes = [format!("/{region}/s3/"), format!("%2F{region}%2Fs3%2F")];
    let document = format!(
        "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message><Region>{region}</Region></Error>"
    );
    let relay = ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if !scopes.iter().any(|scope| exchange.head.contains(scope)) {
            counter.fetch_add(1, SeqCst);
            let body = if request.method == "HEAD" { "" } else { &document };
            return exchange.send(format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n{body}",
                document.len()
            ));
        }
        let answer = request.send(store).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })?;
    Ok((relay, refused))
}

/// A relay that replaces the engine in all answers by another one.
pub fn other_engine_relay(gateway: SocketAddr) -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(move |exchange| {
        let answer = read_request(exchange)?.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::OtherEngine)
    })
}

/// Blocks requests for weights until it is opened.
#[derive(Debug, Default)]
pub struct Gate {
    requests: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// The number of requests for weights.
    pub fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }

    /// Lets these and all later requests pass.
    pub fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        self.requests.fetch_add(1, SeqCst);
        self.opened
            .wait_while(&mut self.is_open.lock(), |is_open| !*is_open);
    }
}

/// A relay that forwards everything, but weights only after the gate is opened.
pub fn gated_relay(gateway: SocketAddr) -> Result<(ScriptedOrigin, Arc<Gate>)> {
    let gate = Arc::new(Gate::default());
    let gate_at_relay = Arc::clone(&gate);
    let relay = ScriptedOrigin::start(move |exchange| {
        let request = read_request(exchange)?;
        if request.target.starts_with("/_pushdown/v1/models/") {
            gate_at_relay.wait();
        }
        let answer = request.send(gateway).map_err(io::Error::other)?;
        forward(exchange, &answer, RelayAction::Forward)
    })?;
    Ok((relay, gate))
}

/// Whether a gateway computes the answer to a request: a value, or a batch of them.
fn is_computed(request: &Request) -> bool {
    let is_pipeline = |(name, _): &(String, String)| name.eq_ignore_ascii_case("x-pushdown-pipeline");
    request.method == "POST" || request.headers.iter().any(is_pipeline)
}

/// The request without its body.
pub(crate) fn read_head(exchange: &Exchange) -> io::Result<Request> {
    let mut lines = exchange.head.split("\r\n").filter(|line| !line.is_empty());
    let mut request_line = lines.next().unwrap_or_default().split(' ');
    let mut request = Request::new(
        request_line.next().unwrap_or_default(),
        request_line.next().unwrap_or_default(),
    );
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        request = request.header(name, value.trim());
    }
    Ok(request)
}

/// The whole request.
pub(crate) fn read_request(exchange: &mut Exchange) -> io::Result<Request> {
    let mut request = read_head(exchange)?;
    let length = request
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = match length {
        Some((_, length)) => length.parse::<usize>().map_err(io::Error::other)?,
        None => 0,
    };
    request.body = exchange.read(length)?;
    Ok(request)
}

fn forward(exchange: &mut Exchange, answer: &Response, action: RelayAction) -> io::Result<()> {
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
            "x-pushdown-engine" if action == RelayAction::OtherEngine => {
                head.push_str("x-pushdown-engine: 4000000000\r\n");
            }
            "x-pushdown-engine" => match action {
                RelayAction::OlderFamily(family) => {
                    let other = value.replace(&format!("{family}=4"), &format!("{family}=3"));
                    // A gateway may state families that the pipeline does not use.
                    let unused = if other == *value {
                        format!(" {family}=3")
                    } else {
                        String::new()
                    };
                    head.extend([name.as_str(), ": ", &other, &unused, "\r\n"]);
                }
                RelayAction::OlderFamilyInStream(_) => {}
                _ => head.extend([name.as_str(), ": ", value, "\r\n"]),
            },
            "x-pushdown-features" => match action {
                RelayAction::OtherFeatures(features) => {
                    head.extend([name.as_str(), ": ", features, "\r\n"]);
                }
                _ => head.extend([name.as_str(), ": ", value, "\r\n"]),
            },
            _ => head.extend([name.as_str(), ": ", value, "\r\n"]),
        }
    }
    exchange.send(head + "\r\n")?;
    match action {
        RelayAction::Truncate(percent) => {
            exchange.close();
            exchange.send(&answer.body[..answer.body.len() * percent / 100])
        }
        RelayAction::OlderFamily(family) | RelayAction::OlderFamilyInStream(family) => {
            exchange.send(with_older_family(&answer.body, family))
        }
        _ => exchange.send(&answer.body),
    }
}

/// An Arrow stream whose schema has another version of a family. Both texts are equally long.
fn with_older_family(stream: &[u8], family: &str) -> Vec<u8> {
    let (found, other) = (format!("{family}=4"), format!("{family}=3"));
    let mut stream = stream.to_vec();
    let position = stream
        .windows(found.len())
        .position(|window| window == found.as_bytes());
    if let Some(position) = position {
        stream[position..][..other.len()].copy_from_slice(other.as_bytes());
    }
    stream
}
