//! The front that addresses a store as AWS does: what it forwards, and what it refuses.

mod presigned;
mod process;
mod refusals;
mod sources;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{
    AwsFront, CredentialsAnswer, Gateway, Keys, Payload, Raw, Request, Response, ScriptedOrigin, find_gateway,
};
use serde_json::Value;

const REGION: &str = "us-east-1";
const HOST: &str = "photos.s3.us-east-1.localhost";

fn store_keys() -> Keys {
    Keys::new("pushdowntestkey", "pushdowntestsecret")
}

/// A front of the embedded store, which has a bucket `photos`, and the keys of a session.
struct Lab {
    front: AwsFront,
    session: Keys,
    _store: Gateway,
}

impl Lab {
    fn start() -> Result<Self> {
        let store = Gateway::embedded(&find_gateway()?, &store_keys(), [""; 0])?;
        let address = store.store().context("no address of the store")?;
        let front = AwsFront::start(address, &store_keys(), REGION, Duration::from_mins(10))?;
        let session = fetch_session(&front.credentials_url())?;
        let lab = Self {
            front,
            session,
            _store: store,
        };
        ensure!(lab.put("/", b"")?.status == 200, "no bucket");
        Ok(lab)
    }

    fn send(&self, request: Request, payload: Payload) -> Result<Response> {
        self.session.sign(request, payload)?.send(self.front.address())
    }

    fn call(&self, method: &str, target: &str) -> Result<Response> {
        self.send(request(method, target), Payload::Unsigned)
    }

    fn put(&self, target: &str, body: &[u8]) -> Result<Response> {
        self.send(request("PUT", target).body(body), Payload::Signed)
    }
}

fn request(method: &str, target: &str) -> Request {
    Request::new(method, target).header("Host", HOST)
}

/// Credentials from the endpoint at this URL.
fn fetch_session(url: &str) -> Result<Keys> {
    keys_of(&fetch(url)?)
}

/// The credentials of an answer.
fn keys_of(answer: &Response) -> Result<Keys> {
    let document: Value = serde_json::from_slice(&answer.body).with_context(|| answer.text())?;
    let field = |name: &str| document[name].as_str().context("a missing field");
    Ok(Keys {
        token: Some(field("Token")?.to_owned()),
        ..Keys::new(field("AccessKeyId")?, field("SecretAccessKey")?)
    })
}

fn fetch(url: &str) -> Result<Response> {
    let (address, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .context("expected an address and a path")?;
    let address: SocketAddr = address.parse()?;
    Request::new("GET", &format!("/{path}"))
        .header("Host", "credentials")
        .send(address)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

#[test]
fn objects_pass_both_ways() -> Result<()> {
    let lab = Lab::start()?;
    let body = bytes(3 << 20);
    for payload in [Payload::Signed, Payload::Unsigned, Payload::Trailer] {
        let target = format!("/a%20key/{payload:?}?x-id=PutObject");
        let answer = lab.send(request("PUT", &target).body(body.clone()), payload)?;
        ensure!(answer.status == 200, "{payload:?}: {}", answer.text());
        let target = format!("/a%20key/{payload:?}");
        let answer = lab.call("GET", &target)?;
        ensure!(answer.status == 200 && answer.body == body, "{payload:?}");
        let answer = lab.call("HEAD", &target)?;
        assert_eq!(answer.header("content-length"), Some("3145728"));
    }
    let list = lab.call("GET", "/?list-type=2&prefix=a%20key%2F")?;
    ensure!(list.text().matches("<Key>").count() == 3, "{}", list.text());
    assert_eq!(lab.call("DELETE", "/a%20key/Signed")?.status, 204);
    assert_eq!(lab.call("GET", "/a%20key/Signed")?.status, 404);
    // Buckets are not listed below a bucket.
    let request = Request::new("GET", "/").header("Host", "s3.us-east-1.localhost");
    let list = lab.send(request, Payload::Unsigned)?;
    ensure!(list.text().contains("<Name>photos</Name>"), "{}", list.text());
    let record = lab.front.record();
    assert_eq!(record.forwarded, record.hosts.values().sum::<usize>());
    assert_eq!(record.requests_to("s3.us-east-1.localhost"), 1);
    ensure!(record.refusals.is_empty(), "{record:?}");
    Ok(())
}

/// One connection serves many requests, and `Expect` gets its 100.
#[test]
fn connections_stay_open() -> Result<()> {
    let lab = Lab::start()?;
    let mut raw = Raw::connect(lab.front.address())?;
    for round in 0..3 {
        let upload = request("PUT", "/k").body(bytes(10_000));
        let upload = lab
            .session
            .sign(upload, Payload::Signed)?
            .header("Expect", "100-continue");
        raw.write(&upload.head())?;
        assert_eq!(raw.head()?.status, 100, "round {round}");
        raw.write(&upload.body)?;
        assert_eq!(raw.read("PUT")?.status, 200, "round {round}");
        for method in ["GET", "HEAD"] {
            let signed = lab.session.sign(request(method, "/k"), Payload::Unsigned)?;
            raw.write(&signed.head())?;
            assert_eq!(raw.read(method)?.status, 200, "round {round} {method}");
        }
    }
    Ok(())
}

#[test]
fn chunked_bodies_pass_both_ways() -> Result<()> {
    let store = ScriptedOrigin::start(|exchange| {
        let mut body = Vec::new();
        loop {
            let line = exchange.read_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(std::io::Error::other)?;
            let chunk = exchange.read(size + 2)?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        exchange.send(format!("{:x}\r\n", body.len()))?;
        exchange.send(&body)?;
        exchange.send("\r\n0\r\n\r\n")
    })?;
    let front = AwsFront::start(store.address(), &store_keys(), REGION, Duration::from_mins(1))?;
    let session = fetch_session(&front.credentials_url())?;
    let signed = session.sign(request("PUT", "/k"), Payload::Unsigned)?;
    let mut raw = Raw::connect(front.address())?;
    raw.write(&signed.header("Transfer-Encoding", "chunked").head())?;
    raw.write(b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n")?;
    assert_eq!(raw.read("PUT")?.text(), "hello world");
    let head = store.requests().remove(0);
    ensure!(head.starts_with("PUT /photos/k HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    ensure!(head.contains("credential=pushdowntestkey/"), "{head}");
    for text in ["asiafront", "security-token", "localhost"] {
        ensure!(!head.contains(text), "{text}: {head}");
    }
    Ok(())
}

#[test]
fn the_credentials_endpoint_can_fail() -> Result<()> {
    let lab = Lab::start()?;
    let url = lab.front.credentials_url();
    for (answer, status) in [(CredentialsAnswer::Html, 200), (CredentialsAnswer::Failure, 500)] {
        lab.front.set_credentials_answer(answer);
        assert_eq!(fetch(&url)?.status, status);
        ensure!(fetch_session(&url).is_err());
    }
    lab.front.set_credentials_answer(CredentialsAnswer::Session);
    ensure!(fetch_session(&url)?.access != lab.session.access);
    assert_eq!(lab.front.issued().len(), 2);
    assert_eq!(fetch(&url.replace("credentials", "other"))?.status, 404);
    Ok(())
}
