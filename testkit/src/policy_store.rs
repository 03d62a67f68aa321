//! A store that is told who may read what, and counts what it sends. Signatures are not verified: constants say which are
//! good, and which have expired.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use parking_lot::{Condvar, Mutex};

use crate::{Exchange, Request, ScriptedOrigin};

/// The signature that the store accepts, of any access key.
pub const GOOD_SIGNATURE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// A signature that was good, of any access key.
pub const EXPIRED_SIGNATURE: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

/// A store in memory.
#[derive(Debug)]
pub struct PolicyStore {
    origin: ScriptedOrigin,
    state: Arc<(Mutex<State>, Condvar)>,
}

/// What a store has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Answers with the status 200.
    pub objects: usize,
    /// Answers with the status 304.
    pub not_modified: usize,
    /// Refusals.
    pub refused: usize,
    /// Bytes of objects.
    pub bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<String, Object>,
    /// Access keys and paths.
    forbidden: HashSet<(String, String)>,
    ignores_conditions: bool,
    /// Objects are sent up to their half while this is set.
    is_stalled: bool,
    sent: Sent,
}

#[derive(Debug, Clone)]
struct Object {
    etag: String,
    body: Vec<u8>,
    headers: String,
}

impl PolicyStore {
    /// An empty store, in which everybody with a good signature may read everything.
    pub fn start() -> Result<Self> {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let script = Arc::clone(&state);
        Ok(Self {
            origin: ScriptedOrigin::start(move |exchange| answer(exchange, &script))?,
            state,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.origin.requests()
    }

    /// Adds or replaces an object.
    pub fn put(&self, path: &str, etag: &str, body: impl Into<Vec<u8>>) {
        self.put_with(path, etag, body, "");
    }

    /// Like [`put`](Self::put), with further headers of its answers: lines with their ends.
    pub fn put_with(&self, path: &str, etag: &str, body: impl Into<Vec<u8>>, headers: &str) {
        let object = Object {
            etag: etag.to_owned(),
            body: body.into(),
            headers: headers.to_owned(),
        };
        self.state.0.lock().objects.insert(path.to_owned(), object);
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) {
        self.state.0.lock().objects.remove(path);
    }

    /// Withdraws the right of an access key to read an object.
    pub fn forbid(&self, access_key: &str, path: &str) {
        let right = (access_key.to_owned(), path.to_owned());
        self.state.0.lock().forbidden.insert(right);
    }

    /// From now on answers 200 whatever the condition.
    pub fn ignore_conditions(&self) {
        self.state.0.lock().ignores_conditions = true;
    }

    /// Stops sending objects at their half, or goes on.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.state.0.lock().is_stalled = is_stalled;
        self.state.1.notify_all();
    }

    /// What it has sent so far.
    pub fn sent(&self) -> Sent {
        self.state.0.lock().sent
    }

    /// Waits until what it has sent fulfils a condition.
    pub fn wait_until(&self, is_fulfilled: impl Fn(Sent) -> bool) -> Result<()> {
        let (deadline, mut state) = (Instant::now() + Duration::from_mins(1), self.state.0.lock());
        while !is_fulfilled(state.sent) {
            ensure!(
                !self.state.1.wait_until(&mut state, deadline).timed_out(),
                "the store has sent {:?}",
                state.sent
            );
        }
        Ok(())
    }
}

/// Signs a GET with a good signature of an access key, in the header.
pub fn signed_by(request: Request, access_key: &str, signature: &str) -> Request {
    let text = format!(
        "AWS4-HMAC-SHA256 Credential={access_key}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={signature}"
    );
    request.header("Authorization", &text)
}

fn answer(exchange: &mut Exchange, shared: &(Mutex<State>, Condvar)) -> io::Result<()> {
    let head = exchange.head.clone();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
    };
    let signed = header("authorization").unwrap_or_else(|| query.replace("%2F", "/").replace("X-Amz-", ""));
    let field = |name: &str| {
        let (_, rest) = signed.split_once(&format!("{name}="))?;
        rest.split([',', '/', '&']).next()
    };
    let (access_key, signature) = (field("Credential"), field("Signature"));
    let right = (access_key.unwrap_or_default().to_owned(), path.to_owned());

    let mut state = shared.0.lock();
    let is_expired = signature == Some(EXPIRED_SIGNATURE);
    let refusal = if signature != Some(GOOD_SIGNATURE) && !is_expired {
        Some(("403 Forbidden", "SignatureDoesNotMatch"))
    } else if is_expired || state.forbidden.contains(&right) {
        Some(("403 Forbidden", "AccessDenied"))
    } else if !state.objects.contains_key(path) {
        Some(("404 Not Found", "NoSuchKey"))
    } else {
        None
    };
    if let Some((status, code)) = refusal {
        state.sent.refused += 1;
        drop(state);
        shared.1.notify_all();
        return exchange.answer(status, &format!("<Error><Code>{code}</Code></Error>"));
    }
    let Some(Object { etag, body, headers }) = state.objects.get(path).cloned() else {
        return Ok(());
    };
    let etag_line = if etag.is_empty() {
        String::new()
    } else {
        format!("ETag: {etag}\r\n")
    };
    if header("if-none-match") == Some(etag) && !state.ignores_conditions {
        state.sent.not_modified += 1;
        drop(state);
        shared.1.notify_all();
        return exchange.send(format!("HTTP/1.1 304 Not Modified\r\n{etag_line}\r\n"));
    }
    state.sent.objects += 1;
    drop(state);
    shared.1.notify_all();
    let length = body.len();
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{etag_line}{headers}\r\n"
    ))?;
    let (first, rest) = body.split_at(length / 2);
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
