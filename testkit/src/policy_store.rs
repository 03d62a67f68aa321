//! A store that is told who may read what, and counts what it sends. Signatures are not verified: constants say which are
//! good, and which have expired.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;

use crate::sending::{Sending, Sent};
use crate::{Exchange, Request, ScriptedOrigin};

/// The signature that the store accepts, of any access key.
pub const GOOD_SIGNATURE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// A signature that was good, of any access key.
pub const EXPIRED_SIGNATURE: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

/// A store in memory.
#[derive(Debug)]
pub struct PolicyStore {
    origin: ScriptedOrigin,
    state: Arc<Mutex<State>>,
    sending: Sending,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<String, Object>,
    /// Access keys and paths.
    forbidden: HashSet<(String, String)>,
    ignores_conditions: bool,
    supports_ranges: bool,
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
        let (state, sending) = (Arc::<Mutex<State>>::default(), Sending::default());
        let (policy, counter) = (Arc::clone(&state), sending.clone());
        Ok(Self {
            origin: ScriptedOrigin::start(move |exchange| answer(exchange, &policy, &counter))?,
            state,
            sending,
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
        self.state.lock().objects.insert(path.to_owned(), object);
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) {
        self.state.lock().objects.remove(path);
    }

    /// Withdraws the right of an access key to read an object.
    pub fn forbid(&self, access_key: &str, path: &str) {
        let right = (access_key.to_owned(), path.to_owned());
        self.state.lock().forbidden.insert(right);
    }

    /// From now on answers 200 whatever the condition.
    pub fn ignore_conditions(&self) {
        self.state.lock().ignores_conditions = true;
    }

    /// From now on answers `Range`, and evaluates `If-Match` unless conditions are ignored.
    pub fn support_ranges(&self) {
        self.state.lock().supports_ranges = true;
    }

    /// Stops sending objects at their half, or goes on.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.sending.set_stalled(is_stalled);
    }

    /// What it has sent so far.
    pub fn sent(&self) -> Sent {
        self.sending.sent()
    }

    /// Waits until what it has sent fulfils a condition.
    pub fn wait_until(&self, is_fulfilled: impl Fn(Sent) -> bool) -> Result<()> {
        self.sending.wait_until(is_fulfilled)
    }
}

/// Signs a GET with a good signature of an access key, in the header.
pub fn signed_by(request: Request, access_key: &str, signature: &str) -> Request {
    let text = format!(
        "AWS4-HMAC-SHA256 Credential={access_key}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={signature}"
    );
    request.header("Authorization", &text)
}

fn answer(exchange: &mut Exchange, policy: &Mutex<State>, sending: &Sending) -> io::Result<()> {
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

    let state = policy.lock();
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
        drop(state);
        sending.count(403);
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
    let (is_conditional, supports_ranges) = (!state.ignores_conditions, state.supports_ranges);
    drop(state);
    if is_conditional && supports_ranges && header("if-match").is_some_and(|required| required != etag) {
        sending.count(412);
        return exchange.answer(
            "412 Precondition Failed",
            "<Error><Code>PreconditionFailed</Code></Error>",
        );
    }
    if is_conditional && header("if-none-match") == Some(etag) {
        sending.count(304);
        return exchange.send(format!("HTTP/1.1 304 Not Modified\r\n{etag_line}\r\n"));
    }
    let (total, range) = (body.len(), header("range").filter(|_| supports_ranges));
    let Some(range) = range else {
        sending.count(200);
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n{etag_line}{headers}\r\n"
        ))?;
        return sending.send(exchange, &body);
    };
    let bounds = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'));
    let bounds = bounds.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let Some((first, last)) = bounds.filter(|(first, last): &(usize, usize)| first <= last && *first < total)
    else {
        sending.count(416);
        return exchange.answer(
            "416 Range Not Satisfiable",
            "<Error><Code>InvalidRange</Code></Error>",
        );
    };
    let last = last.min(total - 1);
    sending.count(206);
    exchange.send(format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{total}\r\n\
         {etag_line}{headers}\r\n",
        last - first + 1
    ))?;
    sending.send(exchange, &body[first..=last])
}
